//! Judged benchmarks that are carried elsewhere: exported, archived and restored, whole, and in the middle of every stage.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::numbers::the_tables_follow_from_the_verdicts;
use super::{STAGES, configuration, pack, rows, view, with_skill};
use crate::harness::{Data, wait_until};

/// Questions of an assessment.
const QUESTIONS: usize = 6;

/// All tables.
const SHOWS: [&str; 7] =
    ["halu", "halu-answers", "halu-stages", "halu-rates", "halu-groups", "halu-types", "halu-verdicts"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn tables(data: &Data, pipeline: &str) -> Vec<Vec<Value>> {
    SHOWS.map(|show| rows(data, pipeline, show)).to_vec()
}

/// The same without the times, which differ between two benchmarks that say the same.
fn timeless(data: &Data, pipeline: &str) -> Vec<Vec<Value>> {
    let mut tables = tables(data, pipeline);
    for row in tables.iter_mut().flatten().filter_map(Value::as_object_mut) {
        row.retain(|column, _| !column.contains("seconds"));
    }
    tables
}

/// Archives a benchmark and restores it on a machine that has nothing of it.
fn restored(data: &Data, pipeline: &str) -> Data {
    let archive = data.path().join("archive.tar.zst");
    data.kgfleet(&["archive", pipeline, "--out", text(&archive)]).expect(0);
    let elsewhere = Data::new();
    elsewhere.unpack(&archive);
    elsewhere
}

#[test]
fn a_benchmark_judged_from_the_verdicts_of_another_is_exported_verified_and_archived() {
    let data = Data::new();
    let configured = configuration(&pack(&data, QUESTIONS, 2), QUESTIONS, &[0.9, 0.4], 1.0);
    let file = data.write("first.toml", &configured);
    let first = view(&data.kgfleet(&["run", text(&file), "--json"]).expect(0)).run.to_string();
    let stricter = format!("{configured}[settings]\nsimilarity_threshold = 0.9\n");
    let file = data.write("second.toml", stricter);
    let judged = data.kgfleet(&["rejudge", &first, "--with", text(&file), "--json"]).expect(0);
    let second = view(&judged).run.to_string();
    let runs = data.runs();
    assert!(runs.iter().all(|run| !run.name().starts_with(&second)), "a stricter threshold asks nobody");

    data.kgfleet(&["verify", &second]).expect(0).prints(&["the log is sound", &format!("{first}.ask.")]);
    let exported = data.path().join("exported");
    data.kgfleet(&["export", &second, "--format", "jsonl", "--out", text(&exported)]).expect(0);
    assert_eq!(std::fs::read_dir(&exported).unwrap().count(), runs.len());
    let expected = tables(&data, &second);
    assert_ne!(expected, tables(&data, &first));
    let elsewhere = restored(&data, &second);
    assert_eq!(tables(&elsewhere, &second), expected);
    the_tables_follow_from_the_verdicts(&elsewhere, &second);
}

#[test]
fn killed_in_every_stage_archived_and_restored_elsewhere_it_comes_to_the_same_numbers() {
    let home = Data::new();
    let right = configuration(&pack(&home, QUESTIONS, 2), QUESTIONS, &[0.9, 0.4], 1.0);
    // Only a classifier that errs leaves facts to the expert.
    let file = home.write("halu.toml", with_skill(&right, "classifier", 0.6));
    let undisturbed = view(&home.kgfleet(&["run", text(&file), "--json"]).expect(0));
    let name = undisturbed.run.to_string();

    let mut here = Data::new();
    for (round, stage) in STAGES.into_iter().enumerate() {
        let mut running = match round {
            0 => here.start(&["run", text(&file)]),
            _ => here.start(&["resume", &name, "--trust-endpoints"]),
        };
        let of_stage = format!("{name}.{stage}.");
        let has_records = || {
            let runs = here.runs();
            runs.iter().any(|run| run.name().starts_with(&of_stage) && !run.entries().is_empty())
        };
        wait_until(stage, || running.has_ended() || has_records());
        if !running.has_ended() {
            running.signal(Signal::KILL);
        }
        running.finish();
        here = restored(&here, &name);
    }
    here.kgfleet(&["resume", &name, "--trust-endpoints"]).expect(0);
    assert_eq!(timeless(&here, &name), timeless(&home, &name));
    here.kgfleet(&["verify", &name]).expect(0);
    // Finished, it is restored to the digit, times included.
    assert_eq!(tables(&restored(&here, &name), &name), tables(&here, &name));
    the_tables_follow_from_the_verdicts(&here, &name);
}
