//! A circuit breaker per model: it parks a model whose quota is used up, whose server is gone, whose key is refused, or
//! whose server refuses or fails every request.
//!
//! A plain state machine, one per model of a run. It takes the time, sends nothing and stops no dialogue; the work loop
//! carries out its [decisions](BreakerDecision).
//!
//! Failures of these kinds say nothing about the model. Their records are *held back* until the cause is clear: if the
//! breaker opens, they are dropped and their dialogues are asked again later; if a later dialogue ends otherwise, they
//! are delivered.
//!
//! A refusal takes milliseconds and an answer minutes. So when a server refuses one call in ten, the first dialogues
//! that end are all refused. Before it opens, the breaker therefore looks at the other calls sent in the same time. If
//! one of them is being answered, the failures concern their own dialogues only. If the server has said nothing yet to
//! any of them, the breaker is *in doubt*: it stays closed, and no further dialogue is started until one of these calls
//! is answered or fails, or [`DOUBT_MAX`] is over.
//!
//! A cause that parks a model is added to `parks` or `refuses`.

use std::time::Duration;

use domain::FailureCause;
use models::blanked;
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

/// Parkings in a row for such faults (15 minutes in all); after that, the failures are recorded as the dialogues' own.
pub const FAULT_PARKINGS_MAX: u32 = 4;

/// Refusals in a row that park a model that has answered before, where the cause is a refused key or an unknown model
/// name. As many as faults, because one of several servers behind an address may be wrongly set up. These refusals take
/// little time, and their records are dropped.
pub const TURNED_AWAY_MAX: u32 = FAULTS_MAX;

/// How long a breaker is in doubt at most.
pub const DOUBT_MAX: Duration = Duration::from_secs(300);

/// How long refusals and faults are held back after the last of them: until more units of the model can be granted.
pub const HELD_FOR: Duration = Duration::from_secs(2);

/// Parking of a model whose quota is used up, where its server does not say when it is renewed. Quotas renew by the hour or the
/// day, hence no shorter wait.
pub const QUOTA_PARKED: Duration = Duration::from_secs(15 * 60);

/// Longest parking until a quota is renewed: a server may say anything.
pub const QUOTA_PARKED_MAX: Duration = Duration::from_secs(32 * 24 * 3600);

/// First parking of an unreachable model; doubles up to [`PARKED_MAX`].
pub const PARKED_FIRST: Duration = Duration::from_secs(60);

/// The longest parking.
pub const PARKED_MAX: Duration = Duration::from_secs(15 * 60);

/// What to do with a record.
#[derive(Debug, PartialEq, Eq)]
pub enum BreakerDecision<T> {
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
    /// When the call that failed was sent: the last of the dialogue.
    pub sent: Instant,
    /// When the quota is renewed that it has met, if the server says so.
    pub renewed_at: Option<Instant>,
    /// Its server has not answered any question yet, and this cause [turns](crate::first::turns_away) the model away.
    pub is_first: bool,
}

/// The calls that were sent to a model from some moment on and have not failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Calls that are being answered, or were answered.
    pub answered: usize,
    /// Calls to which the server has said nothing yet. Only those sent before the breaker came into doubt count, so
    /// that repeated calls do not prolong the doubt.
    pub silent: usize,
}

/// What is known about a model's behaviour.
#[derive(Debug, Default)]
enum Manner {
    /// Nothing.
    #[default]
    Unknown,
    /// It has refused every dialogue so far, in the same words but for numbers and what it quotes.
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
    /// When the first call was sent whose failure counts at present.
    since: Option<Instant>,
    /// Since when it is in doubt.
    doubts_since: Option<Instant>,
    /// The last failure held back.
    last_failure: Option<(FailureCause, String)>,
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
            since: None,
            doubts_since: None,
            last_failure: None,
            openings: 0,
            parked_until: None,
            held_at: None,
        }
    }
}

