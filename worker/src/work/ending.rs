//! Shutdown of a worker: dialogues in flight may finish, the rest is given back, records are delivered.

use std::time::Duration;

use domain::exchange::{LeaseId, NameTaken};
use tokio::time::Instant;

use super::Work;
use crate::config::Draining;
use crate::until_done::UntilDone;
use service_kit::Stop;

/// Maximum wait for receipts at the end. The next process sends unacknowledged records from the spool.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The same if the worker must drop everything.
const FLUSH_ABORTED_MAX: Duration = Duration::from_secs(1);

/// Maximum wait for the coordinator to process the last leases. Those that it does not hear of expire.
const TELL_MAX: Duration = Duration::from_secs(5);

/// The stage of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainPhase {
    /// Not stopping.
    Working,
    /// Dialogues in flight may run until then.
    Finishing { until: Instant },
    /// Records may be delivered until then. One that ends by itself hurries for nobody, and waits for all receipts but those
    /// of runs that the coordinator does not know, which it gives until `stranded_until`.
    Flushing { until: Option<Instant>, stranded_until: Instant },
    /// The last leases may be reported until then.
    Telling { until: Instant },
    /// Stopped.
    Over,
}

impl Work {
    /// A shutdown was requested on this machine.
    pub(super) fn stop(&mut self, stop: Stop, now: Instant) {
        match stop {
            Stop::No => {}
            Stop::Drain => {
                self.drain(now);
                self.hurry(FLUSH_MAX, now);
            }
            Stop::Abort => {
                self.drain(now);
                if let DrainPhase::Finishing { .. } = self.phase {
                    self.stop_those(|_, _| true);
                    self.phase = flushing(FLUSH_ABORTED_MAX, now);
                }
                self.hurry(FLUSH_ABORTED_MAX, now);
            }
        }
    }

    /// Bounds the wait for receipts of a worker that ends by itself: it was told to end.
    fn hurry(&mut self, flush_max: Duration, now: Instant) {
        if self.leaving.is_none() {
            return;
        }
        match self.phase {
            DrainPhase::Flushing { until: None, .. } => self.phase = flushing(flush_max, now),
            DrainPhase::Finishing { .. } => {}
            _ => return,
        }
        self.is_cut_short = true;
    }

    /// Takes no new work, gives back what has not started, and lets the rest finish.
    pub(super) fn drain(&mut self, now: Instant) {
        if self.phase != DrainPhase::Working {
            return;
        }
        self.phase = DrainPhase::Finishing { until: now + self.config.grace };
        let given_up = self.stop_unaccepted();
        let in_flight = {
            let mut ledger = self.ledger.lock();
            ledger.draining = true;
            ledger.slots.give_back_all();
            ledger.slots.total().running as usize
        };
        tracing::info!(given_up, in_flight, "draining");
        (self.config.on_drain)(Draining { given_up, in_flight });
    }

    /// Another process has taken over this worker's name and leases: deliver the records and end.
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
            held.iter().flat_map(|lease| ledger.slots.lost(lease)).for_each(|tag| self.abort(&tag));
        }
        self.phase = flushing(FLUSH_MAX, now);
    }

    /// The process that has this worker's name.
    pub(crate) fn superseded(&self) -> Option<NameTaken> {
        self.superseded.clone()
    }

    /// Stops the dialogues whose calls no server has accepted, which would wait for another attempt; how many.
    fn stop_unaccepted(&self) -> usize {
        self.stop_those(|_, running| running.is_unaccepted())
    }

    /// Advances the shutdown as far as possible; returns when it may advance further.
    pub(super) fn advance_ending(&mut self, now: Instant) -> Option<Instant> {
        loop {
            match self.phase {
                DrainPhase::Working | DrainPhase::Over => return None,
                DrainPhase::Finishing { until } => {
                    self.stop_unaccepted();
                    if self.ledger.lock().slots.total().running > 0 {
                        if now < until {
                            return Some(until);
                        }
                        tracing::warn!(dialogues = self.running.len(), "the grace period is over");
                        self.stop_those(|_, _| true);
                    }
                    let hurries = self.leaving.is_none() || self.is_cut_short;
                    let stranded_for = self.until.as_ref().map_or(FLUSH_MAX, UntilDone::idle_after);
                    self.phase = match hurries {
                        true => flushing(FLUSH_MAX, now),
                        false => DrainPhase::Flushing { until: None, stranded_until: now + stranded_for },
                    };
                    self.release_held_back(true, now);
                }
                DrainPhase::Flushing { until, stranded_until } => {
                    let stranded = self.outbox.stranded();
                    let delivered =
                        self.outbox.unacknowledged() == stranded && self.ledger.lock().slots.is_empty();
                    match until {
                        Some(until) if !delivered && now < until => return Some(until),
                        None if !delivered => return None,
                        None if stranded > 0 && now < stranded_until => return Some(stranded_until),
                        _ => {}
                    }
                    self.ledger.lock().slots.release_all();
                    self.phase = DrainPhase::Telling { until: now + TELL_MAX };
                }
                DrainPhase::Telling { until } => {
                    // A process that lost its name is ignored.
                    if self.superseded.is_none() && self.ledger.lock().has_news(None) && now < until {
                        return Some(until);
                    }
                    self.phase = DrainPhase::Over;
                }
            }
        }
    }
}

/// Records may be delivered for so long.
fn flushing(at_most: Duration, now: Instant) -> DrainPhase {
    DrainPhase::Flushing { until: Some(now + at_most), stranded_until: now }
}
