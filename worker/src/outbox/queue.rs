//! The order in which records leave: a plain state machine that takes the time and does no IO.
//!
//! Records leave in the order in which they came, in batches, several batches under way at once. When a batch fails,
//! everything that is not acknowledged goes again in order after a delay.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use domain::exchange::Delivery;
use tokio::time::Instant;

use super::spool::Location;
use crate::slots::Tag;
use service_kit::Backoff;

/// Records of one batch.
pub const BATCH_RECORDS_MAX: usize = 256;

/// Bytes of one batch; one record may be larger, and goes alone.
pub const BATCH_BYTES_MAX: u64 = 1 << 20;

/// Batches under way at once: the next is on the way while the disk of the coordinator syncs the last.
pub const IN_FLIGHT_MAX: usize = 4;

/// A batch leaves when so many records wait.
pub const BATCH_RECORDS_WANTED: usize = 64;

/// A batch leaves when its first record has waited so long.
pub const LINGER: Duration = Duration::from_millis(10);

/// Where the text of a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In memory.
    Here(Delivery),
    /// On disk only.
    OnDisk,
}

/// A record that waits for its receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
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
    /// Rises with every batch; tells the order.
    pub number: u64,
    /// Its records.
    pub parcels: Vec<Parcel>,
}

/// Records that wait for their receipts.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<Parcel>,
    /// Batches that failed, in order.
    again: BTreeMap<u64, Batch>,
    /// Batches under way.
    in_flight: usize,
    next_number: u64,
    backoff: Backoff,
    not_before: Option<Instant>,
}

impl Queue {
    /// Adds a record.
    pub fn push(&mut self, parcel: Parcel) {
        self.waiting.push_back(parcel);
    }

    /// The batch that is to leave now.
    pub fn next(&mut self, now: Instant) -> Option<Batch> {
        if self.in_flight >= IN_FLIGHT_MAX || self.not_before.is_some_and(|until| now < until) {
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
        let number = self.next_number;
        self.next_number += 1;
        self.in_flight += 1;
        Some(Batch { number, parcels })
    }

    /// A batch arrived.
    pub fn arrived(&mut self) {
        self.in_flight -= 1;
        self.backoff.reset();
        self.not_before = None;
    }

    /// A batch did not arrive, or nobody knows.
    pub fn failed(&mut self, batch: Batch, now: Instant) {
        self.in_flight -= 1;
        self.again.insert(batch.number, batch);
        // Batches that failed together are one failure.
        if self.not_before.is_none_or(|until| until <= now) {
            self.not_before = Some(now + self.backoff.next_delay());
        }
    }

    /// When [`Queue::next`] may have something without anything else happening.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.in_flight >= IN_FLIGHT_MAX {
            return None;
        }
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

    /// Whether nothing waits and nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.again.is_empty() && self.in_flight == 0
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.not_before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parcel(n: u64, bytes: u64, since: Instant) -> Parcel {
        let key = domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: n as u32 };
        let delivery = Delivery { run: "r".into(), key, failure: None, json: "{}".into() };
        Parcel { tag: None, body: Body::Here(delivery), location: None, bytes, since }
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
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [0]);
        (1..=64).for_each(|n| queue.push(parcel(n, 10, now)));
        assert_eq!(queue.next(now).unwrap().parcels.len(), 64);
        queue.push(parcel(65, 2 * BATCH_BYTES_MAX, now));
        queue.push(parcel(66, 10, now));
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [65], "a record of any size goes");
        assert_eq!(iterations(&queue.next(now + LINGER).unwrap()), [66]);
        queue.push(parcel(67, 10, now));
        assert_eq!((queue.next(now + LINGER), queue.wake_at()), (None, None), "four are under way");
        queue.arrived();
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
        queue.arrived();
        assert_eq!(queue.next(later).unwrap(), b);
        assert_eq!(iterations(&queue.next(later).unwrap()), [2]);
    }

    proptest! {
        #[test]
        fn every_record_arrives_and_none_is_forgotten(outcomes in prop::collection::vec(any::<bool>(), 0..60), sizes in prop::collection::vec(1..BATCH_BYTES_MAX, 1..40)) {
            let (mut queue, mut now) = (Queue::default(), Instant::now());
            let total = sizes.len();
            sizes.into_iter().enumerate().for_each(|(n, bytes)| queue.push(parcel(n as u64, bytes, now)));
            let (mut outcomes, mut under_way, mut arrived) = (outcomes.into_iter(), VecDeque::new(), Vec::new());
            while !queue.is_empty() {
                while let Some(batch) = queue.next(now + LINGER) {
                    under_way.push_back(batch);
                    prop_assert!(under_way.len() <= IN_FLIGHT_MAX);
                }
                match under_way.pop_front() {
                    Some(batch) if outcomes.next().unwrap_or(true) => {
                        arrived.extend(iterations(&batch));
                        queue.arrived();
                    }
                    Some(batch) => queue.failed(batch, now),
                    None => now = queue.wake_at().expect("something waits, so there is a time to try again"),
                }
            }
            arrived.sort_unstable();
            prop_assert_eq!(arrived, (0..total as u32).collect::<Vec<_>>());
        }
    }
}