impl<T> Breaker<T> {
    /// Records the end of a dialogue; no `failure` means scores. `flight(since, until)` counts the model's other calls:
    /// all that were sent from `since` on, and of the silent ones those sent up to `until`.
    pub fn ended(
        &mut self,
        record: T,
        failure: Option<Failure<'_>>,
        flight: impl FnOnce(Instant, Instant) -> Flight,
        now: Instant,
    ) -> BreakerDecision<T> {
        match failure {
            Some(failure)
                if self.is_open(now)
                    && (failure.is_first
                        || parks(failure.cause)
                        || self.is_fault(failure.cause)
                        || self.is_of_another(failure.cause)
                        || self.is_known_refusal(failure)) =>
            {
                BreakerDecision::Forget(record)
            }
            Some(failure) if failure.cause == FailureCause::QuotaExhausted => {
                let until = failure.renewed_at.map(|at| at.saturating_duration_since(now));
                let parked_for =
                    until.map_or(QUOTA_PARKED, |until| until.clamp(PARKED_FIRST, QUOTA_PARKED_MAX));
                self.keep_back(record, failure);
                self.open(parked_for, now)
            }
            // Each further answer of another model would be paid, and thrown away for the same name.
            Some(failure)
                if self.is_of_another(failure.cause) || failure.is_first && parks(failure.cause) =>
            {
                self.keep_back(record, failure);
                self.open(self.next_parking(), now)
            }
            // A question may be what its server fails at; a few of them are not.
            Some(failure) if failure.is_first && failure.cause != FailureCause::BadRequest => {
                self.held_at = Some(now);
                self.in_a_row(record, failure, STREAK_MAX, flight, now)
            }
            Some(failure) if parks(failure.cause) => {
                let enough = self.enough_of(failure.cause);
                self.in_a_row(record, failure, enough, flight, now)
            }
            Some(failure) if self.is_fault(failure.cause) && self.openings < FAULT_PARKINGS_MAX => {
                self.held_at = Some(now);
                self.in_a_row(record, failure, FAULTS_MAX, flight, now)
            }
            _ => {
                match failure {
                    Some(failure) if refuses(failure.cause) => {
                        if let Some(times) = self.refused(failure) {
                            self.held_at = Some(now);
                            self.keep_back(record, failure);
                            return if times >= REFUSALS_MAX {
                                self.weigh(flight, now)
                            } else {
                                BreakerDecision::Hold
                            };
                        }
                    }
                    // A failure for another reason says nothing about the records held back.
                    Some(_) if matches!(self.manner, Manner::Refuses { .. }) => {
                        return BreakerDecision::Deliver(vec![record]);
                    }
                    Some(_) => {}
                    None => self.manner = Manner::Answers,
                }
                // The server answered, if only to refuse: it is reachable. A fault that is recorded is no answer.
                if failure.is_none_or(|failure| failure.cause != FailureCause::Server) {
                    (self.streak, self.openings, self.since) = (0, 0, None);
                }
                let mut records = self.settle();
                records.push(record);
                BreakerDecision::Deliver(records)
            }
        }
    }

    /// How many failures in a row by this cause are enough.
    fn enough_of(&self, cause: FailureCause) -> u32 {
        match self.manner {
            Manner::Answers if cause != FailureCause::Connection => TURNED_AWAY_MAX,
            _ => STREAK_MAX,
        }
    }

    /// Holds back a failure that says nothing about its dialogue, until there are `enough` of them in a row.
    fn in_a_row(
        &mut self,
        record: T,
        failure: Failure<'_>,
        enough: u32,
        flight: impl FnOnce(Instant, Instant) -> Flight,
        now: Instant,
    ) -> BreakerDecision<T> {
        self.streak += 1;
        self.keep_back(record, failure);
        // After a parking, one failure is enough to open again.
        if self.streak >= enough || self.openings > 0 {
            self.weigh(flight, now)
        } else {
            BreakerDecision::Hold
        }
    }

    /// Holds a record back.
    fn keep_back(&mut self, record: T, failure: Failure<'_>) {
        self.held_back.push(record);
        self.since = Some(self.since.map_or(failure.sent, |since| since.min(failure.sent)));
        self.last_failure = Some((failure.cause, failure.message.to_owned()));
    }

