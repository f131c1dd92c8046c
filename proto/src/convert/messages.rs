//! The messages and enumerations that look the same on both sides. A field or a variant is added to its line here, and
//! to the `.proto` file; a message whose fields differ from those of its type gets a file of its own. A number that no
//! variant has is an error, never another variant.

use domain::exchange::{
    Calls, Delivery, Grant, LeaseId, ModelCalls, ModelLimit, NameTaken, NotAsked, Orders, Outlook, Parking,
    Registered, Registration, Retries, TaskUse, Until, WorkerPhase, WorkerStatus,
};
use domain::{About, Connector, DialogueKey, FailureCause};

use super::ConversionError;
use super::on_wire::{OnWire, given, present};
use crate::wire;

numbered! {
    Connector => Connector { OpenaiCompatible, Anthropic, Gemini, Simulated, Replay }

    WorkerPhase => WorkerPhase { Loading, Serving, Idle, Ending }

    Outlook => Outlook { Unknown, Work, Surplus, Held, Later, Done }

    FailureCause => FailureCause {
        Connection, Timeout, Overloaded, RateLimited, QuotaExhausted, Server, Aborted, Unauthorized, ModelNotFound,
        WrongModel, BadRequest, ContextExceeded, EvaluatorFailed, Poisoned, Cancelled, JudgeUnparseable,
    }
}

// What workers and coordinators tell each other.
mirrored! {
    Registration => Registration { worker, instance, predecessors, kgfleet, host }

    Registered => Registered { kgfleet, report_every, taken }

    NameTaken => NameTaken { instance, host, silent_for, free_in }

    WorkerStatus => WorkerStatus {
        kgfleet, host, serves, in_flight, limit, dialogues, unacknowledged, parked_records, trouble, reach, lacks,
        sandbox, not_asked, pool, node, gpus, phase, phase_s, loaded_s,
        limits, expects, calls,
    }

    ModelCalls => ModelCalls { run, model, calls }

    Calls => Calls { in_flight, waiting, retries }

    Retries => Retries { why, calls, since, attempt }

    ModelLimit => ModelLimit { model: given, limit, reasons }

    NotAsked => NotAsked { run, model, reason, waits }

    Parking => Parking { run, model, parked_for, reason }

    Orders => Orders { grants, lost, noted, drain, superseded, outlook }

    Until => Until { expects }

    Grant => Grant { lease, task, iterations: given, lease_for, retry }

    // Attempts count from 1: the 0 of an absent field must not be a valid fence.
    LeaseId => LeaseId { run, generation, model, unit, attempt: given }

    DialogueKey => DialogueKey { model, task, iteration }

    Delivery => Delivery { run, key, failure, json }

    TaskUse => TaskUse { label, pack_label }

    About => About { pipeline: given, stage: given, model, number }
}

required_message! {
    DialogueKey => wire::DialogueKey,
    LeaseId => wire::LeaseId,
    WorkerStatus => wire::WorkerStatus,
}

/// Lets a message stand in a field that may be left out: absent is the default.
macro_rules! zero_where_absent {
    ($($type:ident => $wire:ident),+) => {$(
        impl OnWire<Option<wire::$wire>> for $type {
            fn to_wire(self) -> Option<wire::$wire> {
                Some(self.to_wire())
            }

            fn from_wire(_: &'static str, message: Option<wire::$wire>) -> Result<Self, ConversionError> {
                message.map_or_else(|| Ok(Self::default()), Self::try_from)
            }
        }
    )+};
}

zero_where_absent!(Calls => Calls);
