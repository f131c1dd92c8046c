//! The order in which records leave: a plain state machine that takes the time and does no IO.
//!
//! Every run has a lane of its own, so that what keeps the records of one run keeps no others. Of a lane, records leave in
//! the order in which they came, in batches, several batches under way at once. When a batch fails, everything of its lane
//! that is not acknowledged goes again in order after a delay. A lane whose run the coordinator does not know, or cannot
//! load, is *parked*: its records are offered again after minutes rather than seconds, for as long as it takes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use domain::RunId;
use domain::exchange::Delivery;
use tokio::time::Instant;

use super::spool::Location;
use crate::slots::Tag;
use domain::Backoff;

pub const BATCH_RECORDS_MAX: usize = 256;

/// Bytes of one batch; one record may be larger, and goes alone.
pub const BATCH_BYTES_MAX: u64 = 1 << 20;

/// Batches under way at once: the next is on the way while the disk of the coordinator syncs the last.
pub const IN_FLIGHT_MAX: usize = 4;

/// A batch leaves when so many records wait.
pub const BATCH_RECORDS_WANTED: usize = 64;

/// A batch leaves when its first record has waited so long.
pub const LINGER: Duration = Duration::from_millis(10);

/// Shortest and longest time between two offers of records of a run that the coordinator does not know. A mistake such as
/// an unmounted volume is mended within minutes or within days.
pub const PARKED_MIN: Duration = Duration::from_secs(5);
/// The longest.
pub const PARKED_MAX: Duration = Duration::from_secs(600);

/// Where the text of a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In memory.
    Here(Delivery),
    /// On disk only.
    OnDisk,
}

/// A delivery that waits for its receipt. Not a [`Delivery`] itself: its text may lie on disk only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub run: RunId,
    /// The dialogue, where this process held it.
    pub tag: Option<Tag>,
    /// The record.
    pub body: Body,
    /// Where it lies on disk; none where it is in memory only.
    pub location: Option<Location>,
    /// Its size.
    pub bytes: u64,
    /// When it came.
    pub since: Instant,
}

/// What leaves at once, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The run of all its records.
    pub run: RunId,
    /// Rises with every batch; tells the order.
    pub number: u64,
    /// Its records.
    pub parcels: Vec<Parcel>,
}

/// Records that wait for their receipts.
#[derive(Debug, Default)]
pub struct Queue {
    lanes: BTreeMap<RunId, Lane>,
    /// The lane whose turn was last.
    last: Option<RunId>,
    /// Batches under way, of all lanes.
    in_flight: usize,
    next_number: u64,
}

/// What waits, by how long it will.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Records that an earlier process left behind and about which the coordinator has not been asked.
    pub recovered: u64,
    /// Records of parked lanes.
    pub parked: u64,
}

impl Queue {
    /// Adds a record.
    pub fn push(&mut self, parcel: Parcel) {
        let lane = self.lanes.entry(parcel.run.clone()).or_default();
        lane.records += 1;
        lane.recovered += u64::from(parcel.tag.is_none());
        lane.waiting.push_back(parcel);
    }

    /// The batch that is to leave now. Lanes take turns.
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

    /// A batch arrived: of its records so many are done with, `recovered` of which an earlier process left behind.
    pub fn arrived(&mut self, run: &RunId, done: u64, recovered: u64) {
        self.in_flight -= 1;
        let Some(lane) = self.lanes.get_mut(run) else { return };
        lane.in_flight -= 1;
        lane.done(done, recovered);
        lane.backoff.reset();
        lane.parked = None;
        lane.not_before = None;
        if lane.records == 0 {
            self.lanes.remove(run);
        }
    }

    /// A batch did not arrive, or nobody knows.
    pub fn failed(&mut self, batch: Batch, now: Instant) {
        self.in_flight -= 1;
        let lane = self.lanes.entry(batch.run.clone()).or_default();
        lane.again(batch);
        // Batches that failed together are one failure.
        if lane.not_before.is_none_or(|until| until <= now) {
            lane.not_before = Some(now + lane.backoff.next_delay());
        }
    }

    /// Records of a batch, all that are left of it, cannot be taken because of their run; when they are offered again.
    pub fn park(&mut self, batch: Batch, done: u64, recovered: u64, now: Instant) -> Instant {
        self.in_flight -= 1;
        let lane = self.lanes.entry(batch.run.clone()).or_default();
        lane.done(done, recovered);
        lane.again(batch);
        let until = lane.not_before.filter(|until| lane.parked.is_some() && *until > now);
        let delay = lane.parked.get_or_insert_with(|| Backoff::new(PARKED_MIN, PARKED_MAX)).next_delay();
        *lane.not_before.insert(until.unwrap_or(now + delay))
    }