    /// Opens, unless other calls of the same time were answered or are still silent. Called when enough failures are
    /// held back to open.
    fn weigh(&mut self, flight: impl FnOnce(Instant, Instant) -> Flight, now: Instant) -> BreakerDecision<T> {
        let doubts_since = self.doubts_since.unwrap_or(now);
        let flight = self.since.map(|since| flight(since, doubts_since));
        let Flight { answered, silent } = flight.unwrap_or_default();
        if answered > 0 {
            self.manner = Manner::Answers;
            (self.streak, self.openings, self.since) = (0, 0, None);
            return BreakerDecision::Deliver(self.settle());
        }
        if silent > 0 && now < doubts_since + DOUBT_MAX {
            self.doubts_since = Some(doubts_since);
            return BreakerDecision::Hold;
        }
        self.open(self.next_parking(), now)
    }

    /// Whether it is in doubt: nothing more should be sent until [`review`](Self::review) has decided.
    pub fn is_in_doubt(&self) -> bool {
        self.doubts_since.is_some()
    }

    /// Decides if the breaker is in doubt and the doubt is over; `None` otherwise.
    pub fn review(
        &mut self,
        flight: impl FnOnce(Instant, Instant) -> Flight,
        now: Instant,
    ) -> Option<BreakerDecision<T>> {
        let decision = self.is_in_doubt().then(|| self.weigh(flight, now))?;
        (!matches!(decision, BreakerDecision::Hold)).then_some(decision)
    }

    /// The last failure that was held back.
    pub fn last_failure(&self) -> Option<(FailureCause, &str)> {
        self.last_failure.as_ref().map(|(cause, message)| (*cause, message.as_str()))
    }

    /// Whether this is a fault of a server that has answered.
    fn is_fault(&self, cause: FailureCause) -> bool {
        matches!(self.manner, Manner::Answers) && cause == FailureCause::Server
    }

    /// Whether another model answers, and never has the right one.
    fn is_of_another(&self, cause: FailureCause) -> bool {
        cause == FailureCause::WrongModel && !matches!(self.manner, Manner::Answers)
    }

    /// Counts a refusal: how many times the model has said nothing but this, or `None` if it has answered, or has
    /// refused in other words.
    fn refused(&mut self, failure: Failure<'_>) -> Option<u32> {
        match &mut self.manner {
            Manner::Answers => None,
            Manner::Unknown => {
                let (cause, message) = (failure.cause, blanked(failure.message));
                self.manner = Manner::Refuses { cause, message, times: 1 };
                Some(1)
            }
            Manner::Refuses { cause, message, times }
                if *cause == failure.cause && *message == blanked(failure.message) =>
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

    fn is_known_refusal(&self, failure: Failure<'_>) -> bool {
        let Manner::Refuses { cause, message, .. } = &self.manner else { return false };
        failure.cause == *cause && blanked(failure.message) == *message
    }

    /// Whether refusals or faults are held back that further dialogues may explain.
    pub fn waits(&self, now: Instant) -> bool {
        self.held_at.is_some_and(|at| now < at + HELD_FOR)
    }

    /// Opens for a reason outside dialogues, such as a missing key. Returns the duration, and the records to drop.
    pub fn trip(&mut self, now: Instant) -> (Vec<T>, Duration) {
        let parked_for = self.next_parking();
        (self.park(parked_for, now), parked_for)
    }

    /// Releases the records held back, because no dialogue is left that could tell more. The streak is kept.
    pub fn settle(&mut self) -> Vec<T> {
        self.doubts_since = None;
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
        parking_after(self.openings)
    }

    fn open(&mut self, parked_for: Duration, now: Instant) -> BreakerDecision<T> {
        BreakerDecision::Open { forgotten: self.park(parked_for, now), parked_for }
    }

    /// Parks the model; the records to drop.
    fn park(&mut self, parked_for: Duration, now: Instant) -> Vec<T> {
        self.openings += 1;
        (self.streak, self.since) = (0, None);
        self.parked_until = Some(now + parked_for);
        self.settle()
    }
}

/// The parking that follows so many in a row.
pub(crate) fn parking_after(before: u32) -> Duration {
    PARKED_FIRST.saturating_mul(1 << before.min(10)).min(PARKED_MAX)
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
mod tests;
