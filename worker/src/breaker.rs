//! A circuit breaker per model: stops asking a model whose quota is used up, whose server is gone, whose key is
//! refused, or whose server refuses or fails every request.
//!
//! A plain state machine, one per model of a run. Records that failed for such a reason say nothing about the model.
//! They are held back until it is clear whether the cause is the dialogue itself: if the breaker opens, they are
//! dropped and the dialogues are asked again later; if a later dialogue ends otherwise, they are delivered.

use std::time::Duration;

use domain::FailureCause;
use tokio::time::Instant;

/// Dialogues in a row that must fail by the connection before the model counts as unreachable.
pub const STREAK_MAX: u32 = 5;

/// The first dialogues of a model that its server must refuse in the same words, without a success, before it counts
/// as refusing everything. Two units, because a single one may have a case that the server does not accept.
pub const REFUSALS_MAX: u32 = 20;

/// Dialogues in a row that must fail by a fault of the server (5xx) before a model that has answered counts as out of
/// order: a gateway without its server, or an engine that waits to be restarted. More than for the connection, because
/// a case that its server cannot take fails in each iteration.
pub const FAULTS_MAX: u32 = 20;

/// Parkings in a row, for such faults, after which they are recorded as those of the dialogues: a quarter of an hour.
pub const FAULT_PARKINGS_MAX: u32 = 4;

/// How long refusals and faults are held back after the last of them: until more units of the model can be granted.
pub const HELD_FOR: Duration = Duration::from_secs(2);

/// Parking of a model whose quota is used up. Quotas renew by the hour or the day, hence no shorter wait.
pub const QUOTA_PARKED: Duration = Duration::from_secs(15 * 60);

/// First parking of an unreachable model; doubles up to [`PARKED_MAX`].
pub const PARKED_FIRST: Duration = Duration::from_secs(60);

/// The longest parking.
pub const PARKED_MAX: Duration = Duration::from_secs(15 * 60);

/// What to do with a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// Deliver these records: those held back, then the given one.
    Deliver(Vec<T>),
    /// Hold it back.
    Hold,
    /// Drop it: the model was parked while the dialogue was in progress, and the record adds no information.
    Forget(T),
    /// The model is parked; drop these records.
    Open {
        /// All records held back, including the given one.
        forgotten: Vec<T>,
        /// For how long.
        parked_for: Duration,
    },
}

/// Why a dialogue has no scores.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    pub cause: FailureCause,
    pub message: &'a str,
}

/// What is known about a model's behaviour.
#[derive(Debug, Default)]
enum Manner {
    /// Nothing.
    #[default]
    Unknown,
    /// It has refused every dialogue so far, in the same words.
    Refuses { cause: FailureCause, message: String, times: u32 },
    /// It answers, or its refusals differ: a refusal concerns the dialogue.
    Answers,
}

/// The breaker of one model of one run, with the records `T` that it holds back.
#[derive(Debug)]
pub struct Breaker<T> {
    held_back: Vec<T>,
    manner: Manner,
    /// Failures in a row.
    streak: u32,
    /// Openings since the last success.
    openings: u32,
    parked_until: Option<Instant>,
    /// The last refusal or fault that was held back.
    held_at: Option<Instant>,
}

impl<T> Default for Breaker<T> {
    fn default() -> Self {
        Self {
            held_back: Vec::new(),
            manner: Manner::Unknown,
            streak: 0,
            openings: 0,
            parked_until: None,
            held_at: None,
        }
    }
}

impl<T> Breaker<T> {
    /// Records the end of a dialogue; no `failure` means scores.
    pub fn ended(&mut self, record: T, failure: Option<Failure<'_>>, now: Instant) -> Decision<T> {
        match failure.map(|failure| failure.cause) {
            Some(cause)
                if self.is_open(now)
                    && (parks(cause) || self.is_fault(cause) || self.is_known_refusal(failure)) =>
            {
                Decision::Forget(record)
            }
            Some(FailureCause::QuotaExhausted) => {
                self.held_back.push(record);
                self.open(QUOTA_PARKED, now)
            }
            Some(cause) if parks(cause) => self.in_a_row(record, STREAK_MAX, now),
            Some(cause) if self.is_fault(cause) && self.openings < FAULT_PARKINGS_MAX => {
                self.held_at = Some(now);
                self.in_a_row(record, FAULTS_MAX, now)
            }
            _ => {
                match failure {
                    Some(failure) if refuses(failure.cause) => {
                        if let Some(times) = self.refused(failure) {
                            self.held_at = Some(now);
                            return self.hold(record, times >= REFUSALS_MAX, now);
                        }
                    }
                    // A failure for another reason says nothing about the records held back.
                    Some(_) if matches!(self.manner, Manner::Refuses { .. }) => {
                        return Decision::Deliver(vec![record]);
                    }
                    Some(_) => {}
                    None => self.manner = Manner::Answers,
                }
                // The server answered, if only to refuse: it is reachable. A fault that is recorded is no answer.
                if failure.is_none_or(|failure| failure.cause != FailureCause::Server) {
                    (self.streak, self.openings) = (0, 0);
                }
                let mut records = std::mem::take(&mut self.held_back);
                records.push(record);
                Decision::Deliver(records)
            }
        }
    }

