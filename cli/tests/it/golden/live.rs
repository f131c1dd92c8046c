//! The three benchmarks as they run, by one process and by a fleet.

use domain::text::hex;
use domain::{Outcome, Record};
use regex::Regex;
use sha2::{Digest, Sha256};

use super::{BENCHMARKS, Transcript};
use crate::harness::{Cluster, Data, Finished, free_port};

/// What a dialogue came to, whenever and wherever it was held.
fn said(record: &Record) -> String {
    // A classifier names only the class that it chooses, so a record knows the names of those that were chosen before it.
    let class = Regex::new(r#"\{"label":[^,]*,"#).unwrap();
    let rounds: Vec<_> = record
        .rounds
        .iter()
        .map(|round| (&round.prompt.text, class.replace_all(&round.answer.text, "{")))
        .collect();
    let outcome = match &record.outcome {
        Outcome::Scored { scores, .. } => serde_json::to_string(scores).unwrap(),
        Outcome::Unscored { cause, message, .. } | Outcome::Failed { cause, message } => {
            format!("{cause}: {message}")
        }
    };
    format!("{} {rounds:?} {outcome}\n", record.key)
}

/// Adds every run with the hash of what its dialogues came to, in the order of their keys.
fn add_records(transcript: &mut Transcript, data: &Data) {
    let mut runs = data.runs();
    runs.sort_by(|one, other| one.name().cmp(other.name()));
    for run in runs {
        let records = run.records();
        let mut digest = Sha256::new();
        records.values().for_each(|entry| digest.update(said(entry)));
        transcript.add_line(&format!(
            "{}: {} records, SHA-256 {}",
            run.name(),
            records.len(),
            hex(digest.finalize())
        ));
    }
}

/// The name of the one benchmark in a folder.
fn name_in(data: &Data) -> String {
    let listed = data.kgfleet(&["status", "--json"]).expect(0);
    listed.json()["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_shows_what_it_always_showed() {
    for (benchmark, iterations) in BENCHMARKS {
        let data = Data::new();
        let run = ["run", benchmark, "--iterations", iterations];
        let finished = data.kgfleet(&run);
        let name = name_in(&data);
        let mut transcript = Transcript::timeless();
        transcript.replace(&name, "NAME");
        transcript.replace(data.path().to_str().unwrap(), "DATA");
        transcript.add(&run, &finished);
        // The runs of stages are listed as they began, which is not always in one order.
        for command in [&["status"][..], &["status", "--json"], &["table", &name]] {
            transcript.add(command, &data.kgfleet(command));
        }
        add_records(&mut transcript, &data);
        transcript.compare(&format!("{benchmark}-folder"));
    }
}

#[test]
fn a_fleet_shows_what_it_always_showed() {
    for (benchmark, iterations) in BENCHMARKS {
        let Some(cluster) = Cluster::start() else { return };
        let data = &cluster.data;
        let coordinator = cluster.coordinator();
        let place = format!("127.0.0.1:{}", free_port());
        let _models = data.start(&["simulate", "--benchmark", benchmark, "--listen", &place]);
        let more = ["--concurrency", "8"];
        let _worker = cluster.worker_with("w", coordinator.port, &format!("http://{place}"), &more);
        let kgfleet = |command: &[&str]| -> Finished { cluster.kgfleet(&coordinator, command) };

        let submit = ["submit", benchmark, "--iterations", iterations];
        let submitted = kgfleet(&submit).expect(0);
        let name = submitted.stdout.trim().to_owned();
        let mut transcript = Transcript::timeless();
        transcript.replace(&name, "NAME");
        transcript.add(&submit, &submitted);
        let watch = ["status", "--follow", &name];
        transcript.add_data(&watch, &kgfleet(&watch));
        for command in
            [&["status"][..], &["status", &name], &["fleet", "dead-letters", &name], &["table", &name]]
        {
            transcript.add(command, &kgfleet(command));
        }
        add_records(&mut transcript, data);
        transcript.compare(&format!("{benchmark}-fleet"));
    }
}
