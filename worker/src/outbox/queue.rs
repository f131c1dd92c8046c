//! The order of delivery: a plain state machine that takes the time and does no IO.
//!
//! Every run has its own lane, so that a blocked run does not block others. The records of a lane are sent in the
//! order of arrival, in batches, several batches in flight at once. If a batch fails, all unacknowledged records of
//! its lane are sent again in order after a delay. A lane whose run the coordinator does not know, or cannot load, is
//! *stranded*: its records are offered at intervals of minutes rather than seconds, indefinitely.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use domain::RunId;
use domain::exchange::Delivery;
use tokio::time::Instant;

use super::spool::SpoolLocation;
use crate::slots::Tag;
use domain::Backoff;

pub const BATCH_RECORDS_MAX: usize = 256;

/// Maximum size of a batch in bytes; a larger record is sent alone.
pub const BATCH_BYTES_MAX: u64 = 1 << 20;

/// Batches in flight at once, so that the next one travels while the coordinator's disk syncs the last.
pub const IN_FLIGHT_MAX: usize = 4;

/// Number of records that trigger a batch.
pub const BATCH_RECORDS_WANTED: usize = 64;

/// Age of the oldest record that triggers a batch.
pub const LINGER: Duration = Duration::from_millis(10);

/// Shortest and longest time between two offers of records of an unknown run. A mistake such as an unmounted volume
/// is fixed within minutes or days.
pub const STRANDED_MIN: Duration = Duration::from_secs(5);
pub const STRANDED_MAX: Duration = Duration::from_secs(600);

/// Where a record's text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In memory only.
    Memory(Delivery),
    /// In the spool.
    Disk(SpoolLocation),
}

/// A record without a receipt. Not a [`Delivery`] itself: its text may be on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRecord {
    pub run: RunId,
    /// The dialogue, where this process held it.
    pub tag: Option<Tag>,
    /// The record.
    pub body: Body,
    /// Its size.
    pub bytes: u64,
    /// Its time of arrival.
    pub since: Instant,
}

/// Records sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub run: RunId,
    /// Its number; rises with every batch.
    pub number: u64,
    pub records: Vec<QueuedRecord>,
}

/// Records without receipts.
#[derive(Debug, Default)]
pub struct Queue {
    lanes: BTreeMap<RunId, RunLane>,
    /// The lane served last.
    last: Option<RunId>,
    /// Batches in flight, of all lanes.
    in_flight: usize,
    next_number: u64,
}

/// Pending records by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingRecords {
    /// Records of an earlier process that were not offered yet.
    pub recovered: u64,
    /// Records of stranded lanes.
    pub stranded: u64,
}

impl Queue {
    /// Adds a record.
    pub fn push(&mut self, record: QueuedRecord) {
        let lane = self.lanes.entry(record.run.clone()).or_default();
        lane.records += 1;
        lane.recovered += u64::from(record.tag.is_none());
        lane.waiting.push_back(record);
    }

    /// The batch to send now. Lanes take turns.
    pub fn next(&mut self, now: Instant) -> Option<Batch> {
        if self.in_flight >= IN_FLIGHT_MAX {
            return None;
        }
        let after = self.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.last.clone().map_or(Bound::Excluded(RunId::new("")), Bound::Included);
        let turns: Vec<RunId> = self
            .lanes
            .range((after, Bound::Unbounded))
            .chain(self.lanes.range((Bound::Unbounded, before)))
            .map(|(run, _)| run.clone())
            .collect();
        for run in turns {
            let batch = self.lanes.get_mut(&run).and_then(|lane| lane.next(&run, now, &mut self.next_number));
            if batch.is_some() {
                self.last = Some(run);
                self.in_flight += 1;
                return batch;
            }
        }
        None
    }

    /// A batch arrived: this many of its records are done, `recovered` of them from an earlier process.
    pub fn arrived(&mut self, run: &RunId, done: u64, recovered: u64) {
        self.in_flight -= 1;
        let Some(lane) = self.lanes.get_mut(run) else { return };
        lane.in_flight -= 1;
        lane.done(done, recovered);
        lane.backoff.reset();
        lane.stranded = None;
        lane.not_before = None;
        if lane.records == 0 {
            self.lanes.remove(run);
        }
    }

    /// A batch failed, or its result is unknown.
    pub fn failed(&mut self, batch: Batch, now: Instant) {
        self.in_flight -= 1;
        let lane = self.lanes.entry(batch.run.clone()).or_default();
        lane.again(batch);
        // Batches that failed together count as one failure.
        if lane.not_before.is_none_or(|until| until <= now) {
            lane.not_before = Some(now + lane.backoff.next_delay());
        }
    }

