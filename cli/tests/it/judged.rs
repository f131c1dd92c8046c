//! Judged benchmarks as their users meet them on one machine.

use domain::control::{BenchmarkView, RunPhase};

use crate::harness::process::{finish, kgfleet};
use crate::harness::{Data, FACTS, NT_TASK, free_port, judged_facts};

/// Two models of different skill.
fn two_models() -> String {
    judged_facts(&[FACTS], 20, &[("middling", 0.5), ("weak", 0.2)])
}

fn on_one_machine(data: &Data) -> BenchmarkView {
    let configuration = data.write("facts.toml", two_models());
    let finished = data.kgfleet(&["run", configuration.to_str().unwrap(), "--json"]);
    serde_json::from_value(finished.json()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

#[test]
fn a_pipeline_is_one_line_of_the_list_and_the_latest_until_another_run_begins() {
    let data = Data::new();
    let view = on_one_machine(&data);
    let pipeline = view.run.as_str();
    let lines = |arguments: &[&str]| {
        let finished = data.kgfleet(arguments).expect(0);
        let line = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        finished.stdout.lines().map(line).collect::<Vec<_>>()
    };
    let listed = lines(&["status", "--json"]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["run"], &listed[0]["state"]), (&pipeline.into(), &"finished".into()));
    assert_eq!(listed[0]["scored"], view.scored);
    let stages = lines(&["status", pipeline, "--json"])[0]["runs"].as_array().unwrap().len();
    assert_eq!(stages, data.runs().len());

    // What is asked of it concerns all its runs.
    let verified = data.kgfleet(&["verify", "latest"]).expect(0);
    assert_eq!(verified.stdout.matches("the log is sound").count(), stages, "{verified}");
    let shown = data.kgfleet(&["show", "latest", "weak/FactExtractStatic/0", "--json"]).json();
    assert_eq!(shown["key"]["model"], "weak");
    // Judges are asked about each model in a run of its own.
    data.kgfleet(&["show", "latest", "grader/grade/0"])
        .expect(2)
        .says(&[".grade.middling.1", ".grade.weak.1"]);
    let shown = data.kgfleet(&["show", "latest", "weak/FactExtractStatic/0"]).expect(0);
    shown.prints(&["expected", " graph ---"]);
    let graded = data.runs().into_iter().find(|run| run.name().ends_with(".grade.weak.1")).unwrap();
    data.kgfleet(&["show", graded.name(), "grader/grade/0"])
        .expect(0)
        .prints(&["--- expected choice ---\none of CORRECT, ", "--- extracted choice"]);
    data.kgfleet(&["show", "latest", "weak/FactExtractStatic/99"]).expect(2).says(&["has no record"]);
    data.kgfleet(&["resume", "latest"]).says(&[pipeline]);
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "1", "--no-sandbox"]).expect(0);
    let newest = lines(&["status", "--json"]).pop().unwrap()["run"].as_str().unwrap().to_owned();
    assert_ne!(newest, pipeline);
    data.kgfleet(&["verify", "latest"]).expect(0).prints(&["3 dialogues: 3 scored"]);
    data.kgfleet(&["rm", &pipeline[..pipeline.len() - 2]]).expect(0);
    assert_eq!(data.runs().len(), 1, "its stages are gone with it");
}

#[test]
fn a_judge_that_is_away_is_named_and_without_waiting_the_run_ends_and_can_go_on() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let away = format!(
        "[judges.grader]\nlabel = \"away\"\nconnector = \"openai-compatible\"\nendpoint = \"{url}\"\n"
    );
    let whole = two_models();
    let (before, behind) = whole.split_once("[judges.grader]").unwrap();
    let reviewer = &behind[behind.find("[judges.reviewer]").unwrap()..];
    let configuration = data.write("away.toml", format!("{before}{away}{reviewer}"));
    let finished = data.kgfleet(&["run", configuration.to_str().unwrap(), "--no-wait"]).expect(3);
    finished.says(&["could not be asked", "`away`", &url, "kgfleet resume"]);
}

const COMPARED: &str = r#"
name = "compared"
pipeline = "compared-facts"
seed = 1
iterations = 10
tasks = ["FactExtractStatic"]
[[models]]
label = "strong"
connector = "simulated"
skill = 0.95
[[models]]
label = "weak"
connector = "simulated"
skill = 0.1
[judges.writer]
label = "writer"
connector = "simulated"
skill = 1.0
[judges.embedder]
label = "embedder"
connector = "simulated"
skill = 1.0
[judges.classifier]
label = "classifier"
connector = "simulated"
skill = 1.0
"#;

