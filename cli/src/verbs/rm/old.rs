//! The runs of this machine that ended long ago.

use std::cmp::Reverse;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use benchmarks::names::benchmark_of;
use domain::RunId;
use domain::control::{Condition, Control, RunPhase};
use results::RunDir;
use results::run_lock::is_lock_file;

use super::packs::{PIPELINES, entries, is_aged, is_file};
use crate::kit::exit_code::explained;
use crate::kit::runtime::block_on;
use crate::place::here::Folder;
use crate::place::local;

/// Seconds of a day.
pub(super) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A run that is no part of a judged benchmark, or a judged benchmark with its runs.
#[derive(Debug)]
pub(super) struct StoredBenchmark {
    pub name: RunId,
    pub is_judged: bool,
    pub is_over: bool,
    /// Whether another process writes it.
    pub is_busy: bool,
    /// The judged benchmark whose answers it takes.
    pub reuses: Option<RunId>,
    /// When its newest record, state or manifest was written, which is when it ended if it is over.
    pub written: Option<SystemTime>,
}

/// The judged benchmarks, and the runs that are no part of one. Parts whose judged benchmark is gone are left alone, and so is what
/// cannot be read.
pub(super) fn read(data: &Path) -> anyhow::Result<Vec<StoredBenchmark>> {
    let found = runs_in(data)?;
    let mut all = Vec::new();
    for view in block_on(async { Folder::at(data)?.list().await.map_err(explained) })? {
        if view.condition == Some(Condition::Unreadable) || benchmark_of(&view.run) != view.run {
            continue;
        }
        let own = own_runs(&view.run, &found);
        let is_judged = own.iter().all(|dir| dir.run() != view.run);
        let configuration = block_on(local::find(&view.run, data))?.filter(|_| is_judged);
        all.push(StoredBenchmark {
            is_judged,
            // Who extends a finished run may be killed before it goes on.
            is_over: view.phase == RunPhase::Cancelled || view.phase.is_over() && view.is_complete(),
            is_busy: own.iter().any(|dir| local::is_busy(dir)),
            reuses: configuration.and_then(|configuration| configuration.reuse).map(RunId::new),
            written: written(data, &view.run, &found),
            name: view.run,
        });
    }
    Ok(all)
}

fn runs_in(data: &Path) -> anyhow::Result<Vec<RunDir>> {
    Ok(RunDir::list(data)?.into_iter().map(|found| found.dir).collect())
}

/// The run of this name, or the runs of the judged benchmark of this name.
fn own_runs<'a>(name: &RunId, found: &'a [RunDir]) -> Vec<&'a RunDir> {
    let is_own = |run: RunId| run == *name || local::is_run_of(&run, name.as_str());
    found.iter().filter(|dir| is_own(dir.run())).collect()
}

/// When the newest record, state, manifest or document of a benchmark was written. Exports do not count: they are made of these at
/// any time.
fn written(data: &Path, name: &RunId, found: &[RunDir]) -> Option<SystemTime> {
    let of_run =
        |dir: &RunDir| newest_in(dir.path(), |name| !is_lock_file(name)).max(newest_in(&dir.log(), |_| true));
    let beginning = format!("{name}.");
    let documents = newest_in(&data.join(PIPELINES), |file| file.starts_with(&beginning));
    own_runs(name, found).into_iter().filter_map(of_run).max().max(documents)
}

/// The last change of the files in a folder whose names count.
fn newest_in(folder: &Path, counts: impl Fn(&str) -> bool) -> Option<SystemTime> {
    let files = entries(folder).ok()?.into_iter().filter(|(name, entry)| is_file(entry) && counts(name));
    files.filter_map(|(_, entry)| entry.metadata().ok()?.modified().ok()).max()
}

/// The benchmarks that are old enough to go, those that take answers from others before these. `unread` says of a judged benchmark
/// why it cannot be read; `kept` what stays although it may be expected to go.
pub(super) fn going<'a>(
    all: &'a [StoredBenchmark],
    unread: Option<&str>,
    now: SystemTime,
    least: Duration,
    kept: &mut Vec<String>,
) -> Vec<&'a StoredBenchmark> {
    let is_old = |benchmark: &&StoredBenchmark| {
        benchmark.is_over && benchmark.written.is_some_and(|written| is_aged(written, now, least))
    };
    let (busy, mut going): (Vec<&StoredBenchmark>, Vec<&StoredBenchmark>) =
        all.iter().filter(is_old).partition(|benchmark| benchmark.is_busy);
    kept.extend(busy.iter().map(|benchmark| format!("{} stays: another process writes it", benchmark.name)));
    // One that cannot be read may take the answers of any other.
    if let Some(why) = unread
        && going.iter().any(|benchmark| benchmark.is_judged)
    {
        kept.push(format!("no pipeline is removed: {why}"));
        going.retain(|benchmark| !benchmark.is_judged);
    }
    loop {
        let stays = |other: &StoredBenchmark| !going.iter().any(|benchmark| benchmark.name == other.name);
        let taker = |base: &&'a StoredBenchmark| {
            all.iter().find(|other| other.reuses.as_ref() == Some(&base.name) && stays(other))
        };
        let takers: Vec<Option<&StoredBenchmark>> = going.iter().map(taker).collect();
        if takers.iter().all(Option::is_none) {
            break;
        }
        let mut left = Vec::new();
        for (benchmark, taker) in going.iter().copied().zip(takers) {
            match taker {
                Some(taker) => {
                    kept.push(format!("{} stays: {} takes its answers", benchmark.name, taker.name));
                }
                None => left.push(benchmark),
            }
        }
        going = left;
    }
    going.sort_by_key(|benchmark| Reverse(depth(benchmark, all)));
    going
}

