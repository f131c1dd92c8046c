//! `kgfleet export --format inspect`: its logs hold what the run holds, for who reads the archives and for Inspect itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;

use domain::Outcome;
use serde_json::Value;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::server::MODEL;
use crate::harness::{
    Data, NT_TASK, RunOnDisk, Server, TURTLE_PROMPT, TURTLE_TASK, process, skip_where_nothing_helps,
};

/// Names a Python that has inspect_ai.
const PYTHON: &str = "KGFLEET_INSPECT_PYTHON";

/// Reads the logs of a folder with Inspect, compares what they say twice, and prints a line for each.
const READ: &str = r#"
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries

for info in list_eval_logs(sys.argv[1]):
    log = read_eval_log(info)
    summaries = read_eval_log_sample_summaries(info)
    assert log.status == "success", log.status
    assert len(summaries) == len(log.samples) == log.results.total_samples
    values = sorted(sample.scores["kgfleet"].value for sample in log.samples if sample.scores)
    assert values == sorted(row.scores["kgfleet"].value for row in summaries if row.scores)
    score = log.results.scores[0]
    assert score.scored_samples == len(values)
    mean = score.metrics["mean"].value if values else None
    assert mean is None or abs(mean - sum(values) / len(values)) < 1e-9
    failed = sum(sample.error is not None for sample in log.samples)
    assert all(len(sample.messages) >= 2 for sample in log.samples if sample.error is None)
    print(json.dumps([log.eval.model, log.eval.task, len(log.samples), failed, mean]))
"#;

const BILLIONTHS: f64 = 1e9;

/// Dialogues, failed ones, and the mean of the scored ones in billionths, of each model and task.
type Evals = BTreeMap<(String, String), (u64, u64, Option<i64>)>;

fn billionths(mean: f64) -> i64 {
    (mean * BILLIONTHS).round() as i64
}

/// What the run has.
fn recorded(run: &RunOnDisk) -> Evals {
    let mut scores = BTreeMap::<(String, String), Vec<Option<f64>>>::new();
    for (key, entry) in run.records() {
        let score = match &entry.record.outcome {
            Outcome::Scored { scores, .. } => scores["f1"].as_f64(),
            Outcome::Unscored { .. } | Outcome::Failed { .. } => None,
        };
        scores.entry((key.model.to_string(), key.task.to_string())).or_default().push(score);
    }
    let eval = |scores: Vec<Option<f64>>| {
        let scored: Vec<f64> = scores.iter().flatten().copied().collect();
        let mean = (!scored.is_empty()).then(|| scored.iter().sum::<f64>() / scored.len() as f64);
        (scores.len() as u64, (scores.len() - scored.len()) as u64, mean.map(billionths))
    };
    scores.into_iter().map(|(of, scores)| (of, eval(scores))).collect()
}

/// What the archives of a folder say.
fn archived(folder: &Path) -> Evals {
    let mut evals = Evals::new();
    for file in fs::read_dir(folder).unwrap() {
        let mut archive = zip::ZipArchive::new(File::open(file.unwrap().path()).unwrap()).unwrap();
        let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        let samples = names.iter().filter(|name| name.starts_with("samples/")).count() as u64;
        let header = io::read_to_string(archive.by_name("header.json").unwrap()).unwrap();
        let header: Value = serde_json::from_str(&header).unwrap();
        let (eval, results) = (&header["eval"], &header["results"]);
        assert_eq!((&header["status"], &results["total_samples"]), (&"success".into(), &samples.into()));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let failed = samples - results["completed_samples"].as_u64().unwrap();
        let mean = results["scores"][0]["metrics"]["mean"]["value"].as_f64();
        evals.insert((text(&eval["model"]), text(&eval["task"])), (samples, failed, mean.map(billionths)));
    }
    evals
}

/// What Inspect says about a folder.
fn inspected(python: &Path, folder: &Path, data: &Data) -> Evals {
    let mut command = Command::new(python);
    command.args(["-c", READ]).arg(folder).current_dir(data.path()).env("HOME", data.state());
    let read = process::finish(&mut command).expect(0);
    let lines = read.stdout.lines().filter(|line| line.starts_with('['));
    let evals = lines.map(|line| {
        let (model, task, dialogues, failed, mean): (String, String, u64, u64, Option<f64>) =
            serde_json::from_str(line).unwrap();
        ((model, task), (dialogues, failed, mean.map(billionths)))
    });
    evals.collect()
}

#[test]
fn logs_of_inspect_hold_the_dialogues_and_scores_of_the_run() {
    let refuse = FaultRule::new(FaultWhen::Always, FaultKind::Status { code: 400, retry_after_s: None });
    let turtle = FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse };
    let (data, server) = (Data::new(), Server::with_faults(vec![turtle]));
    let configuration = format!(
        "name = 'two'\niterations = 3\ntasks = ['{NT_TASK}', '{TURTLE_TASK}']\n\
         [[models]]\nlabel = 'meta/sim 1'\nconnector = 'simulated'\nskill = 0.6\n\
         [[models]]\nlabel = '{MODEL}'\nconnector = 'openai-compatible'\nendpoint = '{}'\n",
        server.url()
    );
    let configuration = data.write("two.toml", configuration);
    // Some dialogues fail.
    data.kgfleet(&["run", configuration.to_str().unwrap(), "--no-sandbox"]).expect(1);
    data.kgfleet(&["export", "latest", "--format", "inspect"]).expect(0).says(&["(12 dialogues)"]);

    let run = data.run();
    let folder = run.dir.exports().join(format!("{}.inspect", run.name()));
    let expected = recorded(&run);
    assert_eq!((expected.len(), expected[&(MODEL.to_owned(), TURTLE_TASK.to_owned())]), (4, (3, 3, None)));
    assert_eq!(archived(&folder), expected);
    assert!(folder.join(format!("meta-sim-1_{NT_TASK}.eval")).is_file());

    let again = data.path().join("again");
    data.kgfleet(&["export", "latest", "--format", "inspect", "--out", again.to_str().unwrap()]).expect(0);
    for file in fs::read_dir(&folder).unwrap() {
        let file = file.unwrap();
        assert!(
            fs::read(file.path()).unwrap() == fs::read(again.join(file.file_name())).unwrap(),
            "{file:?}"
        );
    }

    let Some(python) = std::env::var_os(PYTHON) else {
        skip_where_nothing_helps(&format!(
            "{PYTHON} names no Python with inspect_ai: only the archives were compared"
        ));
        return;
    };
    assert_eq!(inspected(Path::new(&python), &folder, &data), expected);
}
