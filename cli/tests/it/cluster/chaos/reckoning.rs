//! What became of everything when all faults are over: every benchmark ends, or says why it does not; nothing that is not
//! named as taken is lost; nothing counts twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use domain::control::{BenchmarkView, RunPhase};
use domain::{DialogueKey, FailureCause, RecordId, RunId};
use results::RunDir;
use results::log::{LogItem, LogReader};
use serde_json::Value;

use super::Chaos;
use super::work::{Known, benchmark_of, log_of, runs, runs_of};
use crate::harness::Finished;
use crate::harness::acknowledged::{self, kept};
use crate::harness::process::{finish, kgfleet};

/// How long after the last fault every benchmark must have ended, or say why it has not.
const LIVELY: Duration = Duration::from_secs(300);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// How often failed dialogues of a benchmark are asked again, and lost ones of a run.
const AGAIN_MAX: u32 = 8;

/// So many benchmarks are also checked by the commands that people have.
const BY_COMMAND: usize = 8;

/// What is counted over all runs.
#[derive(Default)]
pub struct Reckoning {
    pub benchmarks: usize,
    pub judged: usize,
    pub scored: u64,
    /// Records that were acknowledged, those of them that are lost, and those that chaos took.
    pub acknowledged: u64,
    pub lost: u64,
    pub taken: u64,
    /// Damages that logs name.
    pub damages: u64,
    /// How long after the last fault the last benchmark ended.
    pub ended_after: Duration,
    /// Benchmarks that have not ended, with what they say.
    pub explained: Vec<String>,
    /// Runs of which chaos, as their operator, asked again what was lost.
    pub asked_again: u64,
    /// Benchmarks that were created and never begun, said so, and were begun by who read that.
    pub unbegun: u64,
    pub wrong: Vec<String>,
}

/// `kgfleet` to its end, in the folder of runs.
fn ask(data: &Path, arguments: &[&str]) -> Finished {
    finish(kgfleet().args(arguments).env("KGFLEET_DATA_DIR", data))
}

/// All benchmarks, briefly, as one of the coordinators sees them; what it said instead, where it could not tell.
fn views(chaos: &Chaos, number: usize) -> Result<BTreeMap<String, BenchmarkView>, Finished> {
    let url = chaos.fleet.url(number);
    let status = ask(&chaos.fleet.data(), &["status", "--json", "--fleet", &url]);
    if status.code() != Some(0) {
        return Err(status);
    }
    let views = status.stdout.lines().map(|line| serde_json::from_str::<BenchmarkView>(line).unwrap());
    Ok(views.map(|view| (view.run.to_string(), view)).collect())
}

/// What was asked of a benchmark to make it end.
#[derive(Default)]
struct Mended {
    retries: u32,
    resumptions: u32,
    is_judged_by_cause: bool,
}

impl Reckoning {
    /// Waits until every benchmark has ended, as an operator who resumes what is paused and retries what failed.
    pub fn wait(&mut self, chaos: &mut Chaos) {
        let healed = Instant::now();
        let mut mended: BTreeMap<String, Mended> = BTreeMap::new();
        let mut done: BTreeSet<String> = BTreeSet::new();
        for number in 0.. {
            let now = Instant::now();
            chaos.tend(now);
            let is_late = healed.elapsed() > LIVELY;
            // Who gets no answer asks the other coordinator.
            let views = match views(chaos, number).or_else(|_| views(chaos, number + 1)) {
                Ok(views) => views,
                Err(_) if !is_late => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(silent) => {
                    self.wrong.push(format!("no coordinator says what there is\n{silent}"));
                    break;
                }
            };
            let mut open = Vec::new();
            for name in self.names(chaos, &views) {
                if done.contains(&name) {
                    continue;
                }
                let mended = mended.entry(name.clone()).or_default();
                match self.look(chaos, &name, views.get(&name), mended, number) {
                    None => {
                        done.insert(name);
                    }
                    Some(state) => open.push(format!("{name}: {state}")),
                }
            }
            // The last commands may begin another one.
            if open.is_empty() && chaos.clients.are_done() && !views.is_empty() {
                break;
            }
            if is_late {
                self.judge_open(chaos, &views, open);
                break;
            }
            std::thread::sleep(LOOK);
        }
        self.ended_after = healed.elapsed();
        self.benchmarks = done.len();
    }

