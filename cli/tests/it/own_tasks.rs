//! Task files as people use them: written, checked, run, sealed.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::Data;
use crate::harness::process::{called, ends, kgfleet};

const GRAPH: &str = "@prefix : <http://example.org/zoo#> .\n\
    :ola a :Otter ; :weighs 9 . :odd a :Otter ; :weighs 11 . :hal a :Heron ; :weighs 2 . :hen a :Heron ; :weighs 3 .";

#[test]
fn a_new_file_is_checked_run_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("zoo.ttl"), GRAPH).unwrap();
    ends(folder, &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 0);
    ends(folder, &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 2);
    let checked = ends(folder, &["task", "check", "zoo.toml"], 0);
    assert!(checked.contains("references 3 of 3") && checked.contains("no licence yet"), "{checked}");
    assert!(ends(folder, &["task", "list", "zoo.toml"], 0).contains("rows (1)"));
    let prompt = ends(folder, &["task", "show", "zoo.toml", "--prompt", "1"], 0);
    assert!(
        prompt.contains("Which things are of the class Heron?") && prompt.contains("```turtle"),
        "{prompt}"
    );

    let told = ends(folder, &["run", "zoo.toml", "--data-dir", "runs", "--json"], 0);
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!((&told["scored"], &told["failed"]), (&json!(9), &json!(0)), "three cases, three models");
    let run = told["run"].as_str().unwrap();
    let shown = ends(folder, &["show", run, "sim-strong/zoo-sparql/0", "--data-dir", "runs", "--json"], 0);
    assert!(shown.contains("\"rows_recall\""), "{shown}");
    let shown = ends(folder, &["show", run, "sim-strong/zoo-sparql/0", "--data-dir", "runs"], 0);
    for part in ["--- extracted query", "--- expected rows", "--- an answer with full marks ---"] {
        assert!(shown.contains(part), "`{part}`: {shown}");
    }
    // The run goes on from its own copy of the pack, whatever becomes of the file.
    std::fs::remove_file(folder.join("zoo.ttl")).unwrap();
    ends(folder, &["verify", run, "--data-dir", "runs"], 0);
    ends(folder, &["export", run, "--format", "csv", "--data-dir", "runs"], 0);

    std::fs::write(folder.join("zoo.ttl"), GRAPH).unwrap();
    assert!(called(folder, &["task", "seal", "zoo.toml"]).stderr.contains("states its licence"));
    let text = std::fs::read_to_string(folder.join("zoo.toml")).unwrap();
    std::fs::write(folder.join("zoo.toml"), text.replace("licence = \"\"", "licence = \"CC0-1.0\"")).unwrap();
    let hash = ends(folder, &["task", "seal", "zoo.toml"], 0);
    let verified: Value =
        serde_json::from_str(&ends(folder, &["pack", "verify", "zoo.kgpack", "--json"], 0)).unwrap();
    assert_eq!((&verified["hash"], &verified["answersMissing"]), (&json!(hash.trim()), &json!(0)));
}

#[test]
fn a_watched_file_is_checked_again_when_it_or_its_data_change() {
    let data = Data::new();
    std::fs::write(data.path().join("zoo.ttl"), GRAPH).unwrap();
    ends(data.path(), &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 0);
    let file = data.path().join("zoo.toml");
    let mut watching = data.start(&["task", "check", file.to_str().unwrap(), "--watch"]);
    watching.until_it_says("waiting for a change");
    // In one step, so that nobody sees half of it.
    let replace = |content: &str| {
        std::fs::write(data.state().join("zoo.ttl"), content).unwrap();
        std::fs::rename(data.state().join("zoo.ttl"), data.path().join("zoo.ttl")).unwrap();
    };
    replace("no Turtle");
    watching.until_it_says("line 1, column 1: no is not a valid subject");
    watching.until_it_says("waiting for a change");
    replace(GRAPH);
    watching.until_it_says("waiting for a change");
    // Not Ctrl-C, which what shells start in the background ignores.
    watching.signal(rustix::process::Signal::TERM);
    assert_eq!(watching.finish().stdout.matches("references 3 of 3").count(), 2);
}

#[test]
fn mistakes_and_failed_proofs_have_places_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let good = std::fs::read_to_string(folder.join("words.toml")).unwrap();
    std::fs::write(folder.join("bad.toml"), good.replace("like =", "lake =")).unwrap();
    ends(folder, &["task", "check", "bad.toml"], 2);
    let told = called(folder, &["run", "bad.toml"]).stderr;
    assert!(told.contains("bad.toml:") && told.contains("did you mean `like`?"), "{told}");
    let test = "[[task.test]]\ncase = \"legs\"\nanswer.text = \"stool\"\nscore = 1\n";
    std::fs::write(folder.join("wrong.toml"), format!("{good}{test}")).unwrap();
    let failed = ends(folder, &["task", "check", "wrong.toml"], 1);
    assert!(failed.contains("test 1 has `score` 0.0, not 1"), "{failed}");
    assert!(
        called(folder, &["run", "wrong.toml"]).stderr.contains("`kgfleet task check wrong.toml` names them")
    );
    ends(folder, &["run", "wrong.toml"], 2);
    assert!(!folder.join("kgfleet-data").exists(), "nothing was begun");
    let words = folder.join("words.toml");
    let both = ["run", "quick", "--endpoint", "http://127.0.0.1:9", "--model", "m"];
    assert!(called(folder, &both).stderr.contains("is a configuration"));
    assert!(words.exists());
}

