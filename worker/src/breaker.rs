//! Stops asking a model that cannot be asked: its quota is used up, its server is gone, or its key is refused.
//!
//! A plain state machine, one per model of a run. Records of dialogues that failed for such a reason say nothing about
//! the model, so they are held back until it is clear whether the reason is the dialogue's own: when the breaker opens
//! they are dropped, and the dialogues are asked again later; when a dialogue ends otherwise they are delivered.

use std::time::Duration;

use domain::FailureCause;
use tokio::time::Instant;

/// Dialogues in a row that must end in a failure of the connection before it is taken for the model's.
pub const STREAK_MAX: u32 = 5;

/// How long a model is parked whose quota is used up. Quotas return by the hour or the day, hence no short wait.
pub const QUOTA_PARKED: Duration = Duration::from_secs(15 * 60);

/// How long a model is parked that cannot be reached, the first time; doubles up to [`PARKED_MAX`].
pub const PARKED_FIRST: Duration = Duration::from_secs(60);

/// The longest parking.
pub const PARKED_MAX: Duration = Duration::from_secs(15 * 60);

/// What is to be done with a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// These records are to be delivered: the one given, last, and those held back before it.
    Deliver(Vec<T>),
    /// It is held back.
    Hold,
    /// It is to be forgotten: the model was parked while the dialogue was still under way, and nothing new is learnt.
    Forget(T),
    /// The model is parked; these records are to be forgotten.
    Open {
        /// All that were held back, the one given included.
        forgotten: Vec<T>,
        /// For how long.
        parked_for: Duration,
    },
}

/// The breaker of one model of one run, with the records `T` that it holds back.
#[derive(Debug)]
pub struct Breaker<T> {
    held_back: Vec<T>,
    /// Failures in a row.
    streak: u32,
    /// Times it has opened since a dialogue last succeeded.
    openings: u32,
    parked_until: Option<Instant>,
}

impl<T> Default for Breaker<T> {
    fn default() -> Self {
        Self { held_back: Vec::new(), streak: 0, openings: 0, parked_until: None }
    }
}

impl<T> Breaker<T> {
    /// A dialogue ended: with scores where `cause` is none.
    pub fn ended(&mut self, record: T, cause: Option<FailureCause>, now: Instant) -> Decision<T> {
        match cause {
            Some(cause) if parks(cause) && self.is_open(now) => Decision::Forget(record),
            Some(FailureCause::QuotaExhausted) => {
                self.held_back.push(record);
                self.open(QUOTA_PARKED, now)
            }
            Some(cause) if parks(cause) => {
                self.held_back.push(record);
                self.streak += 1;
                // After a parking one failure is enough: it is not over yet.
                let enough = if self.openings > 0 { 1 } else { STREAK_MAX };
                if self.streak >= enough {
                    let parked_for = self.next_parking();
                    self.open(parked_for, now)
                } else {
                    Decision::Hold
                }
            }
            _ => {
                // The server answered, if only to refuse: it is there.
                (self.streak, self.openings) = (0, 0);
                let mut records = std::mem::take(&mut self.held_back);
                records.push(record);
                Decision::Deliver(records)
            }
        }
    }

    /// Opens for a reason beyond dialogues, such as a key that is missing: for how long, and what is to be forgotten.
    pub fn trip(&mut self, now: Instant) -> (Vec<T>, Duration) {
        let parked_for = self.next_parking();
        match self.open(parked_for, now) {
            Decision::Open { forgotten, parked_for } => (forgotten, parked_for),
            Decision::Deliver(_) | Decision::Hold | Decision::Forget(_) => (Vec::new(), parked_for),
        }
    }

    /// Nothing of the model is left that could tell more: what is held back is to be delivered. The streak goes on.
    pub fn settle(&mut self) -> Vec<T> {
        std::mem::take(&mut self.held_back)
    }

    /// Whether records are held back.
    pub fn holds(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// Whether the model is parked.
    pub fn is_open(&self, now: Instant) -> bool {
        self.parked_until.is_some_and(|until| now < until)
    }

    /// Whether it remembers something that matters: records, or failures not long ago.
    pub fn is_worth_keeping(&self, now: Instant) -> bool {
        self.holds() || self.parked_until.is_some_and(|until| now < until + PARKED_MAX)
    }

    fn next_parking(&self) -> Duration {
        PARKED_FIRST.saturating_mul(1 << self.openings.min(10)).min(PARKED_MAX)
    }

    fn open(&mut self, parked_for: Duration, now: Instant) -> Decision<T> {
        self.openings += 1;
        self.streak = 0;
        self.parked_until = Some(now + parked_for);
        Decision::Open { forgotten: std::mem::take(&mut self.held_back), parked_for }
    }
}

/// Whether dialogues that end for this reason say something about the way to the model, and nothing about the model.
fn parks(cause: FailureCause) -> bool {
    use FailureCause::{Connection, ModelNotFound, QuotaExhausted, Unauthorized};
    matches!(cause, QuotaExhausted | Connection | Unauthorized | ModelNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Option<FailureCause> = Some(FailureCause::Connection);

    #[test]
    fn five_failures_in_a_row_park_the_model_and_keep_no_record_of_them() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for record in 0..4 {
            assert_eq!(breaker.ended(record, GONE, now), Decision::Hold);
        }
        let opened = Decision::Open { forgotten: vec![0, 1, 2, 3, 4], parked_for: PARKED_FIRST };
        assert_eq!(breaker.ended(4, GONE, now), opened);
        assert!(breaker.is_open(now) && !breaker.is_open(now + PARKED_FIRST));
    }

    #[test]
    fn parkings_double_until_something_works() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        for record in 0..4 {
            breaker.ended(record, GONE, now);
        }
        let mut parked = Vec::new();
        for record in 4..10 {
            let Decision::Open { parked_for, .. } = breaker.ended(record, GONE, now) else { panic!() };
            assert_eq!(
                breaker.ended(99, GONE, now),
                Decision::Forget(99),
                "one that ran on is not a new failure"
            );
            parked.push(parked_for.as_secs());
            now += parked_for;
        }
        assert_eq!(parked, [60, 120, 240, 480, 900, 900]);
        assert_eq!(breaker.ended(10, None, now), Decision::Deliver(vec![10]));
        assert_eq!(breaker.ended(11, GONE, now), Decision::Hold, "one failure is the dialogue's own again");
    }

    #[test]
    fn a_success_delivers_what_was_held_back_before_it() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.ended(0, GONE, now), Decision::Hold);
        assert_eq!(
            breaker.ended(1, Some(FailureCause::ContextExceeded), now),
            Decision::Deliver(vec![0, 1]),
            "a server that refuses is there"
        );
        assert_eq!(breaker.ended(2, GONE, now), Decision::Hold);
        assert_eq!(breaker.settle(), [2]);
        assert!(!breaker.holds());
    }

    #[test]
    fn an_exhausted_quota_needs_no_second_witness() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(
            breaker.ended(0, Some(FailureCause::QuotaExhausted), now),
            Decision::Open { forgotten: vec![0], parked_for: QUOTA_PARKED }
        );
    }
}