    /// Whatever was submitted, by the word of a coordinator or of the disk.
    fn names(&self, chaos: &mut Chaos, views: &BTreeMap<String, BenchmarkView>) -> Vec<String> {
        let on_disk = runs(&chaos.fleet.data()).into_iter().map(|run| benchmark_of(&run));
        for name in on_disk.chain(views.keys().cloned()) {
            chaos.work.add(&name, None);
        }
        chaos.work.known.keys().cloned().collect()
    }

    /// Looks at a benchmark and does what its operator would; `None` once it has ended with everything scored.
    fn look(
        &mut self,
        chaos: &Chaos,
        name: &str,
        view: Option<&BenchmarkView>,
        mended: &mut Mended,
        number: usize,
    ) -> Option<String> {
        let known = &chaos.work.known[name];
        let data = chaos.fleet.data();
        if known.is_removed {
            let left = runs_of(&data, name);
            return match (view, left.is_empty()) {
                (None, true) => None,
                _ => Some(format!("was removed, and there are {left:?}")),
            };
        }
        let Some(view) = view else {
            // A removal that was not answered, or a copy of before its submission.
            let is_gone = known.may_be_removed || chaos.losses.gone.contains(name);
            let is_told = is_gone && runs_of(&data, name).is_empty() && number > 0;
            return (!is_told).then(|| "is not there".to_owned());
        };
        let url = chaos.fleet.url(number);
        let tell = |verb: &str, whom: &str| {
            let _ = ask(&data, &[verb, whom, "--fleet", &url]);
        };
        let state =
            format!("{:?}, {} of {} scored, {} failed", view.phase, view.scored, view.planned, view.failed);
        match view.phase {
            // By a command that raced.
            RunPhase::Paused | RunPhase::Cancelled => {
                tell("resume", name);
                Some(state)
            }
            RunPhase::Preparing | RunPhase::Active => {
                // Its submission was cut short, and nobody repeats it.
                if view.trouble.as_ref().is_some_and(|why| why.contains("never begun")) {
                    self.unbegun += 1;
                    tell("resume", name);
                }
                Some(state)
            }
            RunPhase::Finished => {
                self.judge_causes(name, view, mended, &data);
                if view.failed > 0 && mended.retries < AGAIN_MAX {
                    mended.retries += 1;
                    tell("retry", name);
                    return Some(state);
                }
                let lacking = lacking(&data, name);
                if !lacking.is_empty() && mended.resumptions < AGAIN_MAX {
                    mended.resumptions += 1;
                    self.asked_again += lacking.len() as u64;
                    lacking.iter().for_each(|run| tell("resume", run.as_str()));
                    return Some(format!("{state}; no record of dialogues of {lacking:?}"));
                }
                if view.failed > 0 || !lacking.is_empty() {
                    return Some(format!(
                        "{state}; no record of dialogues of {lacking:?}, whatever is asked"
                    ));
                }
                let least =
                    known.submitted.as_ref().map_or(0, |submitted| submitted.dialogues(known.iterations));
                if view.planned < least || view.scored != view.planned {
                    return Some(format!("{state}; at least {least} were agreed to"));
                }
                None
            }
        }
    }

    /// Dialogues fail for no other reason than that a server refused them, or twice gave the same answer that cannot be read,
    /// which is not asked for a third time.
    fn judge_causes(&mut self, name: &str, view: &BenchmarkView, mended: &mut Mended, data: &Path) {
        if view.failed == 0 || std::mem::replace(&mut mended.is_judged_by_cause, true) {
            return;
        }
        for run in runs_of(data, name) {
            for (key, (is_scored, _, why)) in winners(data, &run) {
                let Some((cause, calls)) = why.filter(|_| !is_scored) else { continue };
                let is_unreadable =
                    cause == FailureCause::Server && calls.contains("the answer cannot be parsed");
                if cause != FailureCause::BadRequest && !is_unreadable {
                    self.wrong.push(format!("{run}: {key}: {cause}: {calls}"));
                }
            }
        }
    }

