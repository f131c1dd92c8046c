//! Faults of every kind, many at once, on real processes at the default settings: every run ends by itself with every
//! dialogue scored, nothing acknowledged is lost, nothing counts twice.
//!
//! `KGFLEET_CHAOS_SECONDS` and `KGFLEET_CHAOS_SEED` say how long, and which plan of faults; `make chaos` sets them.

mod fleet;
mod parts;
mod plan;
mod redis;
mod tally;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use domain::control::{BenchmarkView, RunPhase};
use serde_json::Value;

use crate::harness::process::{finish, kgfleet};
use crate::harness::server::MODEL;
use crate::harness::{NT_TASK, TURTLE_TASK};
use fleet::Fleet;
use plan::{Fault, plan};
use tally::Tally;

/// Length of a run that is part of every test run, in seconds.
const SECONDS: u64 = 15;

/// Iterations of the two tasks of a run.
const ITERATIONS: u64 = 60;
const DIALOGUES: u64 = 2 * ITERATIONS;

/// A run at least this long spares a coordinator and a worker in its second half, because the memory of processes that
/// end every few seconds says nothing about growth.
const LONG: Duration = Duration::from_secs(1_200);

/// Between two looks at everything.
const STEP: Duration = Duration::from_millis(20);

/// Between two looks at memory and at how far the latest run is.
const NOW_AND_THEN: Duration = Duration::from_secs(2);

/// How long the cluster may take to end its runs when all faults are over. Reached only where something is broken.
const PATIENCE: Duration = Duration::from_secs(300);

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs that are submitted one after the other, so that there is always work.
#[derive(Default)]
struct Work {
    submission: Option<Child>,
    runs: Vec<String>,
    submitted: u64,
}

