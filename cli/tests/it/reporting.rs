//! Tables, comparisons and reports of stored runs and of result files.

use serde_json::{Value, json};

use crate::harness::Data;

/// A result file of LLM-KG-Bench: one model on both formats of a task, `answer` as its answer.
fn result_file(model: &str, scores: [f64; 2], answer: &str) -> String {
    let mut records = Vec::new();
    for (format, score) in ["turtle", "jsonld"].into_iter().zip(scores) {
        for iteration in 0..20 {
            let score = if iteration % 4 == 0 { score / 2.0 } else { score };
            records.push(json!({
                "startTime": "2024-12-19T06:29:39.034515", "modelId": format!("GPT--{model}--{model}"),
                "taskInfo": {
                    "taskId": "RdfFriendCount", "version": "4.4", "gitCommit": "abc",
                    "taskLabel": format!("RdfFriendCount-{format}-1"),
                },
                "scores": { "f1": score }, "info": {}, "duration": "0:00:01.000000",
                "interactions": [["prompt", "t", "Who?"], ["response", "t", answer]],
            }));
        }
    }
    Value::from(records).to_string()
}

#[test]
fn a_run_stands_beside_published_models_and_is_not_compared_with_them() {
    let data = Data::new();
    data.kgfleet(&["run", "--task", "RdfFriendCount-*-1", "--iterations", "2"]).expect(0);
    let file = data.write("a_result.json", result_file("gpt-4o-2024-11-20", [1.0, 0.4], "She."));
    let file = file.to_str().unwrap();
    let both = data.kgfleet(&["table", "latest", file, "--sort", "mean"]).expect(0);
    both.prints(&[
        "sim-strong (kgfleet-core)",
        "GPT4o 2024/11 (published)",
        "cannot be compared with each other",
    ]);
    let refused = data.kgfleet(&["compare", "latest", file, "--a", "sim-strong", "--b", "GPT4o 2024/11"]);
    refused.expect(2).says(&["answered different exercises", "kgfleet-core"]);
    let csv = data.kgfleet(&["table", file, "--show", "preferences", "--format", "csv"]).expect(0);
    csv.prints(&[",RdfFriendCount-1\n", "GPT4o 2024/11,**TTL**\n"]);
    let json = data.kgfleet(&["table", "latest", "--format", "json", "--task", "*-nt-1"]).expect(0).json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 3, "a row for each model on the task");
}

#[test]
fn a_gate_holds_or_says_why_not() {
    let data = Data::new();
    let good = data.write("good_result.json", result_file("good", [1.0, 0.9], "She."));
    let bad = data.write("bad_result.json", result_file("bad", [0.6, 0.5], "He."));
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let compare =
        |a: &str, b: &str| data.kgfleet(&["compare", good, bad, "--a", a, "--b", b, "--gate", "0.1"]);
    compare("good", "bad").expect(1).says(&["the mean difference is below -0.1"]);
    compare("bad", "good").expect(0).prints(&["all tasks", "p Wilcoxon"]);
    data.kgfleet(&["compare", good, bad]).expect(2).says(&["--a and --b name two of good, bad"]);
    data.kgfleet(&["compare", good, bad, "--a", "good", "--b", "x"])
        .expect(2)
        .says(&["there is no model `x`"]);
}