    /// Holds back a failure that says nothing about its dialogue, until there are `enough` of them in a row.
    fn in_a_row(&mut self, record: T, enough: u32, now: Instant) -> Decision<T> {
        self.streak += 1;
        // After a parking, one failure is enough to open again.
        self.hold(record, self.streak >= enough || self.openings > 0, now)
    }

    /// Holds a record back, and opens where it is the last one needed for that.
    fn hold(&mut self, record: T, is_enough: bool, now: Instant) -> Decision<T> {
        self.held_back.push(record);
        if is_enough { self.open(self.next_parking(), now) } else { Decision::Hold }
    }

    /// Whether this is a fault of a server that has answered.
    fn is_fault(&self, cause: FailureCause) -> bool {
        matches!(self.manner, Manner::Answers) && cause == FailureCause::Server
    }

    /// Counts a refusal: how many times the model has said nothing but this, or `None` if it has answered, or has
    /// refused in other words.
    fn refused(&mut self, failure: Failure<'_>) -> Option<u32> {
        match &mut self.manner {
            Manner::Answers => None,
            Manner::Unknown => {
                let (cause, message) = (failure.cause, failure.message.to_owned());
                self.manner = Manner::Refuses { cause, message, times: 1 };
                Some(1)
            }
            Manner::Refuses { cause, message, times }
                if *cause == failure.cause && message == failure.message =>
            {
                *times = times.saturating_add(1);
                Some(*times)
            }
            Manner::Refuses { .. } => {
                self.manner = Manner::Answers;
                None
            }
        }
    }

    fn is_known_refusal(&self, failure: Option<Failure<'_>>) -> bool {
        let Manner::Refuses { cause, message, .. } = &self.manner else { return false };
        failure.is_some_and(|failure| failure.cause == *cause && failure.message == message)
    }

    /// Whether refusals or faults are held back that further dialogues may explain.
    pub fn waits(&self, now: Instant) -> bool {
        self.held_at.is_some_and(|at| now < at + HELD_FOR)
    }

    /// Opens for a reason outside dialogues, such as a missing key. Returns the duration, and the records to drop.
    pub fn trip(&mut self, now: Instant) -> (Vec<T>, Duration) {
        let parked_for = self.next_parking();
        match self.open(parked_for, now) {
            Decision::Open { forgotten, parked_for } => (forgotten, parked_for),
            Decision::Deliver(_) | Decision::Hold | Decision::Forget(_) => (Vec::new(), parked_for),
        }
    }

    /// Releases the records held back, because no dialogue is left that could tell more. The streak is kept.
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

