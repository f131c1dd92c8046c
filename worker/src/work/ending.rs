//! How a worker ends: what runs may finish, what is left is given back, records are delivered.

use std::time::Duration;

use domain::exchange::{LeaseId, NameTaken};
use tokio::time::Instant;

use super::Work;
use crate::slots::Tag;
use service_kit::Stop;

/// The longest wait for receipts at the end. What has none is sent from the spool by the next process.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The same for a worker that is told to drop everything.
const FLUSH_ABORTED_MAX: Duration = Duration::from_secs(1);

/// The longest wait for the coordinator to take note of the last leases. Those that it does not hear of expire.
const TELL_MAX: Duration = Duration::from_secs(5);

/// How far the end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is not in sight.
    Working,
    /// Dialogues under way may go on until then.
    Finishing { until: Instant },
    /// Records wait for their receipts until then.
    Flushing { until: Instant },
    /// The coordinator is told of the last leases until then.
    Telling { until: Instant },
    /// Now.
    Over,
}

impl Work {
    /// Somebody on this machine asks for an end.
    pub(super) fn stop(&mut self, stop: Stop, now: Instant) {
        match stop {
            Stop::No => {}
            Stop::Drain => self.drain(now),
            Stop::Abort => {
                self.drain(now);
                if let Phase::Finishing { .. } = self.phase {
                    self.stop_all();
                    self.phase = Phase::Flushing { until: now + FLUSH_ABORTED_MAX };
                }
            }
        }
    }

    /// Takes nothing new, gives back what has not begun, and lets the rest finish.
    pub(super) fn drain(&mut self, now: Instant) {
        if self.phase != Phase::Working {
            return;
        }
        self.phase = Phase::Finishing { until: now + self.config.grace };
        let mut ledger = self.ledger.lock();
        ledger.draining = true;
        ledger.slots.give_back_all();
        tracing::info!(dialogues = ledger.slots.total().running, "draining");
    }

    /// Another process has this worker's name, and all that it held: nothing is left but to deliver its records.
    pub(super) fn supersede(&mut self, by: NameTaken, now: Instant) {
        if self.superseded.is_some() {
            return;
        }
        tracing::error!("{by}; this process ends");
        self.superseded = Some(by);
        self.drain(now);
        {
            let mut ledger = self.ledger.lock();
            let held: Vec<LeaseId> = ledger.slots.held().cloned().collect();
            for tag in held.iter().flat_map(|lease| ledger.slots.lost(lease)) {
                if let Some(running) = self.running.get(&tag) {
                    running.task.abort();
                }
            }
        }
        self.phase = Phase::Flushing { until: now + FLUSH_MAX };
    }

    /// Who has this worker's name.
    pub(crate) fn superseded(&self) -> Option<NameTaken> {
        self.superseded.clone()
    }

    fn stop_all(&mut self) {
        let tags: Vec<Tag> = self.running.keys().cloned().collect();
        tags.iter().for_each(|tag| self.stop_dialogue(tag));
    }

    /// Goes on with the end as far as it can; when it can go further.
    pub(super) fn advance_ending(&mut self, now: Instant) -> Option<Instant> {
        loop {
            match self.phase {
                Phase::Working | Phase::Over => return None,
                Phase::Finishing { until } => {
                    if self.ledger.lock().slots.total().running > 0 {
                        if now < until {
                            return Some(until);
                        }
                        tracing::warn!(dialogues = self.running.len(), "the grace period is over");
                        self.stop_all();
                    }
                    self.phase = Phase::Flushing { until: now + FLUSH_MAX };
                    self.release_held_back(true, now);
                }
                Phase::Flushing { until } => {
                    let delivered = self.outbox.unacknowledged() == self.outbox.parked()
                        && self.ledger.lock().slots.is_empty();
                    if !delivered && now < until {
                        return Some(until);
                    }
                    self.ledger.lock().slots.release_all();
                    self.phase = Phase::Telling { until: now + TELL_MAX };
                }
                Phase::Telling { until } => {
                    // One that lost its name is not listened to.
                    if self.superseded.is_none() && self.ledger.lock().has_news(None) && now < until {
                        return Some(until);
                    }
                    self.phase = Phase::Over;
                }
            }
        }
    }
}