    /// What has not ended in time must say why.
    fn judge_open(&mut self, chaos: &Chaos, views: &BTreeMap<String, BenchmarkView>, open: Vec<String>) {
        for state in open {
            let name = state.split(':').next().unwrap_or_default();
            let url = chaos.fleet.url(0);
            let status = ask(&chaos.fleet.data(), &["status", name, "--json", "--fleet", &url]);
            let view: Option<BenchmarkView> = serde_json::from_str(&status.stdout).ok();
            let view = view.as_ref().or(views.get(name));
            let blocked = view.map(BenchmarkView::blocked).unwrap_or_default();
            let why = view
                .and_then(|view| view.trouble.clone())
                .or(blocked.first().map(|(why, _)| (*why).to_owned()));
            let is_over = view.is_some_and(|view| view.phase.is_over());
            match why.filter(|_| !is_over) {
                Some(why) => self.explained.push(format!("{state}: {why}")),
                None => self.wrong.push(format!("does not end and does not say why: {state}\n{status}")),
            }
        }
        if !self.wrong.is_empty() {
            self.wrong.insert(0, chaos.fleet.last_words());
        }
    }

    /// Compares the log of every run with what was acknowledged, and what is exported with its log.
    pub fn check(&mut self, chaos: &Chaos) {
        let data = chaos.fleet.data();
        let acknowledged = acknowledged::read(&chaos.fleet.acknowledged());
        let explained: BTreeSet<&str> =
            self.explained.iter().filter_map(|explained| explained.split(':').next()).collect();
        let names: Vec<(&String, &Known)> = chaos
            .work
            .known
            .iter()
            .filter(|(name, known)| !known.is_removed && !explained.contains(name.as_str()))
            .collect();
        let mut wrong = Vec::new();
        let lossy = |name: &str| chaos.losses.lost.keys().any(|run| benchmark_of(run) == name);
        let (with_losses, without): (Vec<_>, Vec<_>) = names.iter().partition(|(name, _)| lossy(name));
        let by_command: BTreeSet<&String> = with_losses
            .iter()
            .rev()
            .take(BY_COMMAND / 2)
            .chain(without.iter().rev().take(BY_COMMAND / 2))
            .map(|(name, _)| *name)
            .collect();
        for (name, _) in &names {
            let runs = runs_of(&data, name);
            self.judged += usize::from(runs.iter().any(|run| run.as_str() != name.as_str()));
            for run in runs {
                let nothing = BTreeSet::new();
                self.check_run(chaos, &run, acknowledged.get(&run).unwrap_or(&nothing), &mut wrong);
                if by_command.contains(name) {
                    by_people(&data, &run, &chaos.losses.standing(&data, &run), &mut wrong);
                }
            }
        }
        self.wrong.append(&mut wrong);
    }

