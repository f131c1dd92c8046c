//! Decides what goes: a function of what was found and of the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use benchmarks::names::benchmark_of;
use domain::RunId;

/// What was changed more recently may belong to a process that is still at it.
pub(super) const AGE_MIN: Duration = Duration::from_secs(60 * 60);

/// The same of a folder in which a run is made ready: whoever reads it changes nothing there for long.
const FOLDER_AGE_MIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Seconds of a day.
pub(super) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The folder of runs in a data folder.
pub(super) const RUNS: &str = "runs";

/// What lies in the folders, as far as it may go.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub packs: Vec<StoredPack>,
    pub needed: NeededPacks,
    pub temporaries: Vec<TemporaryFile>,
    pub spools: Vec<EmptySpool>,
    /// Empty where nobody asks for old ones.
    pub benchmarks: Vec<StoredBenchmark>,
    /// What could not be looked at, in words.
    pub notes: Vec<String>,
}

/// Size and last change of a file, or of everything in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileExtent {
    pub bytes: u64,
    pub changed: SystemTime,
}

#[derive(Debug)]
pub(super) struct StoredPack {
    /// Relative to the data folder.
    pub path: PathBuf,
    pub hash: String,
    pub extent: FileExtent,
}

/// The packs that runs and judged benchmarks refer to.
#[derive(Debug, Default)]
pub(super) struct NeededPacks {
    /// Hashes of packs, and others, by the benchmark that names them.
    by: BTreeMap<RunId, BTreeSet<String>>,
    /// Manifests of runs that say nothing, each with the reason.
    pub unread_runs: Vec<String>,
    /// The same of the documents of judged benchmarks.
    pub unread_judged: Vec<String>,
    /// Folders of runs without a manifest, each with its last change: a copy that goes on brings the manifest last.
    pub unfinished: Vec<(String, SystemTime)>,
}

impl NeededPacks {
    /// Notes what a benchmark names.
    pub fn add<'a>(&mut self, benchmark: RunId, hashes: impl Iterator<Item = &'a str>) {
        self.by.entry(benchmark).or_default().extend(hashes.map(str::to_owned));
    }

    /// Whether a benchmark other than these needs a pack.
    pub fn is_needed(&self, hash: &str, without: &BTreeSet<RunId>) -> bool {
        self.by.iter().any(|(benchmark, hashes)| hashes.contains(hash) && !without.contains(benchmark))
    }

    /// Why somebody may need a pack that nobody is known to need; `None` if everybody is known.
    pub fn doubt(&self, now: SystemTime) -> Option<String> {
        let mut unread = self.unread_runs.iter().chain(&self.unread_judged);
        if let Some(first) = unread.next() {
            return Some(match unread.count() {
                0 => first.clone(),
                more => format!("{first}; and {more} more"),
            });
        }
        let (folder, _) = self.unfinished.iter().find(|(_, changed)| !is_aged(*changed, now, AGE_MIN))?;
        Some(format!("{folder} has no manifest yet, and was written less than an hour ago"))
    }
}

/// What a killed process left of a file, or of a folder in which it made a run ready.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    /// Relative to the data folder.
    pub path: PathBuf,
    pub extent: FileExtent,
    /// The run in whose folder it lies.
    pub run: Option<RunId>,
    pub is_folder: bool,
    /// Whether another process writes the run.
    pub is_busy: bool,
}

/// A spool without records that no worker uses.
#[derive(Debug)]
pub(super) struct EmptySpool {
    /// Relative to the working folder.
    pub path: PathBuf,
    pub extent: FileExtent,
}

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
    pub bytes: u64,
    /// When its newest record, state or manifest was written, which is when it ended if it is over.
    pub written: Option<SystemTime>,
}

/// Something that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Removal {
    pub kind: RemovalKind,
    /// Relative to the working folder of workers if it is a spool, else to the data folder.
    pub path: PathBuf,
    pub bytes: u64,
    /// Its last change: where there is a later one, it stays.
    pub changed: SystemTime,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemovalKind {
    /// A judged benchmark with its runs.
    Judged(RunId),
    Run(RunId),
    /// A pack of this hash.
    Pack(String),
    /// With the run in whose folder it lies.
    Temporary(Option<RunId>),
    Spool,
}

