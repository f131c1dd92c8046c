//! Every metric of the worker.
//!
//! Labels are bounded by configurations (models, servers) and closed lists of words.

use std::time::Duration;

use domain::{ErrorCode, FailureCause};
use metrics::{counter, gauge, histogram};
use service_kit::metrics::{MetricDefinition, MetricKind, Unit};

const DIALOGUES: &str = "kgfleet_worker_dialogues_total";
const DIALOGUE_SECONDS: &str = "kgfleet_worker_dialogue_duration_seconds";
const FAILED_CALLS: &str = "kgfleet_worker_failed_calls_total";
const IN_FLIGHT: &str = "kgfleet_worker_inflight_dialogues";
const LIMIT: &str = "kgfleet_worker_concurrency_limit";
const LEASES: &str = "kgfleet_worker_leases";
const PENDING: &str = "kgfleet_worker_pending_dialogues";
const UNACKNOWLEDGED: &str = "kgfleet_worker_unacknowledged_records";
const SPOOL_BYTES: &str = "kgfleet_worker_spool_bytes";
const RECEIPTS: &str = "kgfleet_worker_receipts_total";
const DELIVERY_SECONDS: &str = "kgfleet_worker_delivery_duration_seconds";
const DELIVERY_FAILURES: &str = "kgfleet_worker_delivery_failures_total";
const EXCHANGE_FAILURES: &str = "kgfleet_worker_exchange_failures_total";
const RENEWAL_AGE: &str = "kgfleet_worker_lease_age_seconds";
const LOST_LEASES: &str = "kgfleet_worker_lost_leases_total";
const PARKINGS: &str = "kgfleet_worker_parkings_total";

/// Every metric of this crate.
pub const DEFINITIONS: &[MetricDefinition] = &[
    MetricDefinition {
        name: DIALOGUES,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Dialogues that ended at this worker, by outcome: scored, or the cause of failure.",
        labels: &["model", "outcome"],
    },
    MetricDefinition {
        name: DIALOGUE_SECONDS,
        kind: MetricKind::Histogram,
        unit: Unit::Seconds,
        help: "Time from the start of a dialogue to its record.",
        labels: &["model"],
    },
    MetricDefinition {
        name: FAILED_CALLS,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Model calls that failed; most were retried.",
        labels: &["cause"],
    },
    MetricDefinition {
        name: IN_FLIGHT,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Dialogues under way.",
        labels: &["server"],
    },
    MetricDefinition {
        name: LIMIT,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Limit of dialogues in flight per server.",
        labels: &["server"],
    },
    MetricDefinition {
        name: LEASES,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Leases held.",
        labels: &[],
    },
    MetricDefinition {
        name: PENDING,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Leased dialogues that have not started.",
        labels: &[],
    },
    MetricDefinition {
        name: UNACKNOWLEDGED,
        kind: MetricKind::Gauge,
        unit: Unit::Count,
        help: "Records not yet acknowledged by a coordinator.",
        labels: &[],
    },
    MetricDefinition {
        name: SPOOL_BYTES,
        kind: MetricKind::Gauge,
        unit: Unit::Bytes,
        help: "Size of the spool on disk.",
        labels: &[],
    },
    MetricDefinition {
        name: RECEIPTS,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Receipts for records: stored or refused for good.",
        labels: &["outcome"],
    },
    MetricDefinition {
        name: DELIVERY_SECONDS,
        kind: MetricKind::Histogram,
        unit: Unit::Seconds,
        help: "Time from sending a batch of records to its receipts.",
        labels: &[],
    },
    MetricDefinition {
        name: DELIVERY_FAILURES,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Batches of records whose delivery failed; they are sent again.",
        labels: &["code"],
    },
    MetricDefinition {
        name: EXCHANGE_FAILURES,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Reports to the coordinator that failed.",
        labels: &["code"],
    },
    MetricDefinition {
        name: RENEWAL_AGE,
        kind: MetricKind::Gauge,
        unit: Unit::Seconds,
        help: "Time since the last renewal of leases.",
        labels: &[],
    },
    MetricDefinition {
        name: LOST_LEASES,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Leases lost to expiry or take-over.",
        labels: &[],
    },
    MetricDefinition {
        name: PARKINGS,
        kind: MetricKind::Counter,
        unit: Unit::Count,
        help: "Times that a model was parked because it could not be asked.",
        labels: &["model"],
    },
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_keeps_the_conventions() {
        assert_eq!(service_kit::metrics::violations(DEFINITIONS), [""; 0]);
    }
}