    fn check_run(&mut self, chaos: &Chaos, run: &RunId, noted: &BTreeSet<RecordId>, wrong: &mut Vec<String>) {
        let data = chaos.fleet.data();
        let (kept, taken) = (kept(&log_of(&data, run)), chaos.losses.lost.get(run));
        self.acknowledged += noted.len() as u64;
        for record in noted.difference(&kept) {
            if taken.is_some_and(|taken| taken.contains(record)) {
                self.taken += 1;
            } else if !chaos.clients.removals.contains(&benchmark_of(run)) {
                // Who asks for a removal may also remove an earlier run of the name.
                self.lost += 1;
                wrong.push(format!("{run}: record {record} was acknowledged and is lost"));
            }
        }
        let winners = winners(&data, run);
        let planned = RunDir::open(&data, run).map(|(_, manifest)| manifest.planned_dialogues);
        let scored = winners.values().filter(|(is_scored, ..)| *is_scored).count() as u64;
        self.scored += scored;
        if planned.as_ref().ok() != Some(&scored) {
            wrong.push(format!("{run}: {scored} dialogues are scored, {planned:?} are planned"));
        }
        let verified = results::log::verify(&log_of(&data, run), None, None).unwrap();
        let standing = chaos.losses.standing(&data, run);
        self.damages += verified.losses;
        if verified.losses == 0 && !standing.is_empty() {
            wrong.push(format!("{run}: its log is damaged, and nobody says so: {}", standing.join(", ")));
        }
        let is_excused = chaos.losses.lost.contains_key(run) || chaos.losses.back.contains(run);
        if verified.losses > 0 && !is_excused && standing.is_empty() {
            wrong.push(format!("{run}: its log is damaged by itself: {}", verified.damages.join(", ")));
        }
    }
}

/// Checks a run with the commands that people have.
fn by_people(data: &Path, run: &RunId, standing: &[String], wrong: &mut Vec<String>) {
    let verified = ask(data, &["verify", run.as_str(), "--json"]);
    let report: Value = serde_json::from_str(&verified.stdout).unwrap_or_else(|e| panic!("{e}: {verified}"));
    let (is_sound, is_whole) = (report["sound"] == true, report["missing"] == 0);
    let names_damage = is_sound || report["report"]["damages"].as_array().is_some_and(|all| !all.is_empty());
    let is_told = (verified.code() == Some(0)) == (is_sound && is_whole);
    if !is_whole || !is_told || !names_damage || is_sound && !standing.is_empty() {
        wrong.push(format!("{verified}"));
    }
    let out = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    ask(data, &["export", run.as_str(), "--format", "jsonl", "--out", out.to_str().unwrap()]).expect(0);
    let exported = std::fs::read_to_string(&out).unwrap();
    let of_line = |line: &str| {
        let record = serde_json::from_str::<Value>(line).unwrap()["record"].take();
        let id = RecordId::new(record["attempt"]["id"].as_str().unwrap());
        (serde_json::from_value::<DialogueKey>(record["key"].clone()).unwrap(), id)
    };
    let mut exported: Vec<(DialogueKey, RecordId)> = exported.lines().map(of_line).collect();
    let mut expected: Vec<(DialogueKey, RecordId)> =
        winners(data, run).into_iter().map(|(key, (_, id, _))| (key, id)).collect();
    exported.sort();
    expected.sort();
    if exported != expected {
        wrong.push(format!(
            "{run}: {} dialogues were exported, {} have a record, or others",
            exported.len(),
            expected.len()
        ));
    }
}

/// A winner: whether it is scored, its record, and why it failed.
type Winner = (bool, RecordId, Option<(FailureCause, String)>);

/// The records that count, by the rule.
fn winners(data: &Path, run: &RunId) -> HashMap<DialogueKey, Winner> {
    let mut winners: HashMap<DialogueKey, Winner> = HashMap::new();
    for item in LogReader::open(&log_of(data, run), None).into_iter().flatten().flatten() {
        let LogItem::Record { record, .. } = item else { continue };
        let is_scored = record.outcome.is_scored();
        let why = record.outcome.failure().map(|cause| (cause, format!("{:?}", record.failed_calls)));
        let winner = (is_scored, record.attempt.id, why);
        match winners.get(&record.key) {
            Some((was_scored, ..)) if *was_scored || !is_scored => {}
            _ => {
                winners.insert(record.key, winner);
            }
        }
    }
    winners
}

/// The runs of a benchmark of which dialogues have no record.
fn lacking(data: &Path, name: &str) -> Vec<RunId> {
    let mut runs = runs_of(data, name);
    runs.retain(|run| {
        let planned =
            RunDir::open(data, run).map(|(_, manifest)| manifest.planned_dialogues).unwrap_or_default();
        (winners(data, run).len() as u64) < planned
    });
    runs
}
