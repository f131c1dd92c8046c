//! What the record store loses: bits, tails and segments of record logs, and everything that an older copy does not hold.
//! What was taken is noted by name, so that the check excuses that and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use domain::{RecordId, RunId};
use results::log::{Damage as Damaged, DamageKind, LogItem, LogLine, LogOptions, LogReader, LogWriter};
use serde_json::Value;

use super::fleet::Fleet;
use super::plan::{Fault, Planned};
use super::work::{log_of, runs};
use crate::harness::acknowledged::kept;

/// Of the newest runs with records, so many are damaged.
const NEWEST: usize = 4;

/// How old a copy is at least when records are restored from it.
const COPY_AGE: Duration = Duration::from_secs(3);

/// For how long a restoration waits for disks and queue that are in no other trouble.
const RESTORED_WITHIN: Duration = Duration::from_secs(30);

/// What a damaged segment is.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The byte at this offset is this one now.
    Flipped(u64, u8),
    /// It is so long now.
    Cut(u64),
    Missing,
}

/// A copy in the making, or made.
struct Copying {
    made: JoinHandle<bool>,
    begun: Instant,
}

/// See the module.
#[derive(Default)]
pub struct Losses {
    copying: Option<Copying>,
    damages: Vec<(RunId, PathBuf, Damage)>,
    /// The records that runs lost.
    pub lost: BTreeMap<RunId, BTreeSet<RecordId>>,
    /// Runs and benchmarks that a restored copy did not hold.
    pub gone: BTreeSet<String>,
    /// Runs that were removed and came back by a copy, which holds a part of what was removed while it was made.
    pub back: BTreeSet<RunId>,
    /// How often records were restored.
    pub restored: u64,
}

impl Losses {
    /// Lets the record store lose something; when that is over.
    pub fn hit(&mut self, planned: &Planned, fleet: &mut Fleet, now: Instant) -> Option<Instant> {
        if !fleet.has_sound_disks(now) {
            return None;
        }
        if planned.fault == Fault::OlderCopy {
            if self.copying.is_some() || fleet.is_sparing() {
                return None;
            }
            let (from, to) = (fleet.data(), fleet.at("copy"));
            let made = std::thread::spawn(move || back_up(&from, &to));
            self.copying = Some(Copying { made, begun: now });
            return Some(now + COPY_AGE);
        }
        // Bits flip below coordinators that run; files are lost or cut while nobody has them open.
        if planned.fault != Fault::FlipBit {
            if fleet.is_sparing() {
                return None;
            }
            fleet.end_coordinators();
        }
        let data = fleet.data();
        let run = newest(&data, planned.pick)?;
        let log = log_of(&data, &run);
        let before = kept(&log);
        let (segment, synced) = pick_segment(&log, planned.pick)?;
        let damage = spoil(planned, &segment, synced)?;
        self.damages.push((run.clone(), segment, damage));
        self.note(&run, &before, &kept(&log));
        Some(now)
    }

    /// Goes on with a restoration. Returns the runs that are not there any more.
    pub fn tend(&mut self, fleet: &mut Fleet, now: Instant, is_queue_right: bool) -> Vec<String> {
        let Some(copying) = &self.copying else { return Vec::new() };
        let is_well = fleet.has_sound_disks(now) && is_queue_right;
        if now < copying.begun + COPY_AGE || !copying.made.is_finished() || !is_well || fleet.is_sparing() {
            if now > copying.begun + RESTORED_WITHIN && copying.made.is_finished() {
                self.copying = None;
            }
            return Vec::new();
        }
        let is_whole = self.copying.take().is_some_and(|copying| copying.made.join().unwrap());
        assert!(is_whole, "the record store is copied");
        self.restore(fleet)
    }

    /// Ends a restoration that is not due yet.
    pub fn end(&mut self) {
        if let Some(copying) = self.copying.take() {
            copying.made.join().unwrap();
        }
    }

    fn restore(&mut self, fleet: &mut Fleet) -> Vec<String> {
        fleet.end_coordinators();
        let (data, copy) = (fleet.data(), fleet.at("copy"));
        let (there, had, mut before) = (names(&data), runs(&data), BTreeMap::new());
        for run in had.iter().cloned() {
            let (log, of_copy) = (log_of(&data, &run), log_of(&copy, &run));
            // A copy may hold every record, and not the seal that was set after them.
            if files(&log) != files(&of_copy) {
                before.insert(run, kept(&log));
            }
        }
        let mut rsync = Command::new("rsync");
        rsync.args(["--archive", "--delete", "--exclude=/filler"]);
        rsync.arg(format!("{}/", copy.display())).arg(&data);
        assert!(rsync.status().unwrap().success(), "the copy takes the place of the records");
        self.restored += 1;
        self.back.extend(runs(&data).into_iter().filter(|run| !had.contains(run)));
        let gone: Vec<String> = there.difference(&names(&data)).cloned().collect();
        for (run, before) in before {
            self.note(&run, &before, &kept(&log_of(&data, &run)));
        }
        self.gone.extend(gone.iter().cloned());
        gone
    }

