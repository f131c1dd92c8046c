//! Judges whose replies fit nothing, and judges that no server has.

use std::collections::BTreeMap;

use domain::Outcome;
use rustix::process::Signal;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use super::{configuration, pack, rows, view, with_judge_at};
use crate::harness::server::MODEL;
use crate::harness::{Data, Server, free_port};

/// What a stage said to each prompt: the choice, or nothing.
fn said(data: &Data, pipeline: &str, stage: &str) -> BTreeMap<String, Option<String>> {
    let mut said = BTreeMap::new();
    let of_stage = format!("{pipeline}.{stage}.");
    for run in data.runs().iter().filter(|run| run.name().starts_with(&of_stage)) {
        for entry in run.records().into_values() {
            let choice = match &entry.outcome {
                Outcome::Scored { infos, .. } => infos["choice"].as_str().map(str::to_owned),
                _ => None,
            };
            said.insert(entry.rounds[0].prompt.text.clone(), choice);
        }
    }
    said
}

#[test]
fn a_judge_that_answers_rubbish_leaves_answers_without_a_score() {
    let data = Data::new();
    let server = Server::start();
    let text = configuration(&pack(&data, 10, 1), 10, &[0.9, 0.1], 1.0);
    let file = data.write("rubbish.toml", with_judge_at(&text, "abstention", MODEL, &server.url()));
    let finished = data.kgfleet(&["run", file.to_str().unwrap()]).expect(1);
    let name = finished.stderr.lines().find_map(|line| line.strip_prefix("benchmark ")).unwrap().to_owned();
    finished.prints(&["In no number: 20 abstain (judge-unparseable)"]).says(&["kgfleet retry"]);
    for row in rows(&data, &name, "halu") {
        assert_eq!((row["scored"].as_u64(), row["not scored"].as_u64()), (Some(0), Some(10)), "{row}");
        for column in ["Wa %", "accuracy %", "abstained %", "Halu_BOK %", "Halu_DOK %"] {
            assert!(row[column].is_null(), "{row}");
        }
    }
    let sheet = data.path().join("sheet.csv");
    let sheet = sheet.to_str().unwrap();
    data.kgfleet(&["halu", "sample", &name, "--out", sheet]).expect(2).says(&["no scored answer"]);
    let out = data.path().join("weights.toml");
    let calibrated = data.kgfleet(&["halu", "calibrate", &name, "--out", out.to_str().unwrap()]).expect(2);
    calibrated.says(&["0 scored answers are too few"]);
    assert!(!out.exists());
}

#[test]
fn an_interrupt_ends_a_benchmark_whose_judge_is_away() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let text = configuration(&pack(&data, 6, 1), 6, &[1.0], 1.0);
    let file = data.write("away.toml", with_judge_at(&text, "abstention", "away", &url));
    let mut running = data.start(&["run", file.to_str().unwrap()]);
    running.until_it_says("waiting for");
    running.signal(Signal::INT);
    // Calls to an unreachable server are retried for many minutes: nobody waits for that.
    running.finish().expect(130).says(&["interrupted", "kgfleet resume"]);
}

#[test]
fn a_retry_leaves_what_a_writer_failed_at_as_it_was_judged() {
    let data = Data::new();
    // Some, because a server that refuses everybody is waited for.
    let some = FaultWhen::Probability(0.25);
    let refuses = FaultRule::new(some, FaultKind::Status { code: 400, retry_after_s: None });
    let refusing = Server::with_faults(vec![refuses]);
    let (address, url) = (refusing.address(), refusing.url());
    let right = configuration(&pack(&data, 20, 1), 20, &[0.9], 1.0);
    let file = data.write("refused.toml", with_judge_at(&right, "writer", MODEL, &url));
    let run = data.kgfleet(&["run", file.to_str().unwrap(), "--json"]);
    let name = view(&run).run.to_string();
    let written_and_failed = || {
        let (runs, writers) = (data.runs(), format!("{name}.facts."));
        let of_writer = runs.iter().filter(|run| run.name().starts_with(&writers));
        let entries = of_writer.flat_map(|run| run.records().into_values());
        let is_written: Vec<bool> =
            entries.map(|entry| matches!(entry.outcome, Outcome::Scored { .. })).collect();
        (is_written.iter().filter(|is| **is).count(), is_written.iter().filter(|is| !**is).count())
    };
    let asked = || ["nli", "llm", "expert"].map(|stage| said(&data, &name, stage).len());
    let (judged, before) = (asked(), rows(&data, &name, "halu-verdicts"));
    assert!(before.iter().any(|row| row["outcome"] == "aligned"), "{before:?}");
    let (written, failed) = written_and_failed();
    assert!(written > 0 && failed > 0, "the writer failed at some facts: {failed} beside {written}");
    // Now it would write something else.
    drop(refusing);
    let _writing = Server::at(address);
    data.kgfleet(&["retry", &name]);
    data.kgfleet(&["resume", &name]);
    assert_eq!(written_and_failed(), (written, failed), "what stands in for its sentences was judged");
    assert_eq!((asked(), rows(&data, &name, "halu-verdicts")), (judged, before));
}