#[test]
fn judges_that_do_not_chat_compare_answers_and_share_what_needs_no_answer() {
    let data = Data::new();
    let configuration = data.write("compared.toml", COMPARED);
    let file = configuration.to_str().unwrap();
    let finished = data.kgfleet(&["run", file, "--json"]);
    let view: BenchmarkView =
        serde_json::from_value(finished.json()).unwrap_or_else(|error| panic!("{error}: {finished}"));
    assert_eq!((view.phase, view.failed), (RunPhase::Finished, 0), "{finished}");
    let cell = |task: &str, model: &str| {
        let found = view.cells.iter().find(|cell| cell.task.as_str() == task && cell.model.as_str() == model);
        found.unwrap_or_else(|| panic!("no {task} of {model}: {finished}"))
    };
    assert_eq!(
        cell("statement", "strong"),
        &domain::control::CellView { model: "strong".into(), ..cell("statement", "weak").clone() }
    );
    assert!(cell("similarity", "strong").scored > 0 && cell("support", "strong").scored > 0, "{finished}");
    let near = |model: &str| cell("= near", model).mean.unwrap();
    assert!(near("strong") > near("weak"), "{finished}");
    let runs = data.runs();
    let of_stage = |stage: &str| runs.iter().filter(|run| run.name().contains(stage)).collect::<Vec<_>>();
    let statements = of_stage(".statement.");
    assert!(statements.len() == 1 && statements[0].name().ends_with(".statement.all.1"));
    // What was asked stands in the records: a pair, and what the verdict needs.
    let similarities = of_stage(".similarity.strong.")[0].records();
    let round = &similarities.values().next().unwrap().rounds[0];
    let pair: [String; 2] = serde_json::from_str(&round.prompt.text).unwrap();
    assert!(pair.iter().all(|text| !text.is_empty()) && round.answer.text.starts_with("{\"cosine\":"));

    // Its runs as files; judged again only as it was asked; and gone.
    let (name, folder) = (view.run.as_str(), data.path().join("exported"));
    let arguments = ["export", name, "--format", "jsonl", "--out", folder.to_str().unwrap()];
    data.kgfleet(&arguments).expect(0);
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut expected: Vec<String> = runs.iter().map(|run| format!("{}.jsonl", run.name())).collect();
    expected.sort();
    assert_eq!(files, expected);
    // Whatever it was called, the folder has its whole name, and no run can have the name of the folder.
    let place = [("KGFLEET_DATA_DIR", data.path())];
    let here = |arguments: &[&str]| finish(kgfleet().args(arguments).envs(place).current_dir(data.path()));
    here(&["export", "latest", "--format", "jsonl"]).expect(0);
    let exported = data.path().join(format!("{name}+exports"));
    assert_eq!(std::fs::read_dir(exported).unwrap().count(), runs.len());
    // A folder that has the name of a run all the same is not read in its place.
    std::fs::create_dir(data.path().join(name)).unwrap();
    let numbers = here(&["table", name]);
    let elsewhere = data.kgfleet(&["table", name]);
    assert_eq!((numbers.code(), &numbers.stdout), (elsewhere.code(), &elsewhere.stdout));
    numbers.expect(0).says(&["is a run, and a file or folder here"]);
    here(&["table", &format!("./{name}")]).says(&["contains no result file"]);
    let fewer = data.write("fewer.toml", COMPARED.replace("iterations = 10", "iterations = 9"));
    let refused = data.kgfleet(&["rejudge", name, "--with", fewer.to_str().unwrap()]).expect(2);
    refused.says(&["- iterations = 10", "+ iterations = 9", name]);
    data.kgfleet(&["rm", name]).expect(0).says(&["removed", name]);
    assert!(data.runs().is_empty());
    assert_ne!(data.kgfleet(&["resume", name]).code(), Some(0));
}

#[test]
fn answers_that_are_not_there_yet_are_not_waited_for() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let away = format!("connector = \"openai-compatible\"\nendpoint = \"{url}\"\n");
    let configuration = data.write("facts.toml", two_models());
    let finished = data.kgfleet(&["run", configuration.to_str().unwrap(), "--json"]);
    let name = finished.json()["run"].as_str().unwrap().to_owned();
    // As a process leaves it that was interrupted before everything was answered.
    let state = data.path().join("runs").join(format!("{name}.ask.weak.1")).join("state.json");
    let text = std::fs::read_to_string(&state).unwrap();
    assert!(text.contains("\"finished\""), "{text}");
    std::fs::write(&state, text.replace("\"finished\"", "\"active\"")).unwrap();
    let whole = two_models();
    let (before, _) = whole.split_once("[judges.reviewer]").unwrap();
    let other = data.write("other.toml", format!("{before}[judges.reviewer]\nlabel = \"other\"\n{away}"));
    let refused = data.kgfleet(&["rejudge", &name, "--with", other.to_str().unwrap(), "--no-wait"]);
    assert_ne!(refused.code(), Some(0), "{refused}");
    refused.says(&["`weak`", "has not answered everything", &format!("kgfleet resume {name}")]);
}
