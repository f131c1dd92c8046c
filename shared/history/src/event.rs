//! What coordinators note.

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

/// How a lease ends by the word of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseEnding {
    /// The unit is given back.
    Release,
    /// The unit is done.
    Finish,
}

/// What happened. What ends a lease is noted before the queue is asked and after it answered: a coordinator that dies in
/// between has said what it was about to do.
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
        /// The first of them.
        first: UnitId,
        /// How many.
        units: u64,
    },
    /// A unit was leased.
    Granted {
        /// The proof of holding it.
        fence: Fence,
        /// Who holds it.
        worker: WorkerId,
        /// Until when, milliseconds by the queue's clock.
        until_ms: u64,
    },
    /// Leases of a worker begin anew.
    Renewed {
        /// Who holds them.
        worker: WorkerId,
        /// Those that do.
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
    /// It ended these; the others were stale.
    Ended {
        /// How.
        ending: LeaseEnding,
        /// Which.
        fences: Vec<Fence>,
    },
    /// The queue is about to be asked to take over the leases of the dead: of one worker, or all that expired.
    Reaping {
        /// The run's generation.
        generation: u64,
        /// Who is dead.
        worker: Option<WorkerId>,
    },
    /// It took these over.
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
        /// What the queue made of it.
        effect: Effect,
    },
    /// A worker is about to be told that its record is durable.
    Acknowledged { record: RecordId },
    /// The run is finished, with these winners.
    Finished(Winners),
    /// The run goes on after it was finished.
    Reopened {},
    /// The queue has lost what it was told since then, and stays in its generation: noted by tests that made it so. What
    /// contradicts something of that time is no fault of a coordinator.
    WritesLost {
        /// Milliseconds since the Unix epoch.
        since_ms: u64,
    },
    /// Nothing more is noted here: a bound was reached, or the disk is full.
    Cut {},
}

/// [`queue::CommitEffect`] in a form that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The dialogue had no record.
    First,
    /// It wins over the record with this standing.
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

/// Which records count, in short: equal sets have equal digests, in whatever order they are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winners {
    /// Dialogues that have a record.
    pub dialogues: u64,
    /// Those whose record has scores.
    pub scored: u64,
    digest: u64,
}

impl Winners {
    /// Takes the record of one more dialogue into account.
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
