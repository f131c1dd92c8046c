//! One run of each benchmark, sealed when it was over, as a folder and a fleet show it.

use std::path::{Path, PathBuf};

use super::{BENCHMARKS, EXPORTS, SHOWS, Transcript, archive};
use crate::harness::terminal::Terminal;
use crate::harness::{Cluster, Data, Finished};

fn sealed() -> PathBuf {
    archive::folder().join("golden/finished.sealed")
}

/// The names of the kept benchmarks, by the names of their configurations.
fn kept(data: &Data) -> Vec<(&'static str, String)> {
    archive::open(&sealed(), data.path());
    let listed = data.kgfleet(&["status", "--json"]).expect(0).stdout;
    let lines: Vec<serde_json::Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = |benchmark: &'static str| {
        let line = lines.iter().find(|line| line["name"] == benchmark).unwrap();
        (benchmark, line["run"].as_str().unwrap().to_owned())
    };
    BENCHMARKS.iter().map(|(benchmark, _)| name(benchmark)).collect()
}

/// Compares what a folder and a fleet show alike: all tables, the report, and all exports.
#[track_caller]
fn compare_what_was_scored(benchmark: &str, name: &str, kgfleet: &dyn Fn(&[&str]) -> Finished) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut transcript = Transcript::new();
    transcript.replace(folder.to_str().unwrap(), "OUT");
    for show in SHOWS {
        let command = ["table", name, "--show", show];
        // A row for each dialogue is long.
        if show == "dialogues" {
            let file = folder.join("dialogues.csv");
            let finished =
                kgfleet(&[&command[..], &["--format", "csv", "--out", file.to_str().unwrap()]].concat());
            transcript.add(&command, &finished);
            if finished.code() == Some(0) {
                transcript.add_file(&file);
            }
        } else {
            transcript.add(&command, &kgfleet(&command));
        }
    }
    let file = folder.join("report.html");
    let command = ["report", name, "--out", file.to_str().unwrap()];
    let finished = kgfleet(&command);
    transcript.add(&command, &finished);
    if finished.code() == Some(0) {
        transcript.add_file(&file);
    }
    for (number, format) in EXPORTS.iter().enumerate() {
        let out = folder.join(format!("export-{number}"));
        let command = [&["export", name, "--format"], *format, &["--out", out.to_str().unwrap()]].concat();
        transcript.add(&command, &kgfleet(&command).expect(0));
        for file in files(&out) {
            transcript.add_file(&file);
        }
    }
    transcript.compare(&format!("{benchmark}-kept"));
}

/// The files of an export, by name: one, or those in a folder.
fn files(out: &Path) -> Vec<PathBuf> {
    if out.is_file() {
        return vec![out.to_owned()];
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(out).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Compares what a folder and a fleet say of the kept benchmarks, by one text.
#[track_caller]
fn compare_what_is_said(kept: &[(&'static str, String)], kgfleet: &dyn Fn(&[&str]) -> Finished) {
    let mut transcript = Transcript::new();
    let mut add = |command: &[&str]| transcript.add(command, &without_fetching(kgfleet(command)));
    add(&["status"]);
    add(&["status", "--json"]);
    for (_, name) in kept {
        add(&["status", name]);
        add(&["status", "--follow", name]);
    }
    transcript.compare("kept");
    for (benchmark, name) in kept {
        compare_what_was_scored(benchmark, name, &|command| without_fetching(kgfleet(command)));
    }
}

/// All that a fleet says more is that it sends the records first.
fn without_fetching(mut finished: Finished) -> Finished {
    let talk = finished.stderr.split_inclusive('\n');
    finished.stderr = talk.filter(|line| !line.starts_with("fetching ")).collect();
    finished
}

#[test]
fn a_folder_shows_finished_benchmarks_as_it_always_did() {
    let data = Data::new();
    let kept = kept(&data);
    compare_what_is_said(&kept, &|command| data.kgfleet(command));
    let mut transcript = Transcript::new();
    for (_, name) in &kept {
        transcript.add(&["verify", name], &data.kgfleet(&["verify", name]));
    }
    transcript.compare("folder-kept");
}

#[test]
fn a_fleet_shows_finished_benchmarks_as_a_folder_does() {
    let Some(cluster) = Cluster::start() else { return };
    let kept = kept(&cluster.data);
    let coordinator = cluster.coordinator();
    compare_what_is_said(&kept, &|command| cluster.kgfleet(&coordinator, command));
    for (_, name) in &kept {
        cluster.kgfleet(&coordinator, &["fleet", "dead-letters", name]).expect(0);
    }
}

/// Columns of the terminals on which screens are kept.
const COLUMNS: [u16; 2] = [80, 120];

#[test]
fn screens_of_80_and_120_columns_break_no_line() {
    let data = Data::new();
    let kept = kept(&data);
    let name = &kept[0].1;
    for columns in COLUMNS {
        let mut transcript = Transcript::new();
        transcript.replace(data.path().to_str().unwrap(), "DATA");
        for command in [
            &["status"][..],
            &["status", name],
            &["show", name, "--worst", "3"],
            &["compare", name, "--a", "sim-weak", "--b", "sim-strong"],
            &["table", name, "--show", "models"],
            &["status", "--follow", name],
            &["pause", "--help"],
        ] {
            let mut process = data.command(command);
            let (status, lines) = Terminal::start(process.env("NO_COLOR", "1"), columns, 200).finish_whole();
            assert_eq!(status.code(), Some(0), "{command:?}");
            transcript.add_line(&format!("$ kgfleet {}", command.join(" ")));
            for line in &lines {
                assert!(line.chars().count() <= usize::from(columns), "{command:?}: {line}");
                transcript.add_line(line);
            }
        }
        transcript.compare(&format!("screens-{columns}"));
    }
}

/// Runs the benchmarks and seals their folder; by hand: a new archive makes other golden files.
#[test]
#[ignore = "writes testdata; run by hand when benchmarks show something that the archive does not hold"]
fn keep_finished_benchmarks() {
    let data = Data::new();
    for (benchmark, iterations) in BENCHMARKS {
        data.kgfleet(&["run", benchmark, "--iterations", iterations]).expect(0);
    }
    archive::seal(data.path(), &sealed());
}
