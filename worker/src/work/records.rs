//! Handles ended dialogues and their records.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use domain::{DialogueKey, FailureCause, RunId};
use models::CallStage;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

use super::{Running, Work};
use crate::breaker::{Breaker, BreakerDecision, Failure, Flight};
use crate::first::turns_away;
use crate::metrics;
use crate::outbox::{Acknowledged, Outgoing};
use crate::servers::ServerKey;
use crate::slots::{LaneKey, Tag};

/// The record of a dialogue, or why it cannot be written.
pub(super) type EndedDialogue = Result<Outgoing, serde_json::Error>;

/// Number of dialogues, of the runs that this worker holds, remembered because it gave them back unjudged. Beyond it,
/// failures are recorded at once.
const UNJUDGED_KEPT_MAX: usize = 10_000;

/// The dialogues that this worker could not judge. The cause may be its machine, so the first time a dialogue is
/// given back, to be tried again, perhaps by another worker; only the second time its failure is recorded.
#[derive(Debug, Default)]
pub(super) struct Unjudged(HashSet<(RunId, DialogueKey)>);

impl Unjudged {
    /// Whether to give the dialogue back instead of recording its failure.
    fn give_back(&mut self, run: &RunId, key: DialogueKey) -> bool {
        let dialogue = (run.clone(), key);
        // One whose failure is recorded now is done.
        !self.0.remove(&dialogue) && self.0.len() < UNJUDGED_KEPT_MAX && self.0.insert(dialogue)
    }

    /// Forgets the dialogues of a run that this worker holds no longer.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.0.retain(|(of, _)| of != run);
    }
}

impl Work {
    pub(super) fn dialogue_ended(&mut self, ended: Result<(Id, EndedDialogue), JoinError>, now: Instant) {
        self.take_dialogue(ended, now);
        // Many end while one is processed; handling them together saves the rest of the loop.
        while let Some(ended) = self.dialogues.try_join_next_with_id() {
            self.take_dialogue(ended, now);
        }
    }