#[test]
fn a_wording_of_ones_own_is_asked_in_and_named() {
    let data = Data::new();
    let pack = pack(&data, 6, 1);
    // Of a model that knows little, for facts that are stated go no further than the classifier.
    let text = configuration(&pack, 6, &[0.3], 1.0);
    let file = data.write("own.toml", &text);
    let own = view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let first = "Own words. {{fact}}\n{{answer}}\nReply with one of these words: EXPLICITLY STATED, NOT MENTIONED, CONTRADICTED";
    let worded = format!("{text}[wordings.llm]\nfirst = \"\"\"{first}\"\"\"\n");
    let file = data.write("worded.toml", worded);
    let judged = data.kgfleet(&["rejudge", &own, "--with", file.to_str().unwrap(), "--json"]).expect(0);
    let name = view(&judged).run.to_string();
    let (before, after) = (said(&data, &own, "llm"), said(&data, &name, "llm"));
    assert!(!before.is_empty() && before.keys().all(|prompt| !prompt.starts_with("Own words.")));
    assert!(after.len() == before.len() && after.keys().all(|prompt| prompt.starts_with("Own words.")));
    assert!(said(&data, &name, "nli").is_empty(), "nobody else is asked again");
    data.kgfleet(&["table", &name])
        .expect(0)
        .prints(&["Wordings: questions ", "(the program's, but for llm)"]);
}

#[test]
fn one_judge_alone_is_asked_about_the_same_answers() {
    let data = Data::new();
    let text = configuration(&pack(&data, 8, 1), 8, &[0.7], 1.0);
    let file = data.write("halu.toml", &text);
    let name = view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let (models, _) = text.split_once("[judges.").unwrap();
    let judge = |role: &str, label: &str| {
        format!("[judges.{role}]\nlabel = \"{label}\"\nconnector = \"simulated\"\nskill = 1.0\n")
    };
    let judges = ["writer-1", "abstention-1", "baseline"]
        .map(|label| judge(label.trim_end_matches("-1"), label))
        .concat();
    let alone = models.replace("\"kghalubench\"", "\"kghalubench-baseline\"");
    let file = data.write("alone.toml", format!("{alone}{judges}"));
    let judged = data.kgfleet(&["rejudge", &name, "--with", file.to_str().unwrap(), "--json"]).expect(0);
    let baseline = view(&judged).run.to_string();
    assert!(said(&data, &baseline, "abstain").is_empty(), "that verdict is taken over");
    let sheet = data.path().join("sheet.csv");
    let sheet = sheet.to_str().unwrap();
    data.kgfleet(&["halu", "sample", &name, "--count", "20", "--out", sheet]).expect(0);
    let drawn = std::fs::read_to_string(sheet).unwrap();
    let said = drawn.lines().filter_map(|line| {
        let (id, rest) = line.split_once(',')?;
        let verdict = if rest.starts_with("Does") { "stated" } else { "same" };
        (id.starts_with('h') && id.len() == 17).then(|| format!("{id},{verdict}\n"))
    });
    std::fs::write(sheet, format!("id,verdict\n{}", said.collect::<String>())).unwrap();
    let told =
        data.kgfleet(&["halu", "agreement", &name, sheet, "--baseline", &baseline, "--format", "json"]);
    let told = told.expect(0).json();
    for stage in ["one judge: entity", "one judge: facts"] {
        let row = told["rows"].as_array().unwrap().iter().find(|row| row["stage"] == stage);
        assert!(row.is_some_and(|row| row["rows"].as_u64() > Some(0)), "{told}");
    }
    data.kgfleet(&["halu", "agreement", &name, sheet, "--baseline", &name])
        .expect(2)
        .says(&["is of kind", "kghalubench-baseline"]);
}

#[test]
fn a_pack_that_holds_no_assessment_is_refused_before_anything_is_asked() {
    let data = Data::new();
    let text = configuration("core", 2, &[0.9], 1.0).replace("KGHalu-*", "RdfFriendCount-turtle-1");
    let file = data.write("core.toml", text);
    let refused = data.kgfleet(&["run", file.to_str().unwrap()]).expect(2);
    refused.says(&["RdfFriendCount-turtle-1", "no assessment", "kgfleet halu generate"]);
    assert!(data.runs().is_empty());
}

#[test]
fn the_configuration_with_the_judges_of_the_paper_can_be_planned() {
    let data = Data::new();
    let ready = include_str!("../../../../task-data/configurations/halu-paper.toml");
    let file = data.write("paper.toml", ready.replace("halu.kgpack", &pack(&data, 150, 1)));
    // Nobody serves the models here, which is all that is wrong.
    let planned = data.kgfleet(&["plan", file.to_str().unwrap(), "--json"]).expect(1).json();
    assert_eq!(planned["dialogues"], 150);
    let checks = planned["checks"].as_array().unwrap();
    let problems = checks.iter().map(ToString::to_string).filter(|check| check.contains("problem"));
    assert!(
        problems.clone().count() > 0 && problems.clone().all(|problem| problem.contains("refused")),
        "{planned}"
    );
}