    /// Notes what is not in the log of a run any more.
    fn note(&mut self, run: &RunId, before: &BTreeSet<RecordId>, after: &BTreeSet<RecordId>) {
        let taken: Vec<RecordId> = before.difference(after).cloned().collect();
        if !taken.is_empty() {
            self.lost.entry(run.clone()).or_default().extend(taken);
        }
    }

    /// Every damage that was done, for people.
    pub fn ledger(&self) -> String {
        let words =
            self.damages.iter().map(|(_, segment, damage)| format!("{} {damage:?}", segment.display()));
        words.collect::<Vec<_>>().join("\n")
    }

    /// Damages of a run that are still there, so that whoever reads its log must name them.
    pub fn standing(&self, data: &Path, run: &RunId) -> Vec<String> {
        let (torn, ends) = (torn_tails(&log_of(data, run)), newest_ends(&log_of(data, run)));
        let of_run = self.damages.iter().filter(|(of, ..)| of == run);
        let stands = of_run.filter(|(_, segment, damage)| {
            // Where nothing says how long it was, what is missing at the end of a writer's files cannot be seen.
            let is_noted = segment.with_extension("synced").is_file();
            let ends_at = || segment.file_name().and_then(|name| ends.get(name.to_str()?)).copied();
            let known = if is_noted { u64::MAX } else { ends_at().unwrap_or_default() };
            match damage {
                Damage::Flipped(offset, byte) => {
                    // Nor can what is left of a last frame be told from one that was not written whole.
                    let looks_torn = known <= *offset && torn.get(segment).is_some_and(|torn| torn <= offset);
                    !looks_torn && byte_at(segment, *offset) == Some(*byte)
                }
                Damage::Cut(length) => known > *length && length_of(segment) == Some(*length),
                Damage::Missing => known > 0 && !segment.exists(),
            }
        });
        stands.map(|(_, segment, damage)| format!("{} {damage:?}", segment.display())).collect()
    }
}

/// Copies records as docs/operating.md says, what the logs belong to before the logs.
fn back_up(from: &Path, to: &Path) -> bool {
    let _ = fs::remove_dir_all(to);
    let logs_last: [&[&str]; 2] = [
        &["--exclude=*.kglog", "--exclude=*.synced", "--exclude=*.lock", "--exclude=/filler"],
        &["--include=*/", "--include=*.kglog", "--include=*.kgpack", "--exclude=*"],
    ];
    logs_last.iter().all(|patterns| {
        let mut rsync = Command::new("rsync");
        rsync.arg("--archive").args(*patterns).arg(format!("{}/", from.display())).arg(to);
        // 24: a file vanished meanwhile, such as one of a run that was removed.
        rsync
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|status| matches!(status.code(), Some(0 | 24)))
    })
}

