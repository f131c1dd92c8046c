//! Every metric of the worker: names, units and what they count.
//!
//! Labels are bounded by configurations: models, servers, and closed lists of words. Never a task's iteration.

use std::time::Duration;

use domain::{ErrorCode, FailureCause};
use metrics::{counter, gauge, histogram};

/// Dialogues that ended here. Labels: `model`, `outcome` (`scored`, or the cause of the failure).
pub const DIALOGUES: &str = "kgfleet_worker_dialogues_total";
/// Time from the begin of a dialogue to its record, in seconds. Label: `model`.
pub const DIALOGUE_SECONDS: &str = "kgfleet_worker_dialogue_duration_seconds";
/// Calls of models that failed and may have been repeated. Label: `cause`.
pub const FAILED_CALLS: &str = "kgfleet_worker_failed_calls_total";
/// Dialogues under way. Label: `server`.
pub const IN_FLIGHT: &str = "kgfleet_worker_inflight_dialogues";
/// Dialogues that a server is given at once. Label: `server`.
pub const LIMIT: &str = "kgfleet_worker_concurrency_limit";
/// Leases held.
pub const LEASES: &str = "kgfleet_worker_leases";
/// Dialogues held that have not begun.
pub const PENDING: &str = "kgfleet_worker_pending_dialogues";
/// Records that no coordinator has acknowledged.
pub const UNACKNOWLEDGED: &str = "kgfleet_worker_unacknowledged_records";
/// Bytes of the spool.
pub const SPOOL_BYTES: &str = "kgfleet_worker_spool_bytes";
/// Records acknowledged. Label: `outcome` (`stored`, `refused`).
pub const RECEIPTS: &str = "kgfleet_worker_receipts_total";
/// Time from sending a batch of records to its receipts, in seconds.
pub const DELIVERY_SECONDS: &str = "kgfleet_worker_delivery_duration_seconds";
/// Batches of records that went in vain. Label: `code`.
pub const DELIVERY_FAILURES: &str = "kgfleet_worker_delivery_failures_total";
/// Reports to the coordinator that went in vain. Label: `code`.
pub const EXCHANGE_FAILURES: &str = "kgfleet_worker_exchange_failures_total";
/// Time since leases were last renewed, in seconds.
pub const RENEWAL_AGE: &str = "kgfleet_worker_lease_age_seconds";
/// Leases that were lost while they were held.
pub const LOST_LEASES: &str = "kgfleet_worker_lost_leases_total";
/// Times that a model's breaker opened. Label: `model`.
pub const PARKINGS: &str = "kgfleet_worker_parkings_total";

pub(crate) fn dialogue_ended(model: &str, cause: Option<FailureCause>, took: Duration) {
    let outcome = cause.map_or("scored", FailureCause::as_str);
    counter!(DIALOGUES, "model" => model.to_owned(), "outcome" => outcome).increment(1);
    histogram!(DIALOGUE_SECONDS, "model" => model.to_owned()).record(took.as_secs_f64());
}

pub(crate) fn call_failed(cause: FailureCause) {
    counter!(FAILED_CALLS, "cause" => cause.as_str()).increment(1);
}

pub(crate) fn server(name: String, limit: u32, in_flight: u32) {
    gauge!(LIMIT, "server" => name.clone()).set(limit);
    gauge!(IN_FLIGHT, "server" => name).set(in_flight);
}

pub(crate) fn holdings(leases: usize, pending: u32, unacknowledged: u64) {
    gauge!(LEASES).set(leases as f64);
    gauge!(PENDING).set(pending);
    gauge!(UNACKNOWLEDGED).set(unacknowledged as f64);
}

pub(crate) fn spool_bytes(bytes: u64) {
    gauge!(SPOOL_BYTES).set(bytes as f64);
}

pub(crate) fn record_received(refused: bool) {
    counter!(RECEIPTS, "outcome" => if refused { "refused" } else { "stored" }).increment(1);
}

pub(crate) fn delivered(took: Duration) {
    histogram!(DELIVERY_SECONDS).record(took.as_secs_f64());
}

pub(crate) fn delivery_failed(code: ErrorCode) {
    counter!(DELIVERY_FAILURES, "code" => code_name(code)).increment(1);
}

pub(crate) fn exchange_failed(code: ErrorCode) {
    counter!(EXCHANGE_FAILURES, "code" => code_name(code)).increment(1);
}

pub(crate) fn renewal_age(age: Duration) {
    gauge!(RENEWAL_AGE).set(age.as_secs_f64());
}

pub(crate) fn leases_lost(leases: usize) {
    counter!(LOST_LEASES).increment(leases as u64);
}

pub(crate) fn parked(model: &str) {
    counter!(PARKINGS, "model" => model.to_owned()).increment(1);
}

fn code_name(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Invalid => "invalid",
        ErrorCode::NotFound => "not_found",
        ErrorCode::Conflict => "conflict",
        ErrorCode::Incompatible => "incompatible",
        ErrorCode::Denied => "denied",
        ErrorCode::Full => "full",
        ErrorCode::Unavailable => "unavailable",
        ErrorCode::Internal => "internal",
    }
}
