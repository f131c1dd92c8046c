//! The benchmarks of a cluster under faults, every third of them judged: submitted one after the other, so that there is
//! always work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use benchmarks::RunName;
use domain::RunId;
use results::log::LogReader;

use super::fleet::Fleet;
use super::servers::{EXTRACTS, JUDGES};
use crate::harness::process::kgfleet;
use crate::harness::server::MODEL;
use crate::harness::{NT_TASK, TURTLE_TASK};

/// Iterations of the two tasks of a run.
const ITERATIONS: u64 = 60;

/// Iterations of the task of a judged benchmark. Each answer is put before two judges.
const JUDGED_ITERATIONS: u64 = 15;

/// Of so many benchmarks, the last one is judged.
const JUDGED_EVERY: u64 = 3;

/// How long the newest benchmark may stand still before another one is submitted.
const STANDS_STILL: Duration = Duration::from_secs(10);

/// Benchmarks that may be unfinished at once. A machine that is slow must not be left with more work than it can end in the
/// time that liveness allows.
const OPEN_MAX: usize = 4;

/// For how long one counts among these: others are submitted beside what stands still.
const OPEN_FOR: Duration = Duration::from_secs(300);

/// Benchmarks that may be unfinished at once, those that stand still included.
const OPEN_ALL_MAX: usize = 2 * OPEN_MAX;

/// The newest benchmarks, which commands and looks are about.
const NEWEST: usize = 3;

/// What was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub is_judged: bool,
    pub seed: u64,
}

impl Submitted {
    /// Iterations that it is submitted with.
    pub fn iterations(&self) -> u64 {
        if self.is_judged { JUDGED_ITERATIONS } else { ITERATIONS }
    }

    /// Its configuration with so many iterations.
    pub fn configuration(&self, iterations: u64) -> String {
        let seed = self.seed;
        let model = |label: &str| format!("label = '{label}'\nconnector = 'openai-compatible'\n");
        if !self.is_judged {
            return format!(
                "name = 'chaos'\nseed = {seed}\niterations = {iterations}\ntasks = ['{NT_TASK}', '{TURTLE_TASK}']\n\
                 [[models]]\n{}stream = true\n",
                model(MODEL)
            );
        }
        let [grader, reviewer] = JUDGES.map(model);
        format!(
            "name = 'judged chaos'\npipeline = 'judged-facts'\nseed = {seed}\niterations = {iterations}\n\
             tasks = ['FactExtractStatic']\n[[models]]\n{}stream = true\n[judges.grader]\n{grader}[judges.reviewer]\n\
             {reviewer}",
            model(EXTRACTS)
        )
    }

    /// Records that it comes to as it is submitted: of a judged one, also those of its judges.
    fn records(&self) -> u64 {
        let stages = if self.is_judged { 1 + JUDGES.len() as u64 } else { 1 };
        stages * self.dialogues(self.iterations())
    }

    /// Dialogues that it has with so many iterations, at least.
    pub fn dialogues(&self, iterations: u64) -> u64 {
        if self.is_judged { iterations } else { 2 * iterations }
    }
}

/// A benchmark of the cluster.
#[derive(Clone, Debug)]
pub struct Known {
    /// How it was submitted; nothing of one whose submission was not answered.
    pub submitted: Option<Submitted>,
    /// The most iterations that a coordinator has agreed to.
    pub iterations: u64,
    /// Extensions that were asked for.
    pub extensions: u64,
    /// Whether a coordinator has agreed to remove it.
    pub is_removed: bool,
    /// Whether one was asked to, and gave no such answer: it may be there or not.
    pub may_be_removed: bool,
}

/// See the module.
#[derive(Default)]
pub struct Work {
    submission: Option<(Submitted, Child)>,
    pub known: BTreeMap<String, Known>,
    /// Names in the order in which they became known.
    order: Vec<String>,
    submitted: u64,
    /// Records of the newest benchmark, and since when there are so many.
    progress: Option<(u64, Instant)>,
    /// The logs of the newest benchmarks.
    logs: Vec<PathBuf>,
    /// Benchmarks that were not finished when they were last looked at, and since when they are known.
    open: Vec<(String, Instant)>,
    /// Whether these are as many as may be.
    full: bool,
}

impl Work {
    /// What is submitted next.
    pub fn draw(&mut self) -> Submitted {
        self.submitted += 1;
        let seed = self.submitted;
        Submitted { is_judged: seed.is_multiple_of(JUDGED_EVERY), seed }
    }

    /// Takes note of a benchmark.
    pub fn add(&mut self, name: &str, submitted: Option<Submitted>) {
        if self.known.contains_key(name) {
            return;
        }
        let iterations = submitted.as_ref().map_or(0, Submitted::iterations);
        let known = Known { submitted, iterations, extensions: 0, is_removed: false, may_be_removed: false };
        self.known.insert(name.to_owned(), known);
        self.order.push(name.to_owned());
        self.open.push((name.to_owned(), Instant::now()));
        self.progress = None;
    }

    /// Takes note that records were restored from a copy that does not hold these benchmarks. What was agreed to after the copy was
    /// made is forgotten.
    pub fn restored(&mut self, gone: &[String]) {
        for name in gone {
            self.known.remove(name);
        }
        for known in self.known.values_mut() {
            known.iterations = known.submitted.as_ref().map_or(0, Submitted::iterations);
            // The copy may hold it still.
            known.may_be_removed |= known.is_removed;
            known.is_removed = false;
        }
        let known = &self.known;
        self.order.retain(|name| known.contains_key(name));
    }

