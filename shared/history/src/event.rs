//! The events that coordinators note.

use domain::{DialogueKey, RecordId, RunId, WorkerId};
use queue::{Fence, UnitId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    /// When it was noted, milliseconds since the Unix epoch by the coordinator's clock.
    pub at_ms: u64,
    /// The run that it is about.
    pub run: RunId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// How a worker ends its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseEnding {
    /// The unit is given back.
    Release,
    /// The unit is done.
    Finish,
}

/// An event. The end of a lease is noted before the queue is asked and again after its answer, so that a coordinator
/// that dies in between has noted what it was about to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run's queue was built, or joined.
    Opened {
        generation: u64,
        /// How long a lease lasts without renewal, in milliseconds.
        lease_ms: u64,
    },
    /// Units were added.
    Offered {
        /// The run's generation.
        generation: u64,
        /// Id of the first unit.
        first: UnitId,
        /// Number of units.
        units: u64,
    },
    /// A unit was leased.
    Granted {
        /// Identifies the lease.
        fence: Fence,
        /// Who holds it.
        worker: WorkerId,
        /// Until when, milliseconds by the queue's clock.
        until_ms: u64,
    },
    /// Leases of a worker were renewed.
    Renewed {
        /// The worker.
        worker: WorkerId,
        /// Its renewed leases.
        held: Vec<Fence>,
        /// Until when, milliseconds by the queue's clock.
        until_ms: u64,
    },
    /// The queue is about to be asked to end leases.
    Ending {
        /// How.
        ending: LeaseEnding,
        /// Which.
        fences: Vec<Fence>,
    },
    /// The queue ended these leases; the others were stale.
    Ended {
        /// How.
        ending: LeaseEnding,
        /// Which.
        fences: Vec<Fence>,
    },
    /// The queue is about to be asked to take over leases: those of one dead worker, or all that expired.
    Reaping {
        /// The run's generation.
        generation: u64,
        /// The dead worker; `None` for all expired leases.
        worker: Option<WorkerId>,
    },
    /// The queue took these units over.
    Reaped {
        /// The run's generation.
        generation: u64,
        /// Which.
        units: Vec<UnitId>,
    },
    /// The queue was told of a durable record.
    Committed {
        /// The run's generation.
        generation: u64,
        /// The dialogue.
        key: DialogueKey,
        /// Whether the record has scores.
        scored: bool,
        ticket: u64,
        /// What the commit changed.
        effect: Effect,
    },
    /// A worker is about to be told that its record is durable.
    Acknowledged {
        record: RecordId,
        /// The run's generation; 0 from versions that did not note it.
        #[serde(default)]
        generation: u64,
    },
    /// The run is finished, with these winners.
    Finished {
        #[serde(flatten)]
        winners: Winners,
        /// The run's generation; 0 from versions that did not note it.
        #[serde(default)]
        generation: u64,
        /// Number of the seal that closed its log; 0 from versions that did not note it. Seals are in one order for all
        /// coordinators, whose clocks are not.
        #[serde(default)]
        seal: u32,
    },
    /// The finished run continues.
    Reopened {
        /// Number of the seal that opened its log again; 0 from versions that did not note it.
        #[serde(default)]
        seal: u32,
    },
    /// The run is about to be removed. A run of the same name may come later: derived or submitted anew, or from a copy of
    /// the records. It has a higher generation.
    Removed {
        /// The last generation of the run.
        generation: u64,
    },
    /// The queue has lost its writes since then, and keeps its generation. Noted by tests that cause this;
    /// contradictions from that time are not the fault of a coordinator.
    WritesLost {
        /// Milliseconds since the Unix epoch.
        since_ms: u64,
    },
    /// The record log has lost these records: it was damaged, or restored from an older copy. Noted by tests that cause
    /// this; what is named here is not the fault of a coordinator.
    RecordsLost { records: Vec<LostRecord> },
    /// The event log ends here: a limit was reached, or the disk is full.
    Cut {},
}

/// A record that was in the log, as a [`Kept`](crate::Kept) was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRecord {
    pub record: RecordId,
    /// Its dialogue.
    pub key: DialogueKey,
    pub ticket: u64,
    /// Whether it had scores.
    pub scored: bool,
    /// Whether it arrived after its run had finished.
    pub late: bool,
}

/// [`queue::CommitEffect`] in a form for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The dialogue had no record.
    First,
    /// It wins over the record with this outcome and ticket.
    Supersedes {
        /// Whether that one has scores.
        scored: bool,
        ticket: u64,
    },
    /// It counts already.
    Repeated,
    /// Another one wins.
    Loses,
}

impl From<queue::CommitEffect> for Effect {
    fn from(effect: queue::CommitEffect) -> Self {
        match effect {
            queue::CommitEffect::First => Self::First,
            queue::CommitEffect::Supersedes(old) => {
                Self::Supersedes { scored: old.scored, ticket: old.ticket }
            }
            queue::CommitEffect::Repeated => Self::Repeated,
            queue::CommitEffect::Loses(_) => Self::Loses,
        }
    }
}

/// A digest of the winners: equal for equal sets, in whatever order they are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winners {
    /// Dialogues that have a record.
    pub dialogues: u64,
    /// Those whose record has scores.
    pub scored: u64,
    digest: u64,
}

impl Winners {
    /// Adds the winner of one more dialogue.
    pub fn add(&mut self, key: &DialogueKey, scored: bool, ticket: u64) {
        let hash = Sha256::new()
            .chain_update(key.to_string())
            .chain_update([0, u8::from(scored)])
            .chain_update(ticket.to_le_bytes())
            .finalize();
        let part = hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.digest = self.digest.wrapping_add(part);
        self.dialogues += 1;
        self.scored += u64::from(scored);
    }
}