    /// The remaining records of a batch cannot be stored because of their run; returns when they are offered again.
    pub fn strand(&mut self, batch: Batch, done: u64, recovered: u64, now: Instant) -> Instant {
        self.in_flight -= 1;
        let lane = self.lanes.entry(batch.run.clone()).or_default();
        lane.done(done, recovered);
        lane.again(batch);
        let until = lane.not_before.filter(|until| lane.stranded.is_some() && *until > now);
        let delay =
            lane.stranded.get_or_insert_with(|| Backoff::new(STRANDED_MIN, STRANDED_MAX)).next_delay();
        *lane.not_before.insert(until.unwrap_or(now + delay))
    }

    /// The run seems to be known again: a stranded lane is offered at once.
    pub fn offer(&mut self, run: &RunId, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(run).filter(|lane| lane.stranded.is_some()) {
            lane.not_before = Some(now);
        }
    }

    /// When [`Queue::next`] may return a batch without another event.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.in_flight >= IN_FLIGHT_MAX {
            return None;
        }
        self.lanes.values().filter_map(RunLane::wake_at).min()
    }

    /// Whether nothing is pending or in flight.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub fn pending(&self) -> PendingRecords {
        let mut waiting = PendingRecords::default();
        for lane in self.lanes.values() {
            match lane.stranded {
                Some(_) => waiting.stranded += lane.records,
                None => waiting.recovered += lane.recovered,
            }
        }
        waiting
    }
}

/// The records of one run.
#[derive(Debug, Default)]
struct RunLane {
    waiting: VecDeque<QueuedRecord>,
    /// Failed batches, in order.
    again: BTreeMap<u64, Batch>,
    /// Batches in flight.
    in_flight: usize,
    /// Records pending and in flight.
    records: u64,
    /// Of these, records of an earlier process.
    recovered: u64,
    backoff: Backoff,
    /// Set while it is stranded: the current interval.
    stranded: Option<Backoff>,
    not_before: Option<Instant>,
}