    /// Whether it has state worth keeping: records, or recent failures.
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

/// Whether this cause concerns the path to the model rather than the model.
fn parks(cause: FailureCause) -> bool {
    use FailureCause::{Connection, ModelNotFound, QuotaExhausted, Unauthorized};
    matches!(cause, QuotaExhausted | Connection | Unauthorized | ModelNotFound)
}

/// Whether a server that fails every dialogue with this cause refuses to be used at all.
fn refuses(cause: FailureCause) -> bool {
    matches!(cause, FailureCause::BadRequest | FailureCause::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Option<Failure<'static>> = failed(FailureCause::Connection);
    const REFUSED: Option<Failure<'static>> = failed(FailureCause::BadRequest);

    const fn failed(cause: FailureCause) -> Option<Failure<'static>> {
        Some(Failure { cause, message: "words" })
    }

    #[test]
    fn a_server_that_refuses_its_first_dialogues_alike_is_not_asked_for_more() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for record in 1..REFUSALS_MAX {
            assert_eq!(breaker.ended(record, REFUSED, now), Decision::Hold);
        }
        let forgotten = (1..=REFUSALS_MAX).collect();
        let opened = Decision::Open { forgotten, parked_for: PARKED_FIRST };
        assert_eq!(breaker.ended(REFUSALS_MAX, REFUSED, now), opened);
        assert_eq!(breaker.ended(99, REFUSED, now), Decision::Forget(99));
        let later = now + PARKED_FIRST;
        let again = Decision::Open { forgotten: vec![1], parked_for: PARKED_FIRST * 2 };
        assert_eq!(breaker.ended(1, REFUSED, later), again, "one more is enough to know");
        let mended = later + PARKED_FIRST * 2;
        assert_eq!(breaker.ended(1, None, mended), Decision::Deliver(vec![1]));
        for record in 0..2 * REFUSALS_MAX {
            assert_eq!(breaker.ended(record, REFUSED, mended), Decision::Deliver(vec![record]));
        }
    }

    #[test]
    fn refusals_that_differ_are_those_of_dialogues() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.ended(0, REFUSED, now), Decision::Hold);
        assert_eq!(
            breaker.ended(1, failed(FailureCause::ContextExceeded), now),
            Decision::Deliver(vec![1]),
            "a long prompt says nothing about the others"
        );
        let other = Some(Failure { cause: FailureCause::BadRequest, message: "other words" });
        assert_eq!(breaker.ended(2, other, now), Decision::Deliver(vec![0, 2]));
        assert_eq!(breaker.ended(3, REFUSED, now), Decision::Deliver(vec![3]));
    }

    #[test]
    fn refusals_wait_a_moment_for_more_and_no_longer() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.ended(0, REFUSED, now), Decision::Hold);
        assert!(breaker.waits(now) && !breaker.waits(now + HELD_FOR));
        assert_eq!(breaker.settle(), [0]);
    }

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
            breaker.ended(1, failed(FailureCause::ContextExceeded), now),
            Decision::Deliver(vec![0, 1]),
            "a server that refuses is there"
        );
        assert_eq!(breaker.ended(2, GONE, now), Decision::Hold);
        assert_eq!(breaker.settle(), [2]);
        assert!(!breaker.holds());
    }

    const FAULT: Option<Failure<'static>> = failed(FailureCause::Server);

    #[test]
    fn a_server_that_answered_and_then_fails_everybody_is_given_a_quarter_of_an_hour() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.ended(0, None, now), Decision::Deliver(vec![0]));
        for record in 1..FAULTS_MAX {
            assert_eq!(breaker.ended(record, FAULT, now), Decision::Hold);
        }
        assert!(breaker.waits(now) && !breaker.waits(now + HELD_FOR));
        let mut parked = Duration::ZERO;
        for record in FAULTS_MAX.. {
            match breaker.ended(record, FAULT, now) {
                Decision::Open { forgotten, parked_for } => {
                    assert_eq!(forgotten.last(), Some(&record));
                    assert_eq!(breaker.ended(99, FAULT, now), Decision::Forget(99));
                    (parked, now) = (parked + parked_for, now + parked_for);
                }
                decision => {
                    assert_eq!(decision, Decision::Deliver(vec![record]), "it is the dialogues, then");
                    break;
                }
            }
        }
        assert_eq!(parked, Duration::from_secs(15 * 60));
        assert_eq!(breaker.ended(0, FAULT, now), Decision::Deliver(vec![0]));
        assert_eq!(breaker.ended(0, None, now), Decision::Deliver(vec![0]));
        assert_eq!(breaker.ended(1, FAULT, now), Decision::Hold, "it works again");
    }

    #[test]
    fn a_fault_between_answers_is_that_of_its_dialogue() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for record in 0..3 * FAULTS_MAX {
            assert_eq!(breaker.ended(record, None, now), Decision::Deliver(vec![record]));
            assert_eq!(breaker.ended(100, FAULT, now), Decision::Hold);
            assert_eq!(breaker.ended(101, None, now), Decision::Deliver(vec![100, 101]));
        }
    }

    #[test]
    fn an_exhausted_quota_needs_no_second_witness() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(
            breaker.ended(0, failed(FailureCause::QuotaExhausted), now),
            Decision::Open { forgotten: vec![0], parked_for: QUOTA_PARKED }
        );
    }
}