#[test]
fn a_configuration_may_name_a_task_file_as_its_pack() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let configuration = "name = 'own'\npack = 'words.toml'\niterations = 4\n[[models]]\nlabel = 'sim'\nconnector = \
                         'simulated'\nskill = 1.0\n";
    std::fs::write(folder.join("own.toml"), configuration).unwrap();
    let told = ends(folder, &["run", "own.toml", "--json"], 0);
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(told["scored"], 4);
    let again: Value = serde_json::from_str(ends(folder, &["status", "--json"], 0).trim()).unwrap();
    assert_eq!(again["state"], "finished");

    // A configuration that says no number asks what the file says: every case, twice.
    let file = std::fs::read_to_string(folder.join("words.toml")).unwrap();
    std::fs::write(
        folder.join("words.toml"),
        file.replace("task_file = 1\n", "task_file = 1\nrepeats = 2\n"),
    )
    .unwrap();
    std::fs::write(folder.join("own.toml"), configuration.replace("iterations = 4\n", "")).unwrap();
    let listed = ends(folder, &["task", "list", "words.toml"], 0);
    let row = listed.lines().find(|line| line.starts_with("words")).unwrap();
    let numbers: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[1], 2 * numbers[0], "{listed}");
    let told: Value = serde_json::from_str(ends(folder, &["run", "own.toml", "--json"], 0).trim()).unwrap();
    assert_eq!(told["scored"], numbers[1]);
}

#[test]
fn the_verdict_on_an_answer_is_shown_before_anybody_is_asked() {
    use std::io::Write;

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let show = ["task", "show", "words.toml", "--answer", "legs"];
    let mut child = kgfleet()
        .current_dir(folder)
        .args(show)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\n**Chair.**\n").unwrap();
    let verdict: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&verdict["scores"]["score"], &verdict["followUp"]), (&json!(1.0), &Value::Null));
    assert!(ends(folder, &["task", "show", "--presets"], 0).contains("text-to-sparql"));
    assert!(ends(folder, &["task", "show", "words.toml", "--expanded"], 0).contains("[[task.check]]"));
    let schema: Value = serde_json::from_str(&ends(folder, &["task", "schema"], 0)).unwrap();
    assert_eq!(schema["properties"]["task_file"]["type"], "integer");
}

#[test]
fn a_judge_grades_what_a_task_file_asks_it_about() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = "task_file = 1\nname = 'words'\n[[task]]\nlabel = 'words'\nlike = 'answer-word'\n\
                judge = { question = '''\nThe word is {{ answer_word }}:\n{{ answer }}''', weight = 0.25, when = 'always' }\n\
                [[task.check]]\nkind = 'text'\nexpect.field = 'answer_word'\n";
    let case = |id: &str| {
        format!(
            "[[task.case]]\nid = '{id}'\nquestion = 'Which word is {id}?'\nanswer = '{id}'\nanswer_word = '{id}'\n"
        )
    };
    let cases: String = ["this", "that", "these", "those"].map(case).concat();
    std::fs::write(folder.join("words.toml"), format!("{file}{cases}")).unwrap();
    assert!(ends(folder, &["task", "list", "words.toml"], 0).contains("always (0.25)"));
    let question = ends(folder, &["task", "show", "words.toml", "--judge", "that"], 0);
    assert_eq!(question.trim_end(), "The word is that:\n{{answer}}");
    assert!(
        ends(folder, &["task", "check", "words.toml"], 0).contains("and a judge where a benchmark has one")
    );
    // Nobody is asked for a grade where no judge is named.
    let run = called(folder, &["run", "words.toml", "--json"]).expect(0);
    run.says(&["their checks alone count here: words"]);

    let model = |label: &str| format!("label = '{label}'\nconnector = 'simulated'\nskill = 0.5\n");
    let configuration = format!(
        "name = 'graded'\npipeline = 'judged-tasks'\npack = 'words.toml'\n[[models]]\n{}[judges.judge]\n{}",
        model("sim"),
        model("judge")
    );
    std::fs::write(folder.join("graded.toml"), &configuration).unwrap();
    let run = called(folder, &["run", "graded.toml", "--json"]).expect(0);
    assert!(!run.stderr.contains("their checks alone"), "{run}");
    let told = run.json();
    assert_eq!((&told["planned"], &told["scored"]), (&json!(4), &json!(4)), "{told}");
    let mean = |name: &str| {
        let cells = told["cells"].as_array().unwrap();
        cells.iter().find(|cell| cell["task"] == name).unwrap()["mean"].as_f64().unwrap()
    };
    let by_rule = 0.75 * mean("= score") + 0.25 * mean("= grade");
    assert!((mean("= result") - by_rule).abs() < 1e-9, "{told}");

    // A judge that is not there is found before anybody is asked.
    let served = "label = 'judge'\nconnector = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\n";
    std::fs::write(folder.join("served.toml"), configuration.replace(&model("judge"), served)).unwrap();
    let found = ends(folder, &["plan", "served.toml"], 1);
    assert!(found.contains("ok       model sim") && found.contains("problem  judge judge: "), "{found}");

    // A file without a question to a judge cannot be judged.
    let (before, rest) = file.split_once("judge = ").unwrap();
    let (_, after) = rest.split_once("'always' }").unwrap();
    std::fs::write(folder.join("words.toml"), format!("{before}{after}{cases}")).unwrap();
    called(folder, &["run", "graded.toml"]).expect(2).says(&[
        "judged-tasks cannot judge task words of pack words.toml: a task of a task file with `[task.judge]`",
    ]);
    assert!(
        ends(folder, &["plan", "graded.toml"], 1)
            .contains("problem  judge: judged-tasks cannot judge task words")
    );
    ends(folder, &["task", "check", "words.toml"], 0);
    std::fs::write(folder.join("words.kgpack"), b"\xff").unwrap();
    assert!(
        called(folder, &["run", "words.kgpack"])
            .stderr
            .contains("a configuration names it: `pack = \"words.kgpack\"`")
    );
}

