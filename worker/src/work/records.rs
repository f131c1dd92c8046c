//! Handles ended dialogues and their records.

use std::collections::{BTreeSet, HashSet};

use domain::exchange::Delivery;
use domain::record::RECORD_BYTES_MAX;
use domain::{DialogueKey, FailureCause, Outcome, Record, RunId};
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

use super::Work;
use crate::breaker::{Decision, Failure};
use crate::fitting;
use crate::metrics;
use crate::outbox::Arrival;
use crate::servers::ServerKey;
use crate::slots::{LaneKey, Tag};

/// An ended dialogue.
pub(super) struct Finished {
    delivery: Result<Delivery, serde_json::Error>,
    /// Why it has no scores.
    failure: Option<(FailureCause, String)>,
    failed_calls: Vec<FailureCause>,
}

impl Finished {
    pub(super) fn of(run: RunId, record: Record) -> Self {
        let calls = record.rounds.iter().flat_map(|round| &round.failed_calls).chain(&record.failed_calls);
        let failed_calls = calls.map(|call| call.cause).collect();
        let delivery = fitting::delivery(run, &record, RECORD_BYTES_MAX);
        let failure = match record.outcome {
            // What the model answered is no trouble of its server's.
            Outcome::Scored { .. } | Outcome::Unscored { .. } => None,
            Outcome::Failed { cause, message } => Some((cause, message)),
        };
        Self { delivery, failure, failed_calls }
    }

    /// Whether the server reported overload during the dialogue.
    fn was_refused(&self) -> bool {
        let too_much = |cause| matches!(cause, FailureCause::Overloaded | FailureCause::RateLimited);
        self.failed_calls.iter().copied().any(too_much)
    }
}

/// Number of dialogues remembered that this worker gave back because it could not judge them. Beyond it, failures are
/// recorded at once.
const UNJUDGED_KEPT_MAX: usize = 10_000;

/// The dialogues that this worker could not judge. The cause may be its machine, so the first time a dialogue is
/// given back, to be tried again, perhaps by another worker; only the second time its failure is recorded.
#[derive(Debug, Default)]
pub(super) struct Unjudged(HashSet<(RunId, DialogueKey)>);

impl Unjudged {
    /// Whether to give the dialogue back instead of recording its failure.
    fn give_back(&mut self, run: &RunId, key: DialogueKey) -> bool {
        self.0.len() < UNJUDGED_KEPT_MAX && self.0.insert((run.clone(), key))
    }
}

/// A record held back by its model's breaker.
#[derive(Debug)]
pub(super) struct HeldBack {
    pub(super) tag: Tag,
    delivery: Delivery,
}

impl Work {
    pub(super) fn dialogue_ended(&mut self, ended: Result<(Id, Finished), JoinError>, now: Instant) {
        self.take_dialogue(ended, now);
        // Many end while one is processed; handling them together saves the rest of the loop.
        while let Some(ended) = self.dialogues.try_join_next_with_id() {
            self.take_dialogue(ended, now);
        }
    }