#[test]
fn tables_are_sorted_grouped_and_written_as_workbooks() {
    let data = Data::new();
    let good = data.write("good_result.json", result_file("good", [1.0, 0.9], "She."));
    let bad = data.write("bad_result.json", result_file("bad", [0.6, 0.5], "He."));
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let table = |more: &[&str]| data.kgfleet(&[&["table", good, bad], more].concat());
    let models = |more: &[&str]| {
        let csv = table(&[&["--show", "models", "--format", "csv"], more].concat()).expect(0).stdout;
        csv.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(models(&["--sort", "model"]), ["bad", "good"]);
    assert_eq!(models(&["--sort", "model", "--reverse"]), ["good", "bad"]);
    assert_eq!(models(&["--sort", "mean of tasks", "--reverse"]), ["bad", "good"]);
    table(&["--show", "models", "--sort", "x"]).expect(2).says(&["no column `x`", "mean of tasks"]);
    let groups = ["--show", "groups", "--group", "T=*-turtle-*", "--group", "J=*-jsonld-*", "--score", "f1"];
    let groups = table(&[&groups[..], &["--format", "json"]].concat()).expect(0).json();
    assert_eq!((&groups["rows"][0]["n A"], &groups["rows"][0]["models"]), (&json!(40), &json!(2)));
    table(&["--show", "groups", "--group", "T"]).expect(2).says(&["NAME=GLOB"]);
    let out = data.path().join("tables.xlsx");
    table(&["--format", "xlsx", "--show", "dialogues", "--out", out.to_str().unwrap()]).expect(0);
    let names = sheets(&out);
    assert_eq!((names[0].as_str(), names[1].as_str(), names.len()), ("1 Summary", "2 Dialogues", 12));
}

/// Names of the sheets of a workbook.
fn sheets(path: &std::path::Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let text = std::io::read_to_string(archive.by_name("xl/workbook.xml").unwrap()).unwrap();
    text.split("<sheet name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_shown() {
    let data = Data::new();
    let whole = result_file("m", [0.5, 0.5], "She.");
    let broken = format!("{}, {{\"modelId\": NaN}}]", whole.trim_end_matches(']'));
    let file = data.write("broken_result.json", broken);
    let shown = data.kgfleet(&["table", file.to_str().unwrap()]).expect(4);
    shown.says(&["record 40: is not valid JSON"]).prints(&["RdfFriendCount-turtle-1"]);
    data.kgfleet(&["table", "no-such.json"]).expect(3).says(&["no-such.json"]);
    data.kgfleet(&["table", file.to_str().unwrap(), "--task", "x"]).expect(2).says(&["--task and --model"]);
    data.kgfleet(&["table", "nothing"]).expect(2).says(&["there is no run nothing"]);
}

#[test]
fn the_same_dialogues_count_once() {
    let data = Data::new();
    let content = result_file("m", [0.5, 0.75], "She.");
    let first = data.write("there_result.json", content.clone()).display().to_string();
    let again = data.write("again_result.json", content).display().to_string();
    let shown = data.kgfleet(&["table", &first, &again, "--show", "models", "--format", "json"]).expect(0);
    let shown = shown.says(&[
        "40 dialogues of ",
        "again_result.json are also in ",
        "there_result.json; they count once",
    ]);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap()["rows"][0]["dialogues"], 40);
}

#[test]
fn a_report_is_one_page_that_hostile_answers_do_not_leave() {
    let data = Data::new();
    let hostile = "</script><script>alert(1)</script>\u{1b}[31m\u{202e}";
    let file = data.write("hostile_result.json", result_file(hostile, [0.5, 0.5], hostile));
    let out = data.path().join("page.html");
    let (plots, cards) = (data.path().join("plots"), data.path().join("cards"));
    let arguments = [
        "report",
        file.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--plots",
        plots.to_str().unwrap(),
    ];
    let more = ["--cards", cards.to_str().unwrap()];
    data.kgfleet(&[&arguments[..], &more[..]].concat()).expect(0).says(&[
        "40 dialogues of 1 models",
        "the texts of 1 result files will stand in the report as they are",
    ]);
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"));
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert_eq!(page.matches("id=\"block-").count(), 1);
    let svg = std::fs::read_to_string(plots.join("task_RdfFriendCount-turtle-1.svg")).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("<script"));
    assert_eq!(std::fs::read_dir(cards).unwrap().count(), 1);
    let again = data.path().join("again.html");
    data.kgfleet(&["report", file.to_str().unwrap(), "--out", again.to_str().unwrap()]).expect(0);
    assert_eq!(page, std::fs::read_to_string(&again).unwrap(), "equal inputs give equal reports");
    let out = again.to_str().unwrap();
    let textless = data.kgfleet(&["report", file.to_str().unwrap(), "--out", out, "--no-texts"]).expect(0);
    assert!(!textless.stderr.contains("the texts of"), "there is nothing to warn of: {textless}");
}