    /// The run seems to be known: a parked lane is offered at once.
    pub fn offer(&mut self, run: &RunId, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(run).filter(|lane| lane.parked.is_some()) {
            lane.not_before = Some(now);
        }
    }

    /// When [`Queue::next`] may have something without anything else happening.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.in_flight >= IN_FLIGHT_MAX {
            return None;
        }
        self.lanes.values().filter_map(Lane::wake_at).min()
    }

    /// Whether nothing waits and nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// What waits.
    pub fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for lane in self.lanes.values() {
            match lane.parked {
                Some(_) => waiting.parked += lane.records,
                None => waiting.recovered += lane.recovered,
            }
        }
        waiting
    }
}

/// The records of one run.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Parcel>,
    /// Batches that failed, in order.
    again: BTreeMap<u64, Batch>,
    /// Batches under way.
    in_flight: usize,
    /// Records here and under way.
    records: u64,
    /// Of these, those that an earlier process left behind.
    recovered: u64,
    backoff: Backoff,
    /// Where it is parked: how long the waits are by now.
    parked: Option<Backoff>,
    not_before: Option<Instant>,
}

impl Lane {
    fn next(&mut self, run: &RunId, now: Instant, next_number: &mut u64) -> Option<Batch> {
        if self.not_before.is_some_and(|until| now < until) {
            return None;
        }
        // While failed batches wait, only they go, one at a time, until it works again.
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
        let (mut parcels, mut bytes) = (Vec::new(), 0);
        while let Some(parcel) = self.waiting.front() {
            bytes += parcel.bytes;
            if !parcels.is_empty() && (bytes > BATCH_BYTES_MAX || parcels.len() == BATCH_RECORDS_MAX) {
                break;
            }
            parcels.extend(self.waiting.pop_front());
        }
        let number = *next_number;
        *next_number += 1;
        self.in_flight += 1;
        Some(Batch { run: run.clone(), number, parcels })
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
        // After a failure batches go one at a time, so that an arrival, not a clock, lets the next one go.
        ready.filter(|_| self.not_before.is_none() || self.in_flight == 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parcel(n: u64, bytes: u64, since: Instant) -> Parcel {
        of_run("r", n, bytes, since)
    }

    fn of_run(run: &str, n: u64, bytes: u64, since: Instant) -> Parcel {
        let key = domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: n as u32 };
        let delivery = Delivery { run: run.into(), key, failure: None, json: "{}".into() };
        Parcel { run: run.into(), tag: None, body: Body::Here(delivery), location: None, bytes, since }
    }

    fn arrived(queue: &mut Queue, batch: &Batch) {
        let records = batch.parcels.len() as u64;
        queue.arrived(&batch.run, records, records);
    }

    fn iterations(batch: &Batch) -> Vec<u32> {
        let of = |parcel: &Parcel| match &parcel.body {
            Body::Here(delivery) => delivery.key.iteration,
            Body::OnDisk => unreachable!(),
        };
        batch.parcels.iter().map(of).collect()
    }

    #[test]
    fn a_batch_leaves_when_it_is_full_or_has_waited() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(parcel(0, 10, now));
        assert_eq!(queue.next(now), None);
        assert_eq!(queue.wake_at(), Some(now + LINGER));
        let first = queue.next(now + LINGER).unwrap();
        assert_eq!(iterations(&first), [0]);
        (1..=64).for_each(|n| queue.push(parcel(n, 10, now)));
        assert_eq!(queue.next(now).unwrap().parcels.len(), 64);
        queue.push(parcel(65, 2 * BATCH_BYTES_MAX, now));
        queue.push(parcel(66, 10, now));
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [65], "a record of any size goes");
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [66]);
        queue.push(parcel(67, 10, now));
        assert_eq!((queue.next(now + LINGER), queue.wake_at()), (None, None), "four are under way");
        arrived(&mut queue, &first);
        assert!(queue.next(now + LINGER).is_some());
    }

    #[test]
    fn failed_batches_go_again_first_and_in_order() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        (0..3).for_each(|n| queue.push(parcel(n, BATCH_BYTES_MAX, now)));
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
        assert_eq!(queue.waiting(), Waiting { recovered: 1, parked: 0 });
        let mut again = queue.park(lost.clone(), 0, 0, now);
        assert_eq!(queue.waiting(), Waiting { recovered: 0, parked: 1 });
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
            again = queue.park(lost.clone(), 0, 0, now);
            longest = longest.max(again - now);
            assert!((PARKED_MIN..=PARKED_MAX).contains(&(again - now)));
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
            sizes.into_iter().enumerate().for_each(|(n, bytes)| queue.push(parcel(n as u64, bytes, now)));
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
