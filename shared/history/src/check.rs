//! Checks a history: compares what coordinators noted with the record log.
//!
//! A coordinator that was killed may have acted without noting it. So a missing event is a finding only if it must be
//! noted before the action.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use domain::{DialogueKey, RecordId, Standing, WorkerId};
use queue::{Fence, UnitId};
use serde::Serialize;

use crate::event::{Effect, Event, LeaseEnding, LostRecord, Noted, Winners};

/// Maximum number of findings listed; more are only counted.
pub const TOLD_MAX: usize = 100;

/// Maximum difference between the clocks of coordinators on different machines, in milliseconds.
const CLOCKS_APART_MS: u64 = 1_000;

/// The part of a record log's entry that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub record: RecordId,
    /// Its dialogue.
    pub key: DialogueKey,
    pub ticket: u64,
    /// Whether it has scores.
    pub scored: bool,
    /// Whether it arrived after its run had finished.
    pub late: bool,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A record was acknowledged or committed to the queue, and the log does not contain it.
    Lost,
    /// A dialogue counts twice.
    Doubled,
    /// A fence changed the queue although its unit had changed hands.
    StaleFence,
    /// A unit was leased while another worker's lease on it was in force.
    GrantedTwice,
    /// The winner of a dialogue is not the one that the rule gives, or not the one that counted when the run finished.
    WinnerChanged,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Lost, Self::Doubled, Self::StaleFence, Self::GrantedTwice, Self::WinnerChanged];
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lost => "records acknowledged and lost",
            Self::Doubled => "dialogues counted twice",
            Self::StaleFence => "stale fences honoured",
            Self::GrantedTwice => "units granted while another lease was in force",
            Self::WinnerChanged => "winners changed",
        })
    }
}

/// A contradiction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The message, for people.
    pub what: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    /// Number of events checked.
    pub events: u64,
    /// Leases among them.
    pub grants: u64,
    /// Records that were acknowledged.
    pub acknowledged: u64,
    /// Entries of the log that are not winners.
    pub superseded: u64,
    /// Contradictions explained by an event [`WritesLost`](crate::event::Event::WritesLost) or
    /// [`RecordsLost`](crate::event::Event::RecordsLost); they are not findings.
    pub excused: u64,
    /// The first [`TOLD_MAX`] of these contradictions.
    pub excuses: Vec<Finding>,
    /// Whether the event log of a coordinator was cut off; what it did afterwards is not checked.
    pub cut: bool,
    /// Number of findings by kind.
    pub counts: BTreeMap<FindingKind, u64>,
    /// The first [`TOLD_MAX`] findings.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Whether there are no findings.
    pub fn is_right(&self) -> bool {
        self.counts.values().all(|count| *count == 0)
    }

    /// Number of findings of a kind.
    pub fn count(&self, kind: FindingKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    fn excuse(&mut self, kind: FindingKind, what: String) {
        self.excused += 1;
        if self.excuses.len() < TOLD_MAX {
            self.excuses.push(Finding { kind, what });
        }
    }

    fn find(&mut self, kind: FindingKind, what: String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.findings.len() < TOLD_MAX {
            self.findings.push(Finding { kind, what });
        }
    }
}

/// A unit in one generation of its queue.
type Unit = (u64, UnitId);

/// One lease, with everything that was noted about it.
#[derive(Debug)]
struct Lease {
    worker: WorkerId,
    granted_at_ms: u64,
    /// By the queue's clock.
    from_ms: u64,
    until_ms: u64,
    /// Whether a coordinator noted that it was about to end it by its fence.
    ended: bool,
    /// How and when it ended, each time that the queue said so.
    endings: Vec<(LeaseEnding, u64)>,
}

/// What a contradiction is about, in one generation of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum About<'a> {
    /// One attempt at a unit.
    Attempt(Unit, u32),
    /// An attempt and the one before it.
    Succession(Unit, u32),
    Dialogue(u64, &'a DialogueKey),
}