/// Whether this machine can copy a record store.
pub fn can_copy() -> bool {
    Command::new("rsync").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The segments of a log that end as a killed process leaves them, and where.
fn torn_tails(log: &Path) -> BTreeMap<PathBuf, u64> {
    let items = LogReader::open(log, None).into_iter().flatten().flatten();
    let torn = items.filter_map(|item| match item {
        LogItem::Damage(Damaged { path, offset, kind: DamageKind::TornTail { .. } }) => Some((path, offset)),
        LogItem::Damage(_) | LogItem::Record { .. } | LogItem::Event { .. } => None,
    });
    torn.collect()
}

/// The lengths of segments of earlier epochs, as the newest epoch of a log has fixed them, by their names.
fn newest_ends(log: &Path) -> BTreeMap<String, u64> {
    let names = files(log).into_iter().map(|(name, _)| name);
    let newest = names.filter(|name| name.extension().is_some_and(|is| is == "ends")).max();
    let text = newest.and_then(|name| fs::read_to_string(log.join(name)).ok()).unwrap_or_default();
    let line: Value =
        text.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let segments = line["segments"].as_object().into_iter().flatten();
    segments.filter_map(|(name, end)| Some((name.clone(), end["bytes"].as_u64()?))).collect()
}

/// The names of all runs and judged benchmarks.
fn names(data: &Path) -> BTreeSet<String> {
    let documents = fs::read_dir(data.join("pipelines")).into_iter().flatten().flatten();
    let judged = documents.filter_map(|file| Some(file.file_name().to_str()?.split('.').next()?.to_owned()));
    runs(data).iter().map(ToString::to_string).chain(judged).collect()
}

/// One of the newest runs that have records.
fn newest(data: &Path, pick: usize) -> Option<RunId> {
    let age = |run: &RunId| fs::metadata(log_of(data, run)).and_then(|log| log.modified()).ok();
    let mut runs = runs(data);
    runs.sort_by_key(age);
    let mut newest = runs.into_iter().rev().filter(|run| !sizes(&log_of(data, run)).is_empty());
    let mut newest: Vec<RunId> = newest.by_ref().take(NEWEST).collect();
    (!newest.is_empty()).then(|| newest.swap_remove(pick % newest.len()))
}

/// Names and lengths of the segments in the folder of a log.
fn sizes(log: &Path) -> Vec<(PathBuf, u64)> {
    let mut segments = files(log);
    segments.retain(|(name, _)| name.extension().is_some_and(|is| is == "kglog"));
    segments
}

/// Names and lengths of the segments and ends in the folder of a log.
fn files(log: &Path) -> Vec<(PathBuf, u64)> {
    let paths = fs::read_dir(log).into_iter().flatten().flatten().map(|file| file.path());
    let counts = |path: &PathBuf| path.extension().is_some_and(|is| is == "kglog" || is == "ends");
    let mut files: Vec<(PathBuf, u64)> =
        paths.filter(counts).filter_map(|path| Some((path.file_name()?.into(), length_of(&path)?))).collect();
    files.sort();
    files
}

/// A segment that holds something, and how much of it is on the disk for certain.
fn pick_segment(log: &Path, pick: usize) -> Option<(PathBuf, u64)> {
    let known = |path: &Path| {
        let mark = fs::read(path.with_extension("synced")).ok()?;
        Some(u64::from_le_bytes(mark.get(8..16)?.try_into().ok()?))
    };
    let mut segments: Vec<(PathBuf, u64)> = Vec::new();
    for (name, length) in sizes(log) {
        let path = log.join(name);
        let synced = known(&path).unwrap_or(length).min(length);
        if synced > 0 {
            segments.push((path, synced));
        }
    }
    (!segments.is_empty()).then(|| segments.swap_remove(pick / NEWEST % segments.len()))
}

fn spoil(planned: &Planned, segment: &Path, synced: u64) -> Option<Damage> {
    let at = (planned.pick as u64 / 64) % synced;
    Some(match planned.fault {
        Fault::FlipBit => {
            let byte = byte_at(segment, at)? ^ (1 << (planned.pick % 8));
            File::options().write(true).open(segment).ok()?.write_all_at(&[byte], at).ok()?;
            Damage::Flipped(at, byte)
        }
        Fault::CutTail => {
            File::options().write(true).open(segment).ok()?.set_len(at).ok()?;
            Damage::Cut(at)
        }
        _ => {
            fs::remove_file(segment).ok()?;
            Damage::Missing
        }
    })
}

fn byte_at(path: &Path, offset: u64) -> Option<u8> {
    let mut byte = [0];
    File::open(path).ok()?.read_exact_at(&mut byte, offset).ok()?;
    Some(byte[0])
}

fn length_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

#[test]
fn a_bit_in_what_is_left_of_a_frame_is_to_be_named_where_a_note_says_that_it_was_whole() {
    let data = tempfile::tempdir().unwrap();
    let run = RunId::new("r");
    let log = log_of(data.path(), &run);
    fs::create_dir_all(&log).unwrap();
    let mut writer = LogWriter::open(&log, LogOptions::default()).unwrap();
    writer.append_raw(&LogLine::Event("{}")).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let (name, length) = sizes(&log).remove(0);
    let segment = log.join(name);
    let (file, left) = (File::options().write(true).open(&segment).unwrap(), length - 2);
    let byte = byte_at(&segment, left - 1).unwrap() ^ 1;
    file.write_all_at(&[byte], left - 1).unwrap();
    file.set_len(left).unwrap();
    let flipped = (run.clone(), segment.clone(), Damage::Flipped(left - 1, byte));
    let losses = Losses { damages: vec![flipped], ..Losses::default() };
    assert_eq!(losses.standing(data.path(), &run).len(), 1);
    fs::remove_file(segment.with_extension("synced")).unwrap();
    assert!(losses.standing(data.path(), &run).is_empty());
}

#[test]
fn a_lost_segment_is_to_be_named_where_the_ends_of_a_later_epoch_name_it() {
    let data = tempfile::tempdir().unwrap();
    let run = RunId::new("r");
    let log = log_of(data.path(), &run);
    fs::create_dir_all(&log).unwrap();
    for _ in 0..2 {
        let mut writer = LogWriter::open(&log, LogOptions::default()).unwrap();
        writer.append_raw(&LogLine::Event("{}")).unwrap();
        writer.commit().unwrap();
    }
    let (name, _) = sizes(&log).remove(0);
    let segment = log.join(name);
    let losses =
        Losses { damages: vec![(run.clone(), segment.clone(), Damage::Missing)], ..Losses::default() };
    assert!(losses.standing(data.path(), &run).is_empty(), "it is there");
    fs::remove_file(&segment).unwrap();
    fs::remove_file(segment.with_extension("synced")).unwrap();
    assert_eq!(losses.standing(data.path(), &run).len(), 1);
    assert_eq!(results::log::verify(&log, None, None).unwrap().losses, 1);
}