    fn take_dialogue(&mut self, ended: Result<(Id, Finished), JoinError>, now: Instant) {
        let (id, finished) = match ended {
            Ok((id, finished)) => (id, Ok(finished)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(tag) = self.tags.remove(&id) else { return };
        let Some(running) = self.running.remove(&tag) else { return };
        let lane = LaneKey::of(&tag.lease);
        self.leave_lane(&lane);
        let refused = finished.as_ref().ok().map(Finished::was_refused);
        self.servers.ended(&running.server, refused);
        let finished = match finished {
            Ok(finished) => finished,
            // The code that stopped it has updated the ledger.
            Err(error) if error.is_cancelled() => {
                if let Some(trace) = running.trace {
                    trace.stopped();
                }
                return;
            }
            Err(error) => {
                tracing::error!(%error, dialogue = ?tag, "a dialogue ended by a panic");
                self.ledger.lock().slots.dropped(&tag);
                return self.trip(&lane, format!("a dialogue ended by a panic: {error}"), now);
            }
        };
        self.ended += 1;
        let cause = finished.failure.as_ref().map(|(cause, _)| *cause);
        metrics::dialogue_ended(lane.model.as_str(), cause, now.duration_since(running.began));
        for cause in &finished.failed_calls {
            metrics::call_failed(lane.model.as_str(), *cause);
        }
        if let (Some(FailureCause::Connection), ServerKey::Found { endpoint, .. }) = (cause, &running.server)
        {
            self.discovery.suspect(endpoint);
        }
        let delivery = match finished.delivery {
            Ok(delivery) => delivery,
            Err(error) => {
                self.ledger.lock().slots.dropped(&tag);
                return self.trip(&lane, format!("a record cannot be written: {error}"), now);
            }
        };
        if cause == Some(FailureCause::EvaluatorFailed)
            && self.unjudged.give_back(&lane.run, delivery.key.clone())
        {
            tracing::warn!(dialogue = %delivery.key, "an answer could not be judged here; its dialogue is given back");
            return self.ledger.lock().slots.dropped(&tag);
        }
        if let Some(trace) = running.trace {
            self.delivering.insert(tag.clone(), trace.recorded(cause));
        }
        // A record is delivered even if its lease was lost meanwhile: it may be the only one of its dialogue.
        self.ledger.lock().slots.ended(&tag);
        let breaker = self.breakers.entry(lane.clone()).or_default();
        let failure = finished.failure.as_ref().map(|(cause, message)| Failure { cause: *cause, message });
        match breaker.ended(HeldBack { tag, delivery }, failure, now) {
            Decision::Deliver(records) => self.submit(records),
            Decision::Hold => {}
            Decision::Forget(HeldBack { tag, .. }) => {
                self.undelivered(&tag);
                self.ledger.lock().slots.dropped(&tag);
            }
            Decision::Open { forgotten, parked_for } => {
                let (cause, message) = finished.failure.unwrap_or((FailureCause::Connection, String::new()));
                // A discovered server concerns this worker alone; an account concerns all.
                let everywhere = matches!(running.server, ServerKey::Hosted { .. })
                    || cause == FailureCause::QuotaExhausted;
                metrics::parked(lane.model.as_str(), Some(cause));
                self.park(&lane, forgotten, parked_for, format!("{cause}: {message}"), everywhere);
            }
        }
    }

    /// Delivers records held back if no dialogue is left that could explain them; before the `end`, refusals wait for
    /// the next grant.
    pub(super) fn release_held_back(&mut self, end: bool, now: Instant) {
        let mut records = Vec::new();
        {
            let ledger = self.ledger.lock();
            for (lane, breaker) in self.breakers.iter_mut().filter(|(_, breaker)| breaker.holds()) {
                let count = ledger.slots.count(lane);
                if count.pending + count.running == 0 && (end || !breaker.waits(now)) {
                    records.extend(breaker.settle());
                }
            }
        }
        self.submit(records);
    }

    fn submit(&mut self, records: Vec<HeldBack>) {
        for HeldBack { tag, delivery } in records {
            let lane = self.lanes.get(&LaneKey::of(&tag.lease));
            // For a removed run this is unknown, so its texts stay off the disk.
            let protected = lane.is_none_or(|lane| lane.run.material.protected);
            self.outbox.submit(tag, delivery, !protected);
        }
    }

    /// The record of this dialogue is dropped.
    pub(super) fn undelivered(&mut self, tag: &Tag) {
        if let Some(delivering) = self.delivering.remove(tag) {
            delivering.received(false);
        }
    }

    pub(super) fn arrived(&mut self, arrivals: Vec<Arrival>, now: Instant) {
        let mut refused = BTreeSet::new();
        {
            let mut ledger = self.ledger.lock();
            for Arrival { tag, refused: reason } in arrivals {
                if let Some(delivering) = tag.as_ref().and_then(|tag| self.delivering.remove(tag)) {
                    delivering.received(reason.is_none());
                }
                match (tag, reason) {
                    (Some(tag), None) => ledger.slots.acknowledged(&tag),
                    (Some(tag), Some(reason)) => {
                        ledger.slots.dropped(&tag);
                        refused.insert((LaneKey::of(&tag.lease), reason));
                    }
                    (None, _) => {}
                }
            }
        }
        for (lane, reason) in refused {
            // The record would be refused again, so not at once.
            self.trip(&lane, format!("the coordinator refused a record: {reason}"), now);
        }
    }
}