impl Work {
    /// Submits another run, unless the latest one has enough left.
    fn go_on(&mut self, fleet: &Fleet) {
        if let Some(submission) = &mut self.submission {
            if submission.try_wait().unwrap().is_none() {
                return;
            }
            let output = self.submission.take().unwrap().wait_with_output().unwrap();
            // A coordinator that was in trouble may have begun the run all the same; then it is found by its name.
            if output.status.success() {
                let name = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                if !self.runs.contains(&name) {
                    self.runs.push(name);
                }
                self.submitted += 1;
            }
        }
        let is_busy = self.runs.last().is_some_and(|run| records(&fleet.data(), run) < DIALOGUES / 2);
        if is_busy {
            return;
        }
        let configuration = format!(
            "name = 'chaos'\nseed = {}\niterations = {ITERATIONS}\ntasks = ['{NT_TASK}', '{TURTLE_TASK}']\n\
             [[models]]\nlabel = '{MODEL}'\nconnector = 'openai-compatible'\nstream = true\n",
            self.submitted
        );
        let path = fleet.data().join("events").join("chaos.toml");
        std::fs::write(&path, configuration).unwrap();
        let url = fleet.url(self.submitted as usize);
        let mut command = kgfleet();
        command.args(["submit", path.to_str().unwrap(), "--coordinator", &url]);
        self.submission = Some(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    }
}

/// Entries in the log of a run.
fn records(data: &Path, run: &str) -> u64 {
    let found = results::RunDir::list(data).unwrap_or_default();
    let dir = found.into_iter().find(|found| found.dir.path().ends_with(run)).map(|found| found.dir);
    let reader = dir.and_then(|dir| results::log::LogReader::open(&dir.log(), None).ok());
    reader.map_or(0, |reader| reader.count() as u64)
}

/// Bytes in the logs of all runs.
fn log_bytes(data: &Path) -> u64 {
    let runs = results::RunDir::list(data).unwrap_or_default();
    let files = runs.iter().filter_map(|run| std::fs::read_dir(run.dir.log()).ok()).flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Lets the faults of a plan happen for a time.
fn faults(fleet: &mut Fleet, work: &mut Work, tally: &mut Tally, seed: u64, length: Duration) {
    let (begin, mut next) = (Instant::now(), Instant::now());
    let (mut looked, mut stored) = (begin, 0);
    let mut planned = plan(seed);
    while begin.elapsed() < length {
        let now = Instant::now();
        if length >= LONG && begin.elapsed() >= length / 2 {
            fleet.spare_the_last();
        }
        fleet.tend(now);
        let bytes = log_bytes(&fleet.data());
        if bytes != stored {
            stored = bytes;
            tally.stored(now);
        }
        if now - looked > NOW_AND_THEN {
            looked = now;
            work.go_on(fleet);
            for (role, pid, age, megabytes) in fleet.memory() {
                tally.memory(role, pid, age, megabytes);
            }
        }
        if now >= next {
            let fault = planned.next().expect("a plan has no end");
            if fleet.not_tried(fault.fault).is_none()
                && let Some(ends) = fleet.hit(&fault, now)
            {
                tally.fault(fault.fault, ends);
            }
            next = now + fault.gap;
        }
        std::thread::sleep(STEP);
    }
}

/// `kgfleet` to its end, in the folder of runs.
fn ask(fleet: &Fleet, arguments: &[&str]) -> crate::harness::Finished {
    finish(kgfleet().args(arguments).env("KGFLEET_DATA_DIR", fleet.data()))
}

/// Waits until a run is over.
fn view_at_end(fleet: &mut Fleet, run: &str) -> BenchmarkView {
    let begin = Instant::now();
    loop {
        fleet.tend(Instant::now());
        let url = fleet.url(0);
        let status = ask(fleet, &["status", run, "--json", "--coordinator", &url]);
        let view: Option<BenchmarkView> = serde_json::from_str(&status.stdout).ok();
        if let Some(view) = view.as_ref().filter(|view| view.phase.is_over()) {
            return view.clone();
        }
        assert!(begin.elapsed() < PATIENCE, "{run} does not end: {view:?}\n{status}\n{}", fleet.last_words());
        std::thread::sleep(10 * STEP);
    }
}

#[test]
fn every_dialogue_is_scored_whatever_fails() {
    let Some(mut fleet) = Fleet::start() else { return };
    let (seconds, seed) = (setting("KGFLEET_CHAOS_SECONDS", SECONDS), setting("KGFLEET_CHAOS_SEED", 1));
    let (mut work, mut tally) = (Work::default(), Tally::default());
    faults(&mut fleet, &mut work, &mut tally, seed, Duration::from_secs(seconds));
    fleet.heal_all();
    let healed = Instant::now();
    // A run whose submission was not answered goes on as well.
    for found in results::RunDir::list(&fleet.data()).unwrap() {
        let run = found.manifest.unwrap().run.to_string();
        if !work.runs.contains(&run) {
            work.runs.push(run);
        }
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (mut scored, mut wrong) = (0, Vec::new());
    for run in &work.runs {
        let view = view_at_end(&mut fleet, run);
        if (view.phase, view.scored, view.failed) != (RunPhase::Finished, DIALOGUES, 0) {
            wrong.push(format!("{run}: {:?}, {} scored, {} failed", view.phase, view.scored, view.failed));
        }
        scored += view.scored;
        let verified = ask(&fleet, &["verify", run, "--history", "--json"]);
        let report: Value =
            serde_json::from_str(&verified.stdout).unwrap_or_else(|e| panic!("{e}: {verified}"));
        for (kind, count) in report["history"]["counts"].as_object().unwrap() {
            *counts.entry(kind.clone()).or_default() += count.as_u64().unwrap();
        }
        for count in ["acknowledged", "superseded", "excused"] {
            *counts.entry(count.to_owned()).or_default() += report["history"][count].as_u64().unwrap();
        }
        if verified.code() != Some(0) {
            wrong.push(format!("{run}: {}", verified.stdout));
        }
        let out = fleet.data().join("events").join("export.jsonl");
        ask(&fleet, &["export", run, "--format", "jsonl", "--out", out.to_str().unwrap()]).expect(0);
        let exported = std::fs::read_to_string(&out).unwrap();
        if exported.lines().count() as u64 != DIALOGUES {
            wrong.push(format!("{run}: {} dialogues were exported", exported.lines().count()));
        }
        let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        for record in lines.map(|line| line["record"].clone()).filter(|r| r["outcome"]["state"] != "scored") {
            wrong
                .push(format!("{run}: {}, {}, {}", record["key"], record["outcome"], record["failed_calls"]));
        }
    }
    let count = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    println!(
        "seed {seed}, {seconds} s, {} runs of {DIALOGUES} dialogues\n{}",
        work.runs.len(),
        tally.table()
    );
    println!(
        "{scored} dialogues scored of {}; records acknowledged {}, lost {}, doubled {}; stale fences honoured {}; \
         units granted twice {}; winners changed {}; superseded {}; contradictions of writes that Redis lost {}; \
         {:.0} s to the end after the last fault",
        work.runs.len() as u64 * DIALOGUES,
        count("acknowledged"),
        count("lost"),
        count("doubled"),
        count("stale_fence"),
        count("granted_twice"),
        count("winner_changed"),
        count("superseded"),
        count("excused"),
        healed.elapsed().as_secs_f64(),
    );
    for fault in Fault::ALL {
        if let Some(why) = fleet.not_tried(fault) {
            println!("not tried: {fault}: {why}");
        }
    }
    assert!(!work.runs.is_empty() && tally.total() > 0, "something was tried");
    // What is wrong stands last, because the end of an output is what people and machines keep.
    assert!(wrong.is_empty(), "{}\n{}", fleet.last_words(), wrong.join("\n"));
}
