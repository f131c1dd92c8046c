//! A record on its way out of the worker.

use domain::exchange::Delivery;
use domain::record::RECORD_BYTES_MAX;
use domain::{FailureCause, ModelUsage, Outcome, Record};

use crate::fitting;
use crate::slots::Tag;

/// The record of an ended dialogue, until the outbox takes it. A breaker may hold it back before.
#[derive(Debug)]
pub struct Outgoing {
    /// The dialogue.
    pub tag: Tag,
    pub delivery: Delivery,
    /// Whether its texts may be stored on disk.
    pub spooled: bool,
    /// Why it has no scores.
    pub failure: Option<(FailureCause, String)>,
    /// Whether the server reported overload during the dialogue.
    pub was_refused: bool,
    /// What the dialogue used: kept where the record is dropped.
    pub(crate) used: ModelUsage,
}

impl Outgoing {
    /// # Errors
    /// The record cannot be serialised.
    pub(crate) fn of(tag: Tag, record: Record, spooled: bool) -> Result<Self, serde_json::Error> {
        let mut calls =
            record.rounds.iter().flat_map(|round| &round.failed_calls).chain(&record.failed_calls);
        let too_much = |cause| matches!(cause, FailureCause::Overloaded | FailureCause::RateLimited);
        let was_refused = calls.any(|call| too_much(call.cause));
        let used = ModelUsage::of_dialogue(&record.rounds, &record.failed_calls);
        let delivery = fitting::delivery(tag.lease.run.clone(), &record, RECORD_BYTES_MAX)?;
        let failure = match record.outcome {
            // What the model answered is no trouble of its server's.
            Outcome::Scored { .. } | Outcome::Unscored { .. } => None,
            Outcome::Failed { cause, message } => Some((cause, message)),
        };
        Ok(Self { tag, delivery, spooled, failure, was_refused, used })
    }
}