/// The events, sorted by what they are about.
#[derive(Default)]
struct Notes<'a> {
    lease_ms: HashMap<u64, u64>,
    leases: BTreeMap<Unit, BTreeMap<u32, Lease>>,
    /// When all leases of a worker were about to be taken over.
    reaped_workers: HashMap<(u64, &'a WorkerId), Vec<u64>>,
    /// How often each unit was taken over.
    reaped_units: HashMap<Unit, u32>,
    /// Periods whose writes the queue lost: from and until.
    lost_ms: Vec<(u64, u64)>,
    /// The contradictions that each of these losses has explained.
    excused: HashSet<(usize, FindingKind, About<'a>)>,
}

impl<'a> Notes<'a> {
    fn of(events: &'a [Noted], report: &mut CheckReport) -> Self {
        let mut notes = Self::default();
        for noted in events {
            match &noted.event {
                Event::Opened { generation, lease_ms } => {
                    notes.lease_ms.insert(*generation, *lease_ms);
                }
                Event::WritesLost { since_ms } => notes.lost_ms.push((*since_ms, noted.at_ms)),
                Event::Cut {} => report.cut = true,
                Event::Reaping { generation, worker: Some(worker) } => {
                    notes.reaped_workers.entry((*generation, worker)).or_default().push(noted.at_ms);
                }
                Event::Reaped { generation, units } => {
                    for unit in units {
                        *notes.reaped_units.entry((*generation, *unit)).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        // Grants first: a coordinator may have noted the end of a lease that another one gave.
        for noted in events {
            if let Event::Granted { fence, worker, until_ms } = &noted.event {
                report.grants += 1;
                notes.grant(noted.at_ms, fence, worker, *until_ms, report);
            }
        }
        for noted in events {
            match &noted.event {
                Event::Renewed { worker, held, until_ms } => {
                    for fence in held {
                        if let Some(lease) = notes.lease(fence).filter(|lease| lease.worker == *worker) {
                            lease.until_ms = lease.until_ms.max(*until_ms);
                        }
                    }
                }
                Event::Ending { fences, .. } => {
                    for fence in fences {
                        if let Some(lease) = notes.lease(fence) {
                            lease.ended = true;
                        }
                    }
                }
                Event::Ended { ending, fences } => {
                    for fence in fences {
                        if let Some(lease) = notes.lease(fence) {
                            lease.endings.push((*ending, noted.at_ms));
                        }
                    }
                }
                _ => {}
            }
        }
        notes
    }

    fn lease(&mut self, fence: &Fence) -> Option<&mut Lease> {
        self.leases.get_mut(&(fence.generation, fence.unit))?.get_mut(&fence.attempt)
    }

    fn grant(
        &mut self,
        at_ms: u64,
        fence: &Fence,
        worker: &WorkerId,
        until_ms: u64,
        report: &mut CheckReport,
    ) {
        let lease_ms = self.lease_ms.get(&fence.generation).copied().unwrap_or_default();
        let of_unit = self.leases.entry((fence.generation, fence.unit)).or_default();
        let Some(first) = of_unit.get(&fence.attempt) else {
            let from_ms = until_ms.saturating_sub(lease_ms);
            let (worker, endings) = (worker.clone(), Vec::new());
            let lease = Lease { worker, granted_at_ms: at_ms, from_ms, until_ms, ended: false, endings };
            of_unit.insert(fence.attempt, lease);
            return;
        };
        if first.worker != *worker {
            let (one, two) = (first.worker.clone(), worker.clone());
            let first_at_ms = first.granted_at_ms;
            let about = About::Attempt((fence.generation, fence.unit), fence.attempt);
            self.found(report, FindingKind::GrantedTwice, about, [first_at_ms, at_ms], || {
                format!("attempt {} of unit {} went to {one} and to {two}", fence.attempt, fence.unit)
            });
        }
    }

    /// Adds a finding, unless a test made the queue lose its writes at one of the two times. A lost write is repeated
    /// once, so each loss explains one contradiction of a kind about the same thing.
    fn found(
        &mut self,
        report: &mut CheckReport,
        kind: FindingKind,
        about: About<'a>,
        moments_ms: [u64; 2],
        what: impl FnOnce() -> String,
    ) {
        let lies_in = |(since, until): (u64, u64)| {
            let is_in = |at_ms: u64| since <= at_ms + CLOCKS_APART_MS && at_ms <= until + CLOCKS_APART_MS;
            moments_ms.into_iter().any(is_in)
        };
        for (loss, window) in self.lost_ms.iter().enumerate() {
            if lies_in(*window) && self.excused.insert((loss, kind, about.clone())) {
                return report.excuse(kind, what());
            }
        }
        report.find(kind, what());
    }

    /// Checks that each lease ended before the next one of its unit began, and that each ended once. Nothing is asked of the
    /// leases of a run that was removed: its queue may have been built anew, and forgotten, by who did not know of that yet.
    fn leases(&mut self, removed: u64, report: &mut CheckReport) {
        let all = std::mem::take(&mut self.leases);
        for (&(generation, unit), leases) in all.iter().filter(|((generation, _), _)| *generation > removed) {
            let mut before: Option<(u32, &Lease)> = None;
            // Each taking over ends one lease. They are counted, not timed: a coordinator's clock may be set.
            let mut reaped = self.reaped_units.get(&(generation, unit)).copied().unwrap_or_default();
            for (&attempt, lease) in leases {
                if let Some((earlier, previous)) = before {
                    let was_reaped = !previous.ended && reaped > 0;
                    reaped -= u32::from(was_reaped);
                    let at = |ending: LeaseEnding| previous.endings.iter().find(|(how, _)| *how == ending);
                    if let Some(&(_, ended_ms)) = at(LeaseEnding::Finish) {
                        let about = About::Succession((generation, unit), attempt);
                        let moments = [ended_ms, lease.granted_at_ms];
                        self.found(report, FindingKind::StaleFence, about, moments, || {
                            format!("unit {unit} was finished by attempt {earlier}, and leased as attempt {attempt}")
                        });
                    } else if !was_reaped && !self.is_explained(generation, previous, lease) {
                        let about = About::Succession((generation, unit), attempt);
                        let moments = [previous.granted_at_ms, lease.granted_at_ms];
                        self.found(report, FindingKind::GrantedTwice, about, moments, || {
                            format!(
                                "unit {unit}: attempt {attempt} went to {} while {} held attempt {earlier}",
                                lease.worker, previous.worker
                            )
                        });
                    }
                }
                if let [(_, first), (_, second), ..] = lease.endings[..] {
                    let about = About::Attempt((generation, unit), attempt);
                    self.found(report, FindingKind::StaleFence, about, [first, second], || {
                        format!("attempt {attempt} of unit {unit} ended {} times", lease.endings.len())
                    });
                }
                before = Some((attempt, lease));
            }
        }
        self.leases = all;
    }

    /// Whether something ended a lease before the next one of its unit.
    fn is_explained(&self, generation: u64, previous: &Lease, next: &Lease) -> bool {
        let after = |times: Option<&Vec<u64>>| {
            times.is_some_and(|times| times.iter().any(|at| at + CLOCKS_APART_MS >= previous.granted_at_ms))
        };
        previous.ended
            || next.from_ms >= previous.until_ms
            || after(self.reaped_workers.get(&(generation, &previous.worker)))
    }
}

/// Compares the events of coordinators with the record log.
pub fn check(events: &[Noted], log: &[Kept]) -> CheckReport {
    let mut report = CheckReport { events: events.len() as u64, ..CheckReport::default() };
    let mut notes = Notes::of(events, &mut report);
    notes.leases(last_removed(events), &mut report);
    records(events, log, &mut notes, &mut report);
    winners(events, log, &mut report);
    report
}

/// Checks that acknowledged records are in the log, and that the queue counts each dialogue once.
fn records<'a>(events: &'a [Noted], log: &[Kept], notes: &mut Notes<'a>, report: &mut CheckReport) {
    let ids: HashSet<&RecordId> = log.iter().map(|kept| &kept.record).collect();
    let entries: HashSet<(&DialogueKey, u64, bool)> =
        log.iter().map(|kept| (&kept.key, kept.ticket, kept.scored)).collect();
    // Excused is what was taken from the log by its name, and nothing else.
    let taken: Vec<&LostRecord> = losses(events).flatten().collect();
    let taken_ids: HashSet<&RecordId> = taken.iter().map(|lost| &lost.record).collect();
    let taken_entries: HashSet<(&DialogueKey, u64, bool)> =
        taken.iter().map(|lost| (&lost.key, lost.ticket, lost.scored)).collect();
    // What the queue holds of each dialogue, as far as it was noted.
    let mut firsts: HashMap<(u64, &DialogueKey), (u64, u64)> = HashMap::new();
    let removed = last_removed(events);
    for Noted { at_ms, event, .. } in events {
        match event {
            Event::Acknowledged { record, generation } => {
                report.acknowledged += 1;
                if !ids.contains(record) && (removed == 0 || *generation > removed) {
                    let what = format!("record {record} was acknowledged");
                    match taken_ids.contains(record) {
                        true => report.excuse(FindingKind::Lost, what),
                        false => report.find(FindingKind::Lost, what),
                    }
                }
            }
            Event::Committed { generation, key, scored, ticket, effect } => {
                let entry = (key, *ticket, *scored);
                if !entries.contains(&entry) && (removed == 0 || *generation > removed) {
                    let what = format!("the queue was told of ticket {ticket} of {key}");
                    match taken_entries.contains(&entry) {
                        true => report.excuse(FindingKind::Lost, what),
                        false => report.find(FindingKind::Lost, what),
                    }
                }
                match effect {
                    Effect::First => {
                        let before = firsts.insert((*generation, key), (*at_ms, *ticket));
                        if let Some((first_ms, first)) = before {
                            let about = About::Dialogue(*generation, key);
                            notes.found(report, FindingKind::Doubled, about, [first_ms, *at_ms], || {
                                format!(
                                    "tickets {first} and {ticket} of {key} were both counted as its first"
                                )
                            });
                        }
                    }
                    Effect::Supersedes { scored: old_scored, ticket: old } => {
                        let new = Standing::new(*scored, *ticket);
                        if !new.beats(Standing::new(*old_scored, *old)) {
                            let what = format!("ticket {ticket} of {key} replaced ticket {old}");
                            report.find(FindingKind::WinnerChanged, what);
                        }
                    }
                    Effect::Repeated | Effect::Loses => {}
                }
            }
            _ => {}
        }
    }
}

/// The last generation of runs of this name that were removed, with whatever they held; 0 if none was. Where a coordinator's
/// clock was ahead when it chose that generation, the next run may have begun in a lower one, of which nothing is asked then.
fn last_removed(events: &[Noted]) -> u64 {
    let of_event = |noted: &Noted| match noted.event {
        Event::Removed { generation } => Some(generation),
        _ => None,
    };
    events.iter().filter_map(of_event).max().unwrap_or_default()
}

/// What was taken from the log, each time.
fn losses(events: &[Noted]) -> impl DoubleEndedIterator<Item = &Vec<LostRecord>> {
    events.iter().filter_map(|noted| match &noted.event {
        Event::RecordsLost { records } => Some(records),
        _ => None,
    })
}

/// The best record of each dialogue.
type Standings<'a> = HashMap<&'a DialogueKey, Standing>;

fn add<'a>(winners: &mut Standings<'a>, key: &'a DialogueKey, standing: Standing) {
    winners.entry(key).and_modify(|winner| *winner = standing.min(*winner)).or_insert(standing);
}

fn add_kept<'a>(winners: &mut Standings<'a>, kept: &'a Kept) {
    add(winners, &kept.key, Standing::new(kept.scored, kept.ticket).late(kept.late));
}

fn add_lost<'a>(winners: &mut Standings<'a>, lost: &'a LostRecord) {
    add(winners, &lost.key, Standing::new(lost.scored, lost.ticket).late(lost.late));
}

fn summed_up(winners: &Standings<'_>) -> Winners {
    let mut sum = Winners::default();
    for (key, standing) in winners {
        sum.add(key, standing.is_scored(), standing.ticket());
    }
    sum
}

/// Whether a run that finished at this time and with this seal went on since: the seal after it opens the log again, and the
/// one after that closes it anew. A coordinator that was killed in between may have noted either of them alone. Times tell
/// only where no seal was noted: the clocks of coordinators differ, and a test sets them.
fn went_on(events: &[Noted]) -> impl Fn(u64, u32) -> bool {
    let (mut reopened_ms, mut later) = (None, HashSet::new());
    for Noted { at_ms, event, .. } in events {
        match event {
            Event::Reopened { seal } => {
                reopened_ms = reopened_ms.max(Some(*at_ms));
                later.insert(*seal);
            }
            Event::Finished { seal, .. } => drop(later.insert(*seal)),
            _ => {}
        }
    }
    move |at_ms, seal| match seal {
        0 => reopened_ms.is_some_and(|at| at >= at_ms),
        seal => later.contains(&(seal + 1)) || later.contains(&(seal + 2)),
    }
}

/// What may have counted before the last loss, before the last two, and so on: a run that finished then had these records.
/// Among them are those that earlier losses had taken, unless an older copy of the log brought them back only later: both
/// are possible.
fn before_losses(events: &[Noted], log: &[Kept], now: Standings<'_>) -> Vec<Winners> {
    let losses: Vec<&Vec<LostRecord>> = losses(events).collect();
    let mut winners = now;
    let mut before = Vec::new();
    for at in (0..losses.len()).rev() {
        let (earlier, later) = losses.split_at(at);
        let there: HashSet<&RecordId> = later.iter().copied().flatten().map(|lost| &lost.record).collect();
        let away: HashSet<&RecordId> = earlier
            .iter()
            .copied()
            .flatten()
            .map(|lost| &lost.record)
            .filter(|record| !there.contains(record))
            .collect();
        losses[at].iter().for_each(|lost| add_lost(&mut winners, lost));
        before.push(summed_up(&winners));
        if log.iter().any(|kept| away.contains(&kept.record)) {
            let mut without = Standings::new();
            let present = log.iter().filter(|kept| !away.contains(&kept.record));
            present.for_each(|kept| add_kept(&mut without, kept));
            later.iter().copied().flatten().for_each(|lost| add_lost(&mut without, lost));
            before.push(summed_up(&without));
        }
    }
    before
}

/// Whether a run that finished under this seal finished under one of no higher number in another generation, and its log had
/// losses: an older copy of the log lacks its latest seals too, and their numbers are given again. So it may lack the
/// generations, and the other one may have a lower number where a coordinator's clock is behind.
fn lost_its_seal(events: &[Noted], generation: u64, seal: u32) -> bool {
    let finished_again = |noted: &Noted| matches!(&noted.event, Event::Finished { generation: other, seal: again, .. } if *other != generation && *again <= seal);
    seal > 0 && losses(events).next().is_some() && events.iter().any(finished_again)
}

/// Checks that the winners are those that counted when the run finished.
fn winners(events: &[Noted], log: &[Kept], report: &mut CheckReport) {
    let mut winners = Standings::new();
    for kept in log {
        add_kept(&mut winners, kept);
    }
    report.superseded = (log.len() - winners.len()) as u64;
    let now = summed_up(&winners);
    let before = before_losses(events, log, winners);
    let (is_past, removed) = (went_on(events), last_removed(events));
    for noted in events {
        let Event::Finished { winners: then, generation, seal } = &noted.event else { continue };
        let is_of_before = *generation > 0 && *generation <= removed;
        // What counted before the run went on may change.
        if is_of_before || is_past(noted.at_ms, *seal) || *then == now {
            continue;
        }
        let (kind, what) = if then.dialogues > now.dialogues {
            let what =
                format!("{} dialogues counted when the run finished, {} do", then.dialogues, now.dialogues);
            (FindingKind::Doubled, what)
        } else {
            let what = format!(
                "when the run finished, {} of {} dialogues were scored; the log says {} of {}, or others of their records",
                then.scored, then.dialogues, now.scored, now.dialogues
            );
            (FindingKind::WinnerChanged, what)
        };
        match before.contains(then) || lost_its_seal(events, *generation, *seal) {
            true => report.excuse(kind, what),
            false => report.find(kind, what),
        }
    }
}

#[cfg(test)]
mod tests;