/// From how many others it takes answers, one after the other.
fn depth(benchmark: &StoredBenchmark, all: &[StoredBenchmark]) -> usize {
    std::iter::successors(base_of(benchmark, all), |base| base_of(base, all)).take(all.len()).count()
}

fn base_of<'a>(benchmark: &StoredBenchmark, all: &'a [StoredBenchmark]) -> Option<&'a StoredBenchmark> {
    let base = benchmark.reuses.as_ref()?;
    all.iter().find(|other| other.name == *base)
}

/// Removes a benchmark as `kgfleet rm NAME` does, if nothing was written since it was decided that it goes.
pub(super) fn remove(data: &Path, benchmark: &StoredBenchmark) -> anyhow::Result<()> {
    let name = &benchmark.name;
    let now = written(data, name, &runs_in(data)?);
    if now.is_none() || now > benchmark.written {
        bail!("it was written or removed meanwhile");
    }
    block_on(async { Folder::at(data)?.remove(name, false).await.map_err(explained) })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 * DAY_SECONDS)
    }

    /// One that ended so many days ago.
    fn benchmark(name: &str, days: u64) -> StoredBenchmark {
        StoredBenchmark {
            name: name.into(),
            is_judged: false,
            is_over: true,
            is_busy: false,
            reuses: None,
            written: Some(now() - Duration::from_secs(days * DAY_SECONDS)),
        }
    }

    fn judged(name: &str, days: u64, reuses: Option<&str>) -> StoredBenchmark {
        StoredBenchmark { is_judged: true, reuses: reuses.map(RunId::from), ..benchmark(name, days) }
    }

    /// What goes after a month.
    fn goes(all: &[StoredBenchmark], unread: Option<&str>, kept: &mut Vec<String>) -> Vec<String> {
        let month = Duration::from_secs(30 * DAY_SECONDS);
        going(all, unread, now(), month, kept).iter().map(|benchmark| benchmark.name.to_string()).collect()
    }

    #[test]
    fn old_runs_go_and_those_that_go_on_stay() {
        let all = [
            benchmark("old", 40),
            benchmark("young", 20),
            StoredBenchmark { is_over: false, ..benchmark("interrupted", 40) },
            StoredBenchmark { is_busy: true, ..benchmark("busy", 40) },
            StoredBenchmark { written: None, ..benchmark("timeless", 40) },
        ];
        let mut kept = Vec::new();
        assert_eq!(goes(&all, None, &mut kept), ["old"]);
        assert!(kept[0].starts_with("busy stays"), "{kept:?}");
    }

    #[test]
    fn a_lock_says_nothing_of_when_a_run_was_written() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("runs/r");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, at| File::create(folder.join(name)).unwrap().set_modified(at).unwrap();
        write("manifest.json", now());
        for lock in ["lock", "lock.process", "lock.fleet-0123456789abcdef"] {
            write(lock, now() + Duration::from_secs(DAY_SECONDS));
        }
        assert_eq!(written(data.path(), &"r".into(), &runs_in(data.path()).unwrap()), Some(now()));
    }

    #[test]
    fn answers_stay_as_long_as_a_judged_benchmark_takes_them() {
        let chain = |days: [u64; 3]| {
            [
                judged("base", days[0], None),
                judged("middle", days[1], Some("base")),
                judged("last", days[2], Some("middle")),
            ]
        };
        let goes = |days, unread| goes(&chain(days), unread, &mut Vec::new());
        assert!(goes([40, 40, 5], None).is_empty());
        assert_eq!(goes([5, 40, 40], None), ["last", "middle"]);
        assert_eq!(goes([40, 40, 40], None), ["last", "middle", "base"]);
        assert!(goes([40, 40, 40], Some("x says nothing")).is_empty());
    }
}