    fn take_dialogue(&mut self, ended: Result<(Id, EndedDialogue), JoinError>, now: Instant) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(tag) = self.tags.remove(&id) else { return };
        let Some(running) = self.running.remove(&tag) else { return };
        let lane = LaneKey::of(&tag.lease);
        self.leave_lane(&lane);
        let refused = ended.as_ref().ok().and_then(|ended| Some(ended.as_ref().ok()?.was_refused));
        self.servers.ended(&running.server, refused);
        let lost = |this: &mut Self, why: String| {
            this.ledger.lock().slots.dropped(&tag);
            this.trip(&lane, why, true, now);
        };
        let mut outgoing = match ended {
            Ok(Ok(outgoing)) => outgoing,
            Ok(Err(error)) => return lost(self, format!("a record cannot be written: {error}")),
            // The code that stopped it has updated the ledger.
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, dialogue = ?tag, "a dialogue ended by a panic");
                return lost(self, format!("a dialogue ended by a panic: {error}"));
            }
        };
        self.ended += 1;
        let mut failure = outgoing.failure.take();
        let cause = failure.as_ref().map(|(cause, _)| *cause);
        metrics::dialogue_ended(lane.model.as_str(), cause, now.duration_since(running.began));
        if let (Some(FailureCause::Connection), ServerKey::Found { endpoint, .. }) = (cause, &running.server)
        {
            self.discovery.suspect(endpoint);
        }
        if cause == Some(FailureCause::EvaluatorFailed)
            && self.unjudged.give_back(&lane.run, outgoing.delivery.key.clone())
        {
            tracing::warn!(dialogue = %outgoing.delivery.key, "an answer could not be judged here; its dialogue is given back");
            return self.drop_record(&outgoing);
        }
        if running.progress.was_answered() {
            self.servers.answered(&running.server);
        }
        let is_first = self.servers.is_first(&running.server) && cause.is_some_and(turns_away);
        if is_first {
            self.servers.failed_first(&running.server);
        }
        if let Some((_, message)) = failure.as_mut().filter(|_| is_first) {
            *message = self.servers.with_remark(&running.server, message);
        }
        if let Some((cause, message)) = failure.as_ref().filter(|_| is_first)
            && self.lanes.get(&lane).is_some_and(|lane| lane.servers.iter().any(|one| *one != running.server))
        {
            // Another server of the model is asked instead.
            self.servers.leave_alone(&running.server, &format!("{cause}: {message}"), now);
            self.unsettled = true;
            return self.drop_record(&outgoing);
        }
        // A record is delivered even if its lease was lost meanwhile: it may be the only one of its dialogue.
        self.ledger.lock().slots.ended(&tag);
        let sent = running.progress.latest().map_or(running.began, |(sent, _)| sent);
        let failure = failure.as_ref().map(|(cause, message)| Failure {
            cause: *cause,
            message,
            sent,
            renewed_at: running.progress.renewed_at(),
            is_first,
        });
        let breaker = self.breakers.entry(lane.clone()).or_default();
        let flight = |since, until| flight(&self.running, &lane, since, until);
        let decision = breaker.ended(outgoing, failure, flight, now);
        self.carry_out(&lane, decision);
    }

    /// Drops a record: its dialogue is asked again.
    pub(super) fn drop_record(&mut self, dropped: &Outgoing) {
        let Outgoing { tag, delivery, used, .. } = dropped;
        if let Some(cause) = delivery.failure {
            self.unrecorded.add(LaneKey::of(&tag.lease), used, cause);
        }
        self.ledger.lock().slots.dropped(tag);
    }

    /// Reviews the breakers in doubt: their models' other calls may have been answered or have failed by now.
    pub(super) fn review_doubts(&mut self, now: Instant) {
        let mut decided = Vec::new();
        for (lane, breaker) in &mut self.breakers {
            let flight = |since, until| flight(&self.running, lane, since, until);
            decided.extend(breaker.review(flight, now).map(|decision| (lane.clone(), decision)));
        }
        for (lane, decision) in decided {
            self.carry_out(&lane, decision);
        }
    }

    fn carry_out(&mut self, lane: &LaneKey, decision: BreakerDecision<Outgoing>) {
        match decision {
            BreakerDecision::Deliver(records) => self.submit(records),
            BreakerDecision::Hold => {}
            BreakerDecision::Forget(record) => self.drop_record(&record),
            BreakerDecision::Open { forgotten, parked_for } => {
                let last = self.breakers.get(lane).and_then(Breaker::last_failure);
                let (cause, message) = last.unwrap_or((FailureCause::Connection, ""));
                let reason = format!("{cause}: {message}");
                // A discovered server concerns this worker alone; an account concerns all.
                let servers = self.lanes.get(lane).map(|lane| lane.servers.as_slice()).unwrap_or_default();
                let is_hosted = servers.iter().any(|server| matches!(server, ServerKey::Hosted { .. }));
                let everywhere = is_hosted || cause == FailureCause::QuotaExhausted;
                metrics::parked(lane.model.as_str(), Some(cause));
                self.park(lane, forgotten, parked_for, reason, everywhere);
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

    fn submit(&mut self, records: Vec<Outgoing>) {
        for record in records {
            self.outbox.submit(record);
        }
    }

    pub(super) fn acknowledged(&mut self, acknowledged: Vec<Acknowledged>, now: Instant) {
        let mut refused = BTreeSet::new();
        {
            let mut ledger = self.ledger.lock();
            for Acknowledged { tag, refused: reason } in acknowledged {
                match (tag, reason) {
                    (Some(tag), None) => ledger.slots.acknowledged(&tag),
                    (Some(tag), Some(reason)) => {
                        // A record of a lease that was lost may be of a run that was removed: that says nothing about a new
                        // run of its name.
                        if ledger.slots.dropped(&tag) {
                            refused.insert((LaneKey::of(&tag.lease), reason));
                        }
                    }
                    (None, _) => {}
                }
            }
        }
        for (lane, reason) in refused {
            // The record would be refused again, so not at once.
            self.trip(&lane, format!("the coordinator refused a record: {reason}"), true, now);
        }
    }
}

/// Counts the calls of a lane that were sent from `since` on and have not failed; silent ones only if sent up to
/// `until`.
fn flight(running: &BTreeMap<Tag, Running>, lane: &LaneKey, since: Instant, until: Instant) -> Flight {
    let mut flight = Flight::default();
    for (_, running) in running.iter().filter(|(tag, _)| lane.has(&tag.lease)) {
        match running.progress.latest() {
            Some((sent, CallStage::Answered)) if sent >= since => flight.answered += 1,
            Some((sent, CallStage::Silent)) if (since..=until).contains(&sent) => flight.silent += 1,
            _ => {}
        }
    }
    flight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(iteration: u32) -> DialogueKey {
        DialogueKey { model: "m".into(), task: "t".into(), iteration }
    }

    #[test]
    fn a_dialogue_that_cannot_be_judged_is_given_back_once_and_then_forgotten() {
        let (run, other) = (RunId::new("a"), RunId::new("b"));
        let mut unjudged = Unjudged::default();
        assert!(unjudged.give_back(&run, key(0)));
        assert!(!unjudged.give_back(&run, key(0)), "its failure is recorded");
        assert!(unjudged.0.is_empty());
        assert!(unjudged.give_back(&run, key(0)), "somebody asked for it again");
        assert!(unjudged.give_back(&other, key(0)));
        unjudged.forget(&run);
        assert_eq!(unjudged.0.len(), 1);
    }

    #[test]
    fn runs_that_are_over_leave_room_for_later_ones() {
        let (run, later) = (RunId::new("a"), RunId::new("b"));
        let mut unjudged = Unjudged::default();
        for iteration in 0..UNJUDGED_KEPT_MAX as u32 {
            assert!(unjudged.give_back(&run, key(iteration)));
        }
        assert!(!unjudged.give_back(&later, key(0)));
        unjudged.forget(&run);
        assert!(unjudged.give_back(&later, key(0)));
    }
}