    /// One of the newest benchmarks that are there.
    pub fn pick(&self, pick: usize) -> Option<String> {
        let there = self.order.iter().rev().filter(|name| !self.known[*name].is_removed);
        let newest: Vec<&String> = there.take(NEWEST).collect();
        // The newest one twice as often: it is most likely not over.
        let at = (pick % (NEWEST + 1)).saturating_sub(1);
        newest.get(at).or(newest.first()).map(|name| (*name).clone())
    }

    /// Submits another benchmark, unless the newest one has enough left.
    pub fn go_on(&mut self, fleet: &Fleet, now: Instant) {
        if let Some((_, submission)) = &mut self.submission {
            if submission.try_wait().unwrap().is_none() {
                return;
            }
            let (submitted, submission) = self.submission.take().unwrap();
            let output = submission.wait_with_output().unwrap();
            // A coordinator that was in trouble may have begun it all the same; then it is found by its name.
            if output.status.success() {
                self.add(String::from_utf8(output.stdout).unwrap().trim(), Some(submitted));
            }
        }
        let newest = self.order.iter().rev().take(NEWEST);
        self.logs = newest.flat_map(|name| logs(&fleet.data(), name)).collect();
        self.full = self.is_full(&fleet.data(), now);
        if self.full || self.is_busy(fleet, now) {
            return;
        }
        let submitted = self.draw();
        let path = fleet.at(&format!("{}.toml", submitted.seed));
        fs::write(&path, submitted.configuration(submitted.iterations())).unwrap();
        let url = fleet.url(submitted.seed as usize);
        let mut command = kgfleet();
        command.args(["submit", path.to_str().unwrap(), "--fleet", &url]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        self.submission = Some((submitted, child));
    }

    /// Whether another benchmark may be submitted, as of the last look.
    pub fn has_room(&self) -> bool {
        !self.full
    }

    /// Whether as many benchmarks are unfinished as may be. Those that were removed, or went with a restored copy, are over.
    fn is_full(&mut self, data: &Path, now: Instant) -> bool {
        let known = &self.known;
        self.open.retain(|(name, _)| {
            let there = known.get(name).filter(|known| !known.is_removed && !known.may_be_removed);
            let Some(submitted) = there.and_then(|known| known.submitted.as_ref()) else { return false };
            records(data, name) < submitted.records()
        });
        let lately = self.open.iter().filter(|(_, since)| now < *since + OPEN_FOR).count();
        lately >= OPEN_MAX || self.open.len() >= OPEN_ALL_MAX
    }

    fn is_busy(&mut self, fleet: &Fleet, now: Instant) -> bool {
        let Some(name) = self.order.last() else { return false };
        let known = &self.known[name];
        let Some(submitted) = known.submitted.as_ref().filter(|_| !known.is_removed) else { return false };
        let (enough, records) = (submitted.records() / 2, records(&fleet.data(), name));
        let progress = self.progress.get_or_insert((records, now));
        if progress.0 != records {
            *progress = (records, now);
        }
        records < enough && now < progress.1 + STANDS_STILL
    }

    /// Ends a submission that is under way.
    pub fn settle(&mut self) {
        if let Some((submitted, child)) = self.submission.take() {
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                self.add(String::from_utf8(output.stdout).unwrap().trim(), Some(submitted));
            }
        }
    }

    /// Bytes in the logs of the newest benchmarks.
    pub fn log_bytes(&self) -> u64 {
        let files = self.logs.iter().filter_map(|log| fs::read_dir(log).ok()).flatten();
        files.flatten().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

/// The runs in a folder, by name.
pub fn runs(data: &Path) -> Vec<RunId> {
    let folders = fs::read_dir(data.join("runs")).into_iter().flatten().flatten();
    let runs = folders.filter(|folder| folder.path().join("manifest.json").is_file());
    let mut names: Vec<RunId> =
        runs.filter_map(|folder| Some(RunId::new(folder.file_name().to_str()?))).collect();
    names.sort();
    names
}

/// The log of a run.
pub fn log_of(data: &Path, run: &RunId) -> PathBuf {
    data.join("runs").join(run.as_str()).join("log")
}

/// The runs of a benchmark: of a judged one several, otherwise itself.
pub fn runs_of(data: &Path, name: &str) -> Vec<RunId> {
    let mut runs = runs(data);
    runs.retain(|run| run.as_str() == name || benchmark_of(run) == name);
    runs
}

/// The benchmark that a run belongs to.
pub fn benchmark_of(run: &RunId) -> String {
    RunName::read(run).map_or_else(|| run.to_string(), |name| name.pipeline)
}

fn logs(data: &Path, name: &str) -> Vec<PathBuf> {
    runs_of(data, name).iter().map(|run| log_of(data, run)).collect()
}

/// Lines in the logs of a benchmark.
fn records(data: &Path, name: &str) -> u64 {
    logs(data, name).iter().map(|log| count(log)).sum()
}

/// Lines in a log.
fn count(log: &Path) -> u64 {
    LogReader::open(log, None).map_or(0, |reader| reader.count() as u64)
}