#[test]
fn other_checks_judge_recorded_answers_of_the_same_prompts_and_of_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = |prompt: &str, weight: u32| {
        let checks = format!(
            "[[task.check]]\nname = 'word'\nkind = 'text'\nexpect.field = 'answer'\n\
             [[task.check]]\nname = 'short'\nkind = 'pattern'\nmatches = '^.{{1,30}}$'\nweight = {weight}\n"
        );
        let cases: String = ["this", "that", "these", "those"]
            .map(|id| {
                format!("[[task.case]]\nid = '{id}'\nquestion = 'Which word is {id}?'\nanswer = '{id}'\n")
            })
            .concat();
        format!(
            "task_file = 1\nname = 'words'\n[[task]]\nlabel = 'words'\nprompt = '{prompt}'\nanswer = {{ take = 'line' }}\n\
             {checks}{cases}"
        )
    };
    let asked = "Answer in a word: {{ question }}";
    std::fs::write(folder.join("words.toml"), file(asked, 1)).unwrap();
    let told = ends(folder, &["run", "words.toml", "--data-dir", "runs", "--json"], 0);
    let run = serde_json::from_str::<Value>(&told).unwrap()["run"].as_str().unwrap().to_owned();
    let rejudge = |file: &str, code| {
        ends(folder, &["rejudge", &run, "--pack", file, "--data-dir", "runs", "--json"], code)
    };
    let told: Value = serde_json::from_str(&rejudge("words.toml", 0)).unwrap();
    assert_eq!(told["changes"], json!([]), "the same checks say the same");

    std::fs::write(folder.join("weights.toml"), file(asked, 3)).unwrap();
    let told: Value = serde_json::from_str(&rejudge("weights.toml", 0)).unwrap();
    let changes = told["changes"].as_array().unwrap();
    assert!(!changes.is_empty(), "{told}");
    for change in changes {
        let number = |scores: &str, name: &str| change[scores][name].as_f64().unwrap();
        for (scores, weight) in [("before", 1.0), ("after", 3.0)] {
            let expected = (number(scores, "word") + weight * number(scores, "short")) / (1.0 + weight);
            assert!((number(scores, "score") - expected).abs() < 1e-9, "{change}");
        }
    }
    let new = told["run"].as_str().unwrap();
    let manifest = std::fs::read(folder.join("runs/runs").join(new).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        (&manifest["rejudged_from"], &manifest["rejudged_by"]["pack"]),
        (&json!(run), &json!("words"))
    );
    ends(folder, &["verify", new, "--data-dir", "runs"], 0);

    let count = || std::fs::read_dir(folder.join("runs/runs")).unwrap().count();
    let before = count();
    std::fs::write(folder.join("other.toml"), file("Answer, please: {{ question }}", 3)).unwrap();
    rejudge("other.toml", 2);
    let said = called(folder, &["rejudge", &run, "--pack", "other.toml", "--data-dir", "runs"]).stderr;
    assert!(said.contains("the pack has another prompt, so this answer cannot be judged by it"), "{said}");
    let rounds = file(asked, 1).replace("answer = {", "rounds = 2\nanswer = {");
    std::fs::write(folder.join("rounds.toml"), rounds).unwrap();
    let said = called(folder, &["rejudge", &run, "--pack", "rounds.toml", "--data-dir", "runs"]).stderr;
    assert!(said.contains("a task of class DeclaredBest 1, and the run asked one of Declared 1"), "{said}");
    assert_eq!(count(), before, "nothing was written");
}
