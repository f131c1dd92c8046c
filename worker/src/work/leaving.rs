//! What a worker is doing, and whether it ends by itself.

use std::time::Duration;

use domain::exchange::{Departure, Outlook, WorkerPhase};
use tokio::time::Instant;

use super::Work;
use super::ending::DrainPhase;
use crate::until_done::{UntilDone, WorkerEnding};

/// How often a worker without a lease asks what is left.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a worker is doing, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerDoing {
    pub phase: WorkerPhase,
    since: Instant,
    /// How long the latest loading of its servers took.
    pub loaded_in: Option<Duration>,
}

impl WorkerDoing {
    pub(super) fn loading(now: Instant) -> Self {
        Self { phase: WorkerPhase::Loading, since: now, loaded_in: None }
    }

    /// Notes what it is doing now.
    fn note(&mut self, phase: WorkerPhase, now: Instant) {
        if phase == self.phase {
            return;
        }
        if self.phase == WorkerPhase::Loading && phase != WorkerPhase::Ending {
            self.loaded_in = Some(now.duration_since(self.since));
            tracing::info!(seconds = now.duration_since(self.since).as_secs(), "the first server answers");
        }
        (self.phase, self.since) = (phase, now);
    }

    /// How long it has been doing it.
    pub(super) fn time(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }
}

impl Work {
    /// Notes what the worker is doing, and ends it if its models have no work left.
    pub(super) fn advance_leaving(&mut self, now: Instant) {
        let phase = if self.phase != DrainPhase::Working {
            WorkerPhase::Ending
        } else if !self.running.is_empty() {
            WorkerPhase::Serving
        } else if self.config.connectors.is_empty() && self.servers.are_loading() {
            WorkerPhase::Loading
        } else {
            WorkerPhase::Idle
        };
        self.doing.note(phase, now);
        if self.phase != DrainPhase::Working {
            return;
        }
        if let Some(reason) = self.servers.lost() {
            self.leave(WorkerEnding { why: Departure::Failed, reason }, now);
            return;
        }
        let holds = !self.ledger.lock().slots.is_empty();
        let Some(until) = &mut self.until else { return };
        let needs_none = !self.config.connectors.is_empty() && self.servers.has_none();
        until.servers(needs_none || self.servers.any_answers(), self.doing.loaded_in, now);
        if holds {
            until.holds(now);
        }
        let keeps_records = holds || self.outbox.unacknowledged() > 0;
        if let Some(ending) = until.ending(keeps_records, || self.servers.trouble(), now) {
            self.leave(ending, now);
        }
    }

    /// Takes what a coordinator answered to a report of this moment.
    pub(super) fn told(&mut self, outlook: Option<Outlook>, asked: Instant, now: Instant) {
        if let Some(until) = &mut self.until {
            until.told(outlook, asked, now);
        }
    }

    /// Ends: takes no more work, and waits until every record is acknowledged.
    fn leave(&mut self, ending: WorkerEnding, now: Instant) {
        match ending.why {
            Departure::Failed => tracing::error!(reason = ending.reason, "ending"),
            why => tracing::info!(%why, reason = ending.reason, "ending"),
        }
        self.drain(now);
        self.leaving = Some(ending);
    }

    /// Why it has ended; `None` if it was told to.
    pub(crate) fn ended_because(&self) -> Option<WorkerEnding> {
        let kept = self.outbox.unacknowledged();
        match &self.leaving {
            Some(ending) if kept == 0 => Some(ending.clone()),
            // Everything but these was delivered, and nothing more came of waiting.
            Some(_) if !self.is_cut_short && kept == self.outbox.stranded() => Some(WorkerEnding {
                why: Departure::Failed,
                reason: format!(
                    "{kept} records belong to runs that the coordinator does not know or cannot load"
                ),
            }),
            _ if kept == 0 && self.until.as_ref().is_some_and(UntilDone::is_done) => {
                Some(WorkerEnding { why: Departure::Done, reason: "its models have no work left".to_owned() })
            }
            _ => None,
        }
    }
}