impl RemovalKind {
    /// What it is, for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Judged(_) => "pipeline",
            Self::Run(_) => "run",
            Self::Pack(_) => "pack",
            Self::Temporary(_) => "temporary",
            Self::Spool => "spool",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct GcPlan {
    /// In the order in which they go.
    pub removals: Vec<Removal>,
    /// What stays although it may be expected to go, in words.
    pub kept: Vec<String>,
}

/// Decides what goes. Runs go only with `older_than`, if they ended at least so long ago.
pub(super) fn plan(found: &Leftovers, now: SystemTime, older_than: Option<Duration>) -> GcPlan {
    let mut plan = GcPlan { removals: Vec::new(), kept: found.notes.clone() };
    let old = older_than.map_or_else(Vec::new, |least| old_benchmarks(found, now, least, &mut plan.kept));
    let names: BTreeSet<RunId> = old.iter().map(|benchmark| benchmark.name.clone()).collect();
    plan.removals.extend(old.into_iter().filter_map(|benchmark| removal_of(benchmark, now)));
    match found.needed.doubt(now) {
        Some(why) if !found.packs.is_empty() => plan.kept.push(format!("no pack is removed: {why}")),
        Some(_) => {}
        None => {
            let needless = |pack: &&StoredPack| {
                is_aged(pack.extent.changed, now, AGE_MIN) && !found.needed.is_needed(&pack.hash, &names)
            };
            plan.removals.extend(found.packs.iter().filter(needless).map(|pack| Removal {
                kind: RemovalKind::Pack(pack.hash.clone()),
                path: pack.path.clone(),
                bytes: pack.extent.bytes,
                changed: pack.extent.changed,
                why: match found.needed.is_needed(&pack.hash, &BTreeSet::new()) {
                    true => "only what is removed here refers to it".to_owned(),
                    false => "no run and no pipeline refers to it".to_owned(),
                },
            }));
        }
    }
    let is_left = |file: &&TemporaryFile| {
        let least = if file.is_folder { FOLDER_AGE_MIN } else { AGE_MIN };
        // What lies in the folder of a run that goes, goes with it.
        let goes_with_run = file.run.as_ref().is_some_and(|run| names.contains(&benchmark_of(run)));
        !file.is_busy && !goes_with_run && is_aged(file.extent.changed, now, least)
    };
    plan.removals.extend(found.temporaries.iter().filter(is_left).map(|file| Removal {
        kind: RemovalKind::Temporary(file.run.clone()),
        path: file.path.clone(),
        bytes: file.extent.bytes,
        changed: file.extent.changed,
        why: "a process that was killed left it".to_owned(),
    }));
    let is_unused = |spool: &&EmptySpool| is_aged(spool.extent.changed, now, AGE_MIN);
    plan.removals.extend(found.spools.iter().filter(is_unused).map(|spool| Removal {
        kind: RemovalKind::Spool,
        path: spool.path.clone(),
        bytes: spool.extent.bytes,
        changed: spool.extent.changed,
        why: "it holds no record, and no worker uses it".to_owned(),
    }));
    plan
}

/// Whether something is at least so old. What is of the future, by a clock that was set, is new.
pub(super) fn is_aged(changed: SystemTime, now: SystemTime, least: Duration) -> bool {
    now.duration_since(changed).is_ok_and(|age| age >= least)
}

/// The benchmarks that are old enough to go, those that take answers from others before these.
fn old_benchmarks<'a>(
    found: &'a Leftovers,
    now: SystemTime,
    least: Duration,
    kept: &mut Vec<String>,
) -> Vec<&'a StoredBenchmark> {
    let all = &found.benchmarks;
    let is_old = |benchmark: &&StoredBenchmark| {
        benchmark.is_over && benchmark.written.is_some_and(|written| is_aged(written, now, least))
    };
    let (busy, mut going): (Vec<&StoredBenchmark>, Vec<&StoredBenchmark>) =
        all.iter().filter(is_old).partition(|benchmark| benchmark.is_busy);
    kept.extend(busy.iter().map(|benchmark| format!("{} stays: another process writes it", benchmark.name)));
    // One that cannot be read may take the answers of any other.
    if let Some(why) = found.needed.unread_judged.first()
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

