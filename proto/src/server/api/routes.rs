//! The routes of the API: who may call each, and what it takes and answers. One table, from which the router and
//! `docs/reference/api.yaml` are made.

use axum::routing::{MethodFilter, MethodRouter, on};
use domain::caller::CallerRole;
use domain::control::{BenchmarkCommand, BenchmarkView, DeadLetterView, ModelNeed, WorkerView};
use domain::pools::{PoolStates, ServerUsage};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{Api, handlers};
use crate::api::{Count, RequeueBody, RetryBody, SubmissionBody, Version};
use crate::limits::{LIST_BYTES, NAMING_BYTES, SUBMISSION_BYTES};
use crate::server::access::{CONDUCT, NEEDS, READ, STEER};

/// The schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The most that a request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Takes {
    /// So many bytes of JSON.
    Bytes(usize),
    /// A sealed pack.
    Pack,
}

/// What a call answers with.
#[derive(Clone, Copy)]
pub(super) enum Answers {
    Nothing,
    Json(SchemaOf),
    /// Events `view`, each with this, then `end`, or `error` with a problem.
    Events(SchemaOf),
    /// Records of runs, a line for each.
    Records,
    /// A sealed pack.
    Pack,
}

/// A route.
#[derive(Clone)]
pub(in crate::server) struct ApiRoute {
    pub method: &'static str,
    /// Under [`BASE`](crate::api::BASE).
    pub path: &'static str,
    /// Its name, in the audit log and for makers of clients.
    pub operation: &'static str,
    pub(super) about: &'static str,
    pub roles: &'static [CallerRole],
    /// Parameters of its query, with their types and what they mean.
    pub(super) query: &'static [(&'static str, &'static str, &'static str)],
    pub(super) body: Option<SchemaOf>,
    pub takes: Takes,
    pub(super) answer: Answers,
    pub(super) handler: fn() -> MethodRouter<Api>,
}

/// What a request brings: at most a name, JSON of a type, or a pack.
macro_rules! takes {
    () => {
        (None, Takes::Bytes(NAMING_BYTES))
    };
    (pack) => {
        (None, Takes::Pack)
    };
    ($type:ty, $bytes:expr) => {
        (Some(of::<$type> as SchemaOf), Takes::Bytes($bytes))
    };
}

/// What a call answers with: nothing, records, a pack, events with a type, or JSON of a type.
macro_rules! answers {
    () => {
        Answers::Nothing
    };
    (records) => {
        Answers::Records
    };
    (pack) => {
        Answers::Pack
    };
    (events of $type:ty) => {
        Answers::Events(of::<$type>)
    };
    ($type:ty) => {
        Answers::Json(of::<$type>)
    };
}

/// Rows of the table: method, path, name, roles, what the request brings, what the answer is, the parameters of the query, the
/// handler, and what the call does.
macro_rules! routes {
    ($($method:ident $path:literal $operation:ident $roles:ident ($($takes:tt)*) -> ($($answer:tt)*) $([$($query:expr),*])?
       by $handler:expr, $about:literal;)*) => {
        vec![$({
            let (body, takes) = takes!($($takes)*);
            ApiRoute {
                method: stringify!($method),
                path: $path,
                operation: stringify!($operation),
                about: $about,
                roles: $roles,
                query: &[$($($query),*)?],
                body,
                takes,
                answer: answers!($($answer)*),
                handler: || on(MethodFilter::$method, $handler),
            }
        }),*]
    };
}

