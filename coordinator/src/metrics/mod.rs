//! What a coordinator measures.
//!
//! Labels are models, tasks, causes, and the names of runs that are not over. What belongs to a run is stated as a frame,
//! so that its series end with it; counters belong to the process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{FailureCause, ModelLabel, TaskLabel};
use jiff::Timestamp;
use metrics::{counter, gauge, histogram};
use queue::{Reap, Reaped};
use service_kit::metrics::Metrics;

mod table;

pub use table::DEFINITIONS;
pub(crate) use table::*;

/// Pairs of model and task that are counted apart in one process; those of further configurations are counted together.
const CELLS_MAX: usize = 2_000;

/// The label of what is not counted apart.
const OTHER: &str = "other";

/// Begins to collect: describes every metric, and starts counters that people watch for their first increase at 0.
pub fn begin(metrics: &Metrics) {
    metrics.describe(DEFINITIONS);
    counter!(RECORDS).increment(0);
    counter!(SINK_FAILURES).increment(0);
    counter!(QUEUE_REBUILDS).increment(0);
    counter!(ASKED_AGAIN).increment(0);
    repeated(0, 0);
    for cause in ["expired", "restarted"] {
        for result in ["returned", "suspect", "struck", "dead"] {
            counter!(TAKEN_OVER, "cause" => cause, "result" => result).increment(0);
        }
    }
}

/// States when the certificate ends that this coordinator serves with.
pub fn certificate_ends(at: Timestamp) {
    gauge!(CERTIFICATE_EXPIRATION).set(at.as_second() as f64);
}

/// Whether a pair of model and task is counted apart.
fn is_counted_apart(model: &str, task: &str) -> bool {
    static CELLS: Mutex<Option<HashSet<(String, String)>>> = Mutex::new(None);
    let mut cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let cells = cells.get_or_insert_default();
    let cell = (model.to_owned(), task.to_owned());
    cells.contains(&cell) || (cells.len() < CELLS_MAX && cells.insert(cell))
}

/// A record counts now that did not before.
pub(crate) fn dialogue(model: &ModelLabel, task: &TaskLabel, failure: Option<FailureCause>, tokens: u64) {
    let (model, task) = (model.as_str(), task.as_str());
    let (model, task) = if is_counted_apart(model, task) { (model, task) } else { (OTHER, OTHER) };
    let outcome = if failure.is_none() { "scored" } else { "failed" };
    counter!(DIALOGUES, "model" => model.to_owned(), "task" => task.to_owned(), "outcome" => outcome)
        .increment(1);
    counter!(TOKENS, "model" => model.to_owned()).increment(tokens);
    if let Some(cause) = failure {
        counter!(FAILED_DIALOGUES, "model" => model.to_owned(), "cause" => cause.as_str()).increment(1);
    }
}

/// A batch was stored.
pub(crate) fn committed(records: usize, took: Duration) {
    counter!(RECORDS).increment(records as u64);
    histogram!(COMMIT_SECONDS).record(took.as_secs_f64());
}

/// Dialogues got another record, which supersedes the one that counted, or is not used.
pub(crate) fn repeated(superseded: u64, unused: u64) {
    counter!(REPEATED, "result" => "superseded").increment(superseded);
    counter!(REPEATED, "result" => "unused").increment(unused);
}

/// The record log took a batch, or did not.
pub(crate) fn appended(took: Duration, is_durable: bool) {
    match is_durable {
        true => histogram!(SINK_SECONDS).record(took.as_secs_f64()),
        false => counter!(SINK_FAILURES).increment(1),
    }
}

/// A call of the queue ended.
pub(crate) fn queue_called(call: &'static str, took: Duration, error: Option<&queue::Error>) {
    histogram!(QUEUE_SECONDS, "call" => call).record(took.as_secs_f64());
    let code = match error {
        Some(queue::Error::Unavailable { .. }) => "unavailable",
        Some(queue::Error::Unwritable { .. }) => "unwritable",
        Some(queue::Error::NotLeader { .. }) => "not-leader",
        Some(queue::Error::Unfit { .. }) => "unfit",
        Some(queue::Error::Corrupt { .. }) => "corrupt",
        // The caller's business, such as a stale generation.
        Some(_) | None => return,
    };
    counter!(QUEUE_FAILURES, "call" => call, "code" => code).increment(1);
}

/// The queue of a run was built again.
pub(crate) fn rebuilt() {
    counter!(QUEUE_REBUILDS).increment(1);
}

/// Units were taken over from workers.
pub(crate) fn taken_over(whose: &Reap, reaped: &Reaped) {
    let cause = match whose {
        Reap::Expired => "expired",
        Reap::Worker(_) => "restarted",
    };
    for (result, units) in [
        ("returned", &reaped.returned),
        ("suspect", &reaped.suspected),
        ("struck", &reaped.struck),
        ("dead", &reaped.dead),
    ] {
        counter!(TAKEN_OVER, "cause" => cause, "result" => result).increment(units.len() as u64);
    }
}

/// Failed dialogues are asked again.
pub(crate) fn asked_again(dialogues: u64) {
    counter!(ASKED_AGAIN).increment(dialogues);
}

/// Why a parked model is not asked, in one word: the cause of failure that the reason in words begins with, if any.
pub(crate) fn parked_word(reason: &str) -> &'static str {
    let causes = FailureCause::ALL.into_iter().map(FailureCause::as_str);
    let mut said =
        causes.filter(|cause| reason.strip_prefix(cause).is_some_and(|rest| rest.starts_with(':')));
    said.next().unwrap_or("parked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_tasks_without_end_are_counted_together() {
        let mut counted = 0;
        for number in 0..CELLS_MAX + 10 {
            counted += usize::from(is_counted_apart("m", &number.to_string()));
        }
        assert!(counted <= CELLS_MAX, "{counted}");
        assert!(is_counted_apart("m", "0") && !is_counted_apart("m", "one more"));
    }

    #[test]
    fn the_reason_of_a_parking_is_a_word_of_a_closed_list() {
        assert_eq!(parked_word("quota-exhausted: your credit is used up"), "quota-exhausted");
        assert_eq!(parked_word("a dialogue ended by a panic: timeout: no"), "parked");
    }
}