fn removal_of(benchmark: &StoredBenchmark, now: SystemTime) -> Option<Removal> {
    let StoredBenchmark { name, is_judged, bytes, written, .. } = benchmark;
    let changed = (*written)?;
    let days = now.duration_since(changed).map_or(0, |age| age.as_secs() / DAY_SECONDS);
    let (kind, file) = match is_judged {
        true => (RemovalKind::Judged(name.clone()), format!("{name}.*")),
        false => (RemovalKind::Run(name.clone()), name.to_string()),
    };
    let (path, why) = (Path::new(RUNS).join(file), format!("it is over, and ended {days} days ago"));
    Some(Removal { kind, path, bytes: *bytes, changed, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 * DAY_SECONDS)
    }

    fn ago(hours: u64) -> SystemTime {
        now() - Duration::from_secs(hours * HOUR)
    }

    fn pack(name: char, hours: u64) -> StoredPack {
        let hash = name.to_string().repeat(64);
        let extent = FileExtent { bytes: 10, changed: ago(hours) };
        StoredPack { path: format!("packs/{hash}.kgpack").into(), hash, extent }
    }

    /// One that ended so many days ago.
    fn benchmark(name: &str, days: u64) -> StoredBenchmark {
        StoredBenchmark {
            name: name.into(),
            is_judged: false,
            is_over: true,
            is_busy: false,
            reuses: None,
            bytes: 100,
            written: Some(ago(24 * days)),
        }
    }

    fn judged(name: &str, days: u64, reuses: Option<&str>) -> StoredBenchmark {
        StoredBenchmark { is_judged: true, reuses: reuses.map(RunId::from), ..benchmark(name, days) }
    }

    /// What goes: of a pack the first letter of its name, of others the name.
    fn goes(found: &Leftovers, days: Option<u64>) -> Vec<String> {
        let older_than = days.map(|days| Duration::from_secs(days * DAY_SECONDS));
        let name = |removal: Removal| match removal.kind {
            RemovalKind::Judged(name) | RemovalKind::Run(name) => name.to_string(),
            RemovalKind::Pack(hash) => hash[..1].to_owned(),
            RemovalKind::Temporary(_) | RemovalKind::Spool => removal.path.display().to_string(),
        };
        plan(found, now(), older_than).removals.into_iter().map(name).collect()
    }

    #[test]
    fn a_pack_goes_when_nobody_refers_to_it_and_it_is_an_hour_old() {
        let mut found = Leftovers {
            packs: vec![pack('a', 2), pack('b', 2), pack('c', 0), pack('d', 2)],
            ..Leftovers::default()
        };
        found.needed.add("r".into(), [pack('a', 0).hash.as_str()].into_iter());
        assert_eq!(goes(&found, None), ["b", "d"]);
        // A folder that somebody copies a run into may come to need any of them.
        found.needed.unfinished = vec![("runs/x".to_owned(), ago(0))];
        assert!(goes(&found, None).is_empty());
        found.needed.unfinished = vec![("runs/x".to_owned(), ago(2))];
        assert_eq!(goes(&found, None), ["b", "d"], "the copy has ended, and begins anew with the pack");
    }

    #[test]
    fn where_a_manifest_cannot_be_read_every_pack_stays() {
        let mut found = Leftovers { packs: vec![pack('a', 2)], ..Leftovers::default() };
        found.needed.unread_runs = vec!["run x says nothing".to_owned(), "run y says nothing".to_owned()];
        let plan = plan(&found, now(), None);
        assert!(plan.removals.is_empty());
        assert_eq!(plan.kept, ["no pack is removed: run x says nothing; and 1 more"]);
    }

    #[test]
    fn old_runs_go_with_their_packs_and_those_that_go_on_stay() {
        let mut found = Leftovers {
            packs: vec![pack('a', 2), pack('b', 2)],
            benchmarks: vec![
                benchmark("old", 40),
                benchmark("young", 20),
                StoredBenchmark { is_over: false, ..benchmark("interrupted", 40) },
                StoredBenchmark { is_busy: true, ..benchmark("busy", 40) },
                StoredBenchmark { written: None, ..benchmark("timeless", 40) },
            ],
            ..Leftovers::default()
        };
        found.needed.add("old".into(), [pack('a', 0).hash.as_str()].into_iter());
        found.needed.add("young".into(), [pack('b', 0).hash.as_str()].into_iter());
        assert!(goes(&found, None).is_empty());
        assert_eq!(goes(&found, Some(30)), ["old", "a"]);
        assert!(plan(&found, now(), Some(Duration::ZERO)).kept[0].starts_with("busy stays"));
    }

    #[test]
    fn answers_stay_as_long_as_a_judged_benchmark_takes_them() {
        let chain = |days: [u64; 3]| Leftovers {
            benchmarks: vec![
                judged("base", days[0], None),
                judged("middle", days[1], Some("base")),
                judged("last", days[2], Some("middle")),
            ],
            ..Leftovers::default()
        };
        assert!(goes(&chain([40, 40, 5]), Some(30)).is_empty());
        assert_eq!(goes(&chain([5, 40, 40]), Some(30)), ["last", "middle"]);
        assert_eq!(goes(&chain([40, 40, 40]), Some(30)), ["last", "middle", "base"]);
        let mut unread = chain([40, 40, 40]);
        unread.needed.unread_judged = vec!["x says nothing".to_owned()];
        assert!(goes(&unread, Some(30)).is_empty());
    }

    #[test]
    fn what_killed_processes_left_goes_when_nobody_can_be_at_it() {
        let file = |path: &str, hours| TemporaryFile {
            path: path.into(),
            extent: FileExtent { bytes: 1, changed: ago(hours) },
            run: None,
            is_folder: false,
            is_busy: false,
        };
        let spool = |path: &str, hours| EmptySpool {
            path: path.into(),
            extent: FileExtent { bytes: 0, changed: ago(hours) },
        };
        let found = Leftovers {
            temporaries: vec![
                file("old", 2),
                file("young", 0),
                TemporaryFile { is_busy: true, ..file("busy", 2) },
                TemporaryFile { is_folder: true, ..file("old-folder", 25) },
                TemporaryFile { is_folder: true, ..file("young-folder", 23) },
            ],
            spools: vec![spool("idle", 2), spool("begun", 0)],
            ..Leftovers::default()
        };
        assert_eq!(goes(&found, None), ["old", "old-folder", "idle"]);
        let of_run = TemporaryFile { run: Some("r".into()), ..file("runs/r/a.part", 2) };
        let found = Leftovers {
            temporaries: vec![of_run],
            benchmarks: vec![benchmark("r", 40)],
            ..Leftovers::default()
        };
        assert_eq!(goes(&found, None), ["runs/r/a.part"]);
        assert_eq!(goes(&found, Some(30)), ["r"], "it goes with its run");
    }
}