impl RunLane {
    fn next(&mut self, run: &RunId, now: Instant, next_number: &mut u64) -> Option<Batch> {
        if self.not_before.is_some_and(|until| now < until) {
            return None;
        }
        // While there are failed batches, only these are sent, one at a time, until one succeeds.
        if let Some((_, batch)) =
            (self.in_flight == 0 || self.not_before.is_none()).then(|| self.again.pop_first()).flatten()
        {
            self.in_flight += 1;
            return Some(batch);
        }
        let oldest = self.waiting.front()?.since;
        let ready = self.waiting.len() >= BATCH_RECORDS_WANTED || now >= oldest + LINGER;
        if !ready || self.not_before.is_some() && self.in_flight > 0 {
            return None;
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        while let Some(record) = self.waiting.front() {
            bytes += record.bytes;
            if !records.is_empty() && (bytes > BATCH_BYTES_MAX || records.len() == BATCH_RECORDS_MAX) {
                break;
            }
            records.extend(self.waiting.pop_front());
        }
        let number = *next_number;
        *next_number += 1;
        self.in_flight += 1;
        Some(Batch { run: run.clone(), number, records })
    }

    fn again(&mut self, batch: Batch) {
        self.in_flight -= 1;
        self.again.insert(batch.number, batch);
    }

    fn done(&mut self, records: u64, recovered: u64) {
        self.records -= records;
        self.recovered -= recovered;
    }

    fn wake_at(&self) -> Option<Instant> {
        let ready = match (self.again.is_empty(), self.waiting.front()) {
            (false, _) => self.not_before,
            (true, Some(oldest)) => {
                Some((oldest.since + LINGER).max(self.not_before.unwrap_or(oldest.since)))
            }
            (true, None) => None,
        };
        // After a failure, batches are sent one at a time, so that a success, not a clock, releases the next.
        ready.filter(|_| self.not_before.is_none() || self.in_flight == 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(n: u64, bytes: u64, since: Instant) -> QueuedRecord {
        of_run("r", n, bytes, since)
    }

    fn of_run(run: &str, n: u64, bytes: u64, since: Instant) -> QueuedRecord {
        let key = domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: n as u32 };
        let delivery = Delivery { run: run.into(), key, failure: None, json: "{}".into() };
        QueuedRecord { run: run.into(), tag: None, body: Body::Memory(delivery), bytes, since }
    }

    fn arrived(queue: &mut Queue, batch: &Batch) {
        let records = batch.records.len() as u64;
        queue.arrived(&batch.run, records, records);
    }

    fn iterations(batch: &Batch) -> Vec<u32> {
        let of = |record: &QueuedRecord| match &record.body {
            Body::Memory(delivery) => delivery.key.iteration,
            Body::Disk(_) => unreachable!(),
        };
        batch.records.iter().map(of).collect()
    }

    #[test]
    fn a_batch_leaves_when_it_is_full_or_has_waited() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(record(0, 10, now));
        assert_eq!(queue.next(now), None);
        assert_eq!(queue.wake_at(), Some(now + LINGER));
        let first = queue.next(now + LINGER).unwrap();
        assert_eq!(iterations(&first), [0]);
        (1..=64).for_each(|n| queue.push(record(n, 10, now)));
        assert_eq!(queue.next(now).unwrap().records.len(), 64);
        queue.push(record(65, 2 * BATCH_BYTES_MAX, now));
        queue.push(record(66, 10, now));
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [65], "a record of any size goes");
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [66]);
        queue.push(record(67, 10, now));
        assert_eq!((queue.next(now + LINGER), queue.wake_at()), (None, None), "four are under way");
        arrived(&mut queue, &first);
        assert!(queue.next(now + LINGER).is_some());
    }

    #[test]
    fn failed_batches_go_again_first_and_in_order() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        (0..3).for_each(|n| queue.push(record(n, BATCH_BYTES_MAX, now)));
        let (a, b) = (queue.next(now + LINGER).unwrap(), queue.next(now + LINGER).unwrap());
        queue.failed(b.clone(), now);
        queue.failed(a.clone(), now);
        assert_eq!(queue.next(now + LINGER), None);
        let later = queue.wake_at().unwrap();
        assert_eq!(queue.next(later).unwrap(), a);
        assert_eq!(queue.next(later), None, "one at a time, until it works again");
        arrived(&mut queue, &a);
        assert_eq!(queue.next(later).unwrap(), b);
        assert_eq!(iterations(&queue.next(later).unwrap()), [2]);
    }

    #[test]
    fn a_run_that_nobody_knows_keeps_no_other_waiting_and_is_offered_ever_more_seldom() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(of_run("lost", 0, 10, now));
        let mut now = now + LINGER;
        let lost = queue.next(now).unwrap();
        assert_eq!(queue.pending(), PendingRecords { recovered: 1, stranded: 0 });
        let mut again = queue.strand(lost.clone(), 0, 0, now);
        assert_eq!(queue.pending(), PendingRecords { recovered: 0, stranded: 1 });
        let mut longest = Duration::ZERO;
        for n in 1..40 {
            queue.push(of_run("good", n, 10, now - LINGER));
            let good = queue.next(now).unwrap();
            assert_eq!(good.run.as_str(), "good");
            arrived(&mut queue, &good);
            assert_eq!(queue.next(now), None);
            assert_eq!(queue.wake_at(), Some(again));
            now = again;
            assert_eq!(queue.next(now).unwrap(), lost);
            again = queue.strand(lost.clone(), 0, 0, now);
            longest = longest.max(again - now);
            assert!((STRANDED_MIN..=STRANDED_MAX).contains(&(again - now)));
        }
        assert!(longest > Duration::from_secs(60), "{longest:?}");
        queue.offer(&"lost".into(), now);
        let offered = queue.next(now).unwrap();
        arrived(&mut queue, &offered);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn every_record_arrives_and_none_is_forgotten(outcomes in prop::collection::vec(any::<bool>(), 0..60), sizes in prop::collection::vec(1..BATCH_BYTES_MAX, 1..40)) {
            let (mut queue, mut now) = (Queue::default(), Instant::now());
            let total = sizes.len();
            sizes.into_iter().enumerate().for_each(|(n, bytes)| queue.push(record(n as u64, bytes, now)));
            let (mut outcomes, mut under_way, mut done) = (outcomes.into_iter(), VecDeque::new(), Vec::new());
            while !queue.is_empty() {
                while let Some(batch) = queue.next(now + LINGER) {
                    under_way.push_back(batch);
                    prop_assert!(under_way.len() <= IN_FLIGHT_MAX);
                }
                match under_way.pop_front() {
                    Some(batch) if outcomes.next().unwrap_or(true) => {
                        done.extend(iterations(&batch));
                        arrived(&mut queue, &batch);
                    }
                    Some(batch) => queue.failed(batch, now),
                    None => now = queue.wake_at().expect("something waits, so there is a time to try again"),
                }
            }
            done.sort_unstable();
            prop_assert_eq!(done, (0..total as u32).collect::<Vec<_>>());
        }
    }
}