/// Every route.
pub(in crate::server) fn routes() -> Vec<ApiRoute> {
    use BenchmarkCommand::{Cancel, Pause, Resume};
    routes! {
        GET "/runs" list_runs READ () -> (Vec<BenchmarkView>) by handlers::list,
            "All benchmarks, briefly: those without judges by name, then the judged ones.";
        POST "/runs" submit STEER (SubmissionBody, SUBMISSION_BYTES) -> (BenchmarkView) by handlers::submit,
            "Plans a benchmark and queues it; joins an unfinished one of the same configuration.";
        GET "/runs/{run}" get_run READ () -> (BenchmarkView) by handlers::view,
            "A benchmark, or one run of a judged one.";
        DELETE "/runs/{run}" remove_run STEER () -> ()
            [("force", "boolean", "Whether an active benchmark is cancelled first; otherwise it is refused.")]
            by handlers::remove, "Removes a benchmark that is over, with its records.";
        GET "/runs/{run}/events" watch_run READ () -> (events of BenchmarkView) by handlers::watch,
            "A benchmark about once a second, until it ends.";
        POST "/runs/{run}/extend" extend_run STEER (SubmissionBody, SUBMISSION_BYTES) -> (BenchmarkView) by handlers::extend,
            "Adds models, tasks or iterations to a benchmark. The notes of the answer begin with what was added.";
        POST "/runs/{run}/pause" pause_run STEER () -> (BenchmarkView) by |a, b| handlers::command(Pause, a, b),
            "Hands out no more units; those that were handed out go on.";
        POST "/runs/{run}/resume" resume_run STEER () -> (BenchmarkView) by |a, b| handlers::command(Resume, a, b),
            "Continues, also a cancelled benchmark.";
        POST "/runs/{run}/cancel" cancel_run STEER () -> (BenchmarkView) by |a, b| handlers::command(Cancel, a, b),
            "Stops; workers drop the dialogues in progress.";
        POST "/runs/{run}/retry" retry_run STEER (RetryBody, NAMING_BYTES) -> (Count) by handlers::retry,
            "Queues failed dialogues again; answers how many.";
        POST "/runs/{run}/requeue" requeue_dead_letters STEER (RequeueBody, LIST_BYTES) -> (Count) by handlers::requeue,
            "Gives dead letters another chance; answers how many. Of a judged benchmark: all.";
        GET "/runs/{run}/records" get_records READ () -> (records) by handlers::records,
            "For each run its manifest, then the record that counts of every dialogue; of a judged benchmark, its documents first. \
             Texts of protected exercises are for operators.";
        GET "/runs/{run}/dead-letters" list_dead_letters READ () -> (Vec<DeadLetterView>)
            [("unit", "integer", "The number of one unit; all without it.")]
            by handlers::dead_letters, "The dead letters of a benchmark's runs, then their suspects.";
        GET "/packs/{hash}" get_pack READ () -> (pack) by handlers::pack,
            "A sealed pack by its hash; protected ones are for operators.";
        PUT "/packs/{hash}" send_pack STEER (pack) -> () by handlers::send_pack,
            "Sends a sealed pack, under its SHA-256, for a submission that names it soon after.";
        GET "/workers" list_workers NEEDS () -> (Vec<WorkerView>) by handlers::workers, "The workers, by name.";
        POST "/workers/{worker}/drain" drain_worker STEER () -> () by handlers::drain,
            "Asks a worker to finish what it holds and end.";
        GET "/needs" get_needs NEEDS () -> (Vec<ModelNeed>)
            [("model", "string", "A model by the name that its servers give it; repeatable. Without it: every model that an \
                unfinished benchmark names.")]
            by handlers::needs, "What models have left, over all benchmarks.";
        PUT "/pools/{release}" note_pools CONDUCT (PoolStates, LIST_BYTES) -> () by handlers::note_pools,
            "What a conductor tells of the pools of its release; shown for a minute.";
        GET "/server-usage" get_server_usage NEEDS () -> (Vec<ServerUsage>) by handlers::server_usage,
            "What servers of pools have left, in the order of their ends.";
        POST "/server-usage" note_server_usage CONDUCT (Vec<ServerUsage>, LIST_BYTES) -> () by handlers::note_server_usage,
            "Keeps what servers of pools left that have ended.";
        GET "/check" check READ () -> (Vec<String>) by handlers::check,
            "Whether the coordinator and what it depends on are ready for a long run: warnings, worst first.";
        GET "/version" get_version NEEDS () -> (Version) by handlers::version, "Which program answers.";
    }
}

#[cfg(test)]
mod tests {
    use domain::caller::CallerRole::{Reader, Worker};

    use super::*;

    #[test]
    fn what_a_reader_may_send_has_kilobytes_and_a_worker_has_no_call_here() {
        let mut operations = Vec::new();
        for route in routes() {
            let is_small = matches!(route.takes, Takes::Bytes(bytes) if bytes <= NAMING_BYTES);
            assert!(is_small || !route.roles.contains(&Reader), "{}", route.operation);
            assert!(!route.roles.is_empty() && !route.roles.contains(&Worker), "{}", route.operation);
            assert!(!operations.contains(&route.operation), "{} is there twice", route.operation);
            operations.push(route.operation);
        }
    }
}
