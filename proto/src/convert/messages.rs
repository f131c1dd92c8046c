//! The messages and enumerations that look the same on both sides. A field or a variant is added to its line here, and
//! to the `.proto` file; a message whose fields differ from those of its type gets a file of its own. A number that no
//! variant has is an error, never another variant.

use domain::control::{
    BenchmarkCommand, BenchmarkView, Better, CellView, DeadLetterView, HeadlineView, HistoryEntry, ModelNeed,
    ModelView, Pace, RefusalView, RowKind, RowView, RunLine, RunPhase, StrikeView, WorkerView,
};
use domain::exchange::{
    Calls, Delivery, Grant, LeaseId, ModelCalls, ModelLimit, NameTaken, NotAsked, Orders, Outlook, Parking,
    Registered, Registration, Retries, TaskUse, Until, WorkerPhase, WorkerStatus,
};
use domain::pools::{
    PoolState, PoolStates, PoolWait, ServerEnd, ServerFault, ServerStage, ServerUsage, ServersDoing,
    UsageHours, WaitReason,
};
use domain::{
    About, Connector, DialogueKey, ErrorCode, FailureCause, Mean, ModelUsage, Oddity, RunId, ServiceError,
};

use super::on_wire::{OnWire, given, present};
use super::{ConversionError, required};
use crate::wire;

numbered! {
    Connector => Connector { OpenaiCompatible, Anthropic, Gemini, Simulated, Replay }

    RunPhase => RunPhase { Preparing, Active, Paused, Cancelled, Finished }

    ServerStage => ServerStage { Queued, Loading, Serving, Idle, Ending }

    WaitReason => WaitReason { Gpus, Gang, Budget, Retry, GivenUp, Weights }

    ServerEnd => ServerEnd { Done, Disrupted, Unusable, Failed, NoNodes }

    ServerFault => ServerFault {
        Unusable, Volume, NotLoaded, Silent, Deadline, OutOfMemory, Crashes, Image, Evicted, NodeLost, NoNodes, Other,
    }

    RowKind => RowKind { Task, Stage, Result }

    Better => Better { Higher, Lower, Neither }

    WorkerPhase => WorkerPhase { Loading, Serving, Idle, Ending }

    Outlook => Outlook { Unknown, Work, Surplus, Held, Later, Done }

    BenchmarkCommand => RunCommand { Pause, Resume, Cancel }

    ErrorCode => ErrorCode { Invalid, NotFound, Conflict, Incompatible, Denied, Full, Unavailable, Internal }

    Oddity => Oddity { Cut, Empty, Filtered, PromptCut, NoFinishReason, ReasoningMarkers }

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

    // Why a batch was refused. Errors of whole calls are in `status`.
    ServiceError => BatchError { code, message }
}

// What people see.
mirrored! {
    BenchmarkView => RunView {
        run, name, phase, created_at, generation, planned, scored, failed, failures, rate, eta_s, trouble, models,
        cells, tokens_per_second, refusals, notes, history, headline, rows, runs,
        elapsed_s, per_minute, unacknowledged, priority, submitter, pools,
    }

    HistoryEntry => HistoryEntry { at, who, what }

    ModelView => ModelView {
        model, planned, scored, failed, units_pending, units_leased, units_dead, units_suspect, workers, parked, pace,
        blocked, mean, billed_as, usage, limit, limit_reasons, loading, calls,
    }

    ModelUsage => ModelUsage {
        dialogues, uncounted, prompt_tokens, cached_tokens, completion_tokens, answers, answer_ms, failed_calls,
    }

    Pace => Pace { rate, tokens_per_second, eta_s }

    Mean => Mean { value, covered, planned }

    HeadlineView => Headline { words, intervals }

    RowView => RowView { name, kind, better }

    RunLine => RunLine { name, stage, model, asks, phase, planned, scored, failed }

    CellView => CellView { task, model, scored, failed, mean, planned, missing, odd }

    RefusalView => Refusal { model, cause, message, dialogues }

    WorkerView => WorkerView { worker, status, seen_ms_ago, draining }

    DeadLetterView => DeadLetter { run, unit, dialogues, strikes, suspect }

    StrikeView => Strike { worker, attempt, cause, at }

    ModelNeed => ModelNeed { model: given, outlook, dialogues, rate, workers }

    PoolStates => PoolStates {
        release: given, pools, gpu_hours, gpu_hours_planned, gpu_hours_budget, plan_ends_at,
    }

    UsageHours => UsageHours { load, work, idle, lost }

    ServerUsage => ServerUsage {
        release, pool: given, pool_uid, template, model, job: given, uid: given, image, revision, gpus, nodes,
        took_gpus_at, loaded_at, ended_at, idle_s, dialogues, end, fault, why,
    }

    PoolState => PoolState {
        pool: given, model: given, gpus, servers, wait, is_given_up, failures, last_failure, left, gpu_hours,
        load_s, loading_s, not_starting,
    }

    PoolWait => PoolWait { why, since, until }

    ServersDoing => ServersDoing { stage, servers: given }
}

required_message! {
    DialogueKey => wire::DialogueKey,
    LeaseId => wire::LeaseId,
    WorkerStatus => wire::WorkerStatus,
    UsageHours => wire::UsageHours,
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

zero_where_absent!(Pace => Pace, Mean => Mean, HeadlineView => Headline, ModelUsage => ModelUsage, Calls => Calls);

/// How many dialogues failed for a cause.
impl OnWire<wire::FailureCount> for (FailureCause, u64) {
    fn to_wire(self) -> wire::FailureCount {
        wire::FailureCount { cause: self.0.to_wire(), dialogues: self.1 }
    }

    fn from_wire(_: &'static str, count: wire::FailureCount) -> Result<Self, ConversionError> {
        Ok((OnWire::from_wire("FailureCount.cause", count.cause)?, count.dialogues))
    }
}

/// How many dialogues have answers that are odd in one way.
impl OnWire<wire::OddCount> for (Oddity, u64) {
    fn to_wire(self) -> wire::OddCount {
        wire::OddCount { oddity: self.0.to_wire(), dialogues: self.1 }
    }

    fn from_wire(_: &'static str, count: wire::OddCount) -> Result<Self, ConversionError> {
        Ok((OnWire::from_wire("OddCount.oddity", count.oddity)?, count.dialogues))
    }
}

/// A command for a run.
impl From<(&RunId, BenchmarkCommand)> for wire::CommandRequest {
    fn from((run, command): (&RunId, BenchmarkCommand)) -> Self {
        Self { run: run.to_string(), command: command.to_wire() }
    }
}

impl TryFrom<wire::CommandRequest> for (RunId, BenchmarkCommand) {
    type Error = ConversionError;

    fn try_from(request: wire::CommandRequest) -> Result<Self, ConversionError> {
        let command = OnWire::from_wire("CommandRequest.command", request.command)?;
        Ok((RunId::new(required("CommandRequest.run", request.run)?), command))
    }
}

/// The causes of a request to queue failed dialogues again.
pub(crate) fn causes_from_wire(numbers: Vec<i32>) -> Result<Vec<FailureCause>, ConversionError> {
    OnWire::from_wire("RetryRequest.causes", numbers)
}

/// The numbers of causes.
pub(crate) fn causes_to_wire(causes: &[FailureCause]) -> Vec<i32> {
    causes.to_vec().to_wire()
}
