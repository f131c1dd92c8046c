//! The routes of the API: who may call each, and what it takes and answers. One table, from which the router and
//! `docs/reference/api.yaml` are made.

use axum::routing::{MethodRouter, delete, get, post, put};
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
    pub(super) answers: fn() -> MethodRouter<Api>,
}

/// A route that takes a name at most and answers with JSON.
fn asks(
    operation: &'static str,
    path: &'static str,
    roles: &'static [CallerRole],
    answer: SchemaOf,
    answers: fn() -> MethodRouter<Api>,
    about: &'static str,
) -> ApiRoute {
    ApiRoute {
        method: "GET",
        path,
        operation,
        about,
        roles,
        query: &[],
        body: None,
        takes: Takes::Bytes(NAMING_BYTES),
        answer: Answers::Json(answer),
        answers,
    }
}

/// The same for one that changes something.
fn acts(
    operation: &'static str,
    path: &'static str,
    roles: &'static [CallerRole],
    answer: SchemaOf,
    answers: fn() -> MethodRouter<Api>,
    about: &'static str,
) -> ApiRoute {
    ApiRoute { method: "POST", ..asks(operation, path, roles, answer, answers, about) }
}

const VIEW: SchemaOf = of::<BenchmarkView>;

/// Every route.
pub(in crate::server) fn routes() -> Vec<ApiRoute> {
    use BenchmarkCommand::{Cancel, Pause, Resume};
    vec![
        asks(
            "list_runs",
            "/runs",
            READ,
            of::<Vec<BenchmarkView>>,
            || get(handlers::list),
            "All benchmarks, briefly: those without judges by name, then the judged ones.",
        ),
        ApiRoute {
            body: Some(of::<SubmissionBody>),
            takes: Takes::Bytes(SUBMISSION_BYTES),
            ..acts(
                "submit",
                "/runs",
                STEER,
                VIEW,
                || post(handlers::submit),
                "Plans a benchmark and queues it; joins an unfinished one of the same configuration.",
            )
        },
        asks(
            "get_run",
            "/runs/{run}",
            READ,
            VIEW,
            || get(handlers::view),
            "A benchmark, or one run of a judged one.",
        ),
        ApiRoute {
            method: "DELETE",
            query: &[(
                "force",
                "boolean",
                "Whether an active benchmark is cancelled first; otherwise it is refused.",
            )],
            answer: Answers::Nothing,
            ..acts(
                "remove_run",
                "/runs/{run}",
                STEER,
                VIEW,
                || delete(handlers::remove),
                "Removes a benchmark that is over, with its records.",
            )
        },
        ApiRoute {
            answer: Answers::Events(VIEW),
            ..asks(
                "watch_run",
                "/runs/{run}/events",
                READ,
                VIEW,
                || get(handlers::watch),
                "A benchmark about once a second, until it ends.",
            )
        },
        ApiRoute {
            body: Some(of::<SubmissionBody>),
            takes: Takes::Bytes(SUBMISSION_BYTES),
            ..acts(
                "extend_run",
                "/runs/{run}/extend",
                STEER,
                VIEW,
                || post(handlers::extend),
                "Adds models, tasks or iterations to a benchmark. The notes of the answer begin with what was added.",
            )
        },
        acts(
            "pause_run",
            "/runs/{run}/pause",
            STEER,
            VIEW,
            || post(|a, b, c| handlers::command(Pause, a, b, c)),
            "Hands out no more units; those that were handed out go on.",
        ),
        acts(
            "resume_run",
            "/runs/{run}/resume",
            STEER,
            VIEW,
            || post(|a, b, c| handlers::command(Resume, a, b, c)),
            "Continues, also a cancelled benchmark.",
        ),
        acts(
            "cancel_run",
            "/runs/{run}/cancel",
            STEER,
            VIEW,
            || post(|a, b, c| handlers::command(Cancel, a, b, c)),
            "Stops; workers drop the dialogues in progress.",
        ),
        ApiRoute {
            body: Some(of::<RetryBody>),
            ..acts(
                "retry_run",
                "/runs/{run}/retry",
                STEER,
                of::<Count>,
                || post(handlers::retry),
                "Queues failed dialogues again; answers how many.",
            )
        },
        ApiRoute {
            body: Some(of::<RequeueBody>),
            takes: Takes::Bytes(LIST_BYTES),
            ..acts(
                "requeue_dead_letters",
                "/runs/{run}/requeue",
                STEER,
                of::<Count>,
                || post(handlers::requeue),
                "Gives dead letters another chance; answers how many. Of a judged benchmark: all.",
            )
        },
        ApiRoute {
            answer: Answers::Records,
            ..asks(
                "get_records",
                "/runs/{run}/records",
                READ,
                VIEW,
                || get(handlers::records),
                "For each run its manifest, then the record that counts of every dialogue; of a judged benchmark, its documents first. Texts of protected exercises are for operators.",
            )
        },
        ApiRoute {
            query: &[("unit", "integer", "The number of one unit; all without it.")],
            ..asks(
                "list_dead_letters",
                "/runs/{run}/dead-letters",
                READ,
                of::<Vec<DeadLetterView>>,
                || get(handlers::dead_letters),
                "The dead letters of a benchmark's runs, then their suspects.",
            )
        },
        ApiRoute {
            answer: Answers::Pack,
            ..asks(
                "get_pack",
                "/packs/{hash}",
                READ,
                VIEW,
                || get(handlers::pack),
                "A sealed pack by its hash; protected ones are for operators.",
            )
        },
        ApiRoute {
            method: "PUT",
            takes: Takes::Pack,
            answer: Answers::Nothing,
            ..acts(
                "send_pack",
                "/packs/{hash}",
                STEER,
                VIEW,
                || put(handlers::send_pack),
                "Sends a sealed pack, under its SHA-256, for a submission that names it soon after.",
            )
        },
        asks(
            "list_workers",
            "/workers",
            NEEDS,
            of::<Vec<WorkerView>>,
            || get(handlers::workers),
            "The workers, by name.",
        ),
        ApiRoute {
            answer: Answers::Nothing,
            ..acts(
                "drain_worker",
                "/workers/{worker}/drain",
                STEER,
                VIEW,
                || post(handlers::drain),
                "Asks a worker to finish what it holds and end.",
            )
        },
        ApiRoute {
            query: &[(
                "model",
                "string",
                "A model by the name that its servers give it; repeatable. Without it: every model that an unfinished benchmark names.",
            )],
            ..asks(
                "get_needs",
                "/needs",
                NEEDS,
                of::<Vec<ModelNeed>>,
                || get(handlers::needs),
                "What models have left, over all benchmarks.",
            )
        },
        ApiRoute {
            method: "PUT",
            body: Some(of::<PoolStates>),
            takes: Takes::Bytes(LIST_BYTES),
            answer: Answers::Nothing,
            ..acts(
                "note_pools",
                "/pools/{release}",
                CONDUCT,
                VIEW,
                || put(handlers::note_pools),
                "What a conductor tells of the pools of its release; shown for a minute.",
            )
        },
        asks(
            "get_server_usage",
            "/server-usage",
            NEEDS,
            of::<Vec<ServerUsage>>,
            || get(handlers::server_usage),
            "What servers of pools have left, in the order of their ends.",
        ),
        ApiRoute {
            body: Some(of::<Vec<ServerUsage>>),
            takes: Takes::Bytes(LIST_BYTES),
            answer: Answers::Nothing,
            ..acts(
                "note_server_usage",
                "/server-usage",
                CONDUCT,
                VIEW,
                || post(handlers::note_server_usage),
                "Keeps what servers of pools left that have ended.",
            )
        },
        asks(
            "check",
            "/check",
            READ,
            of::<Vec<String>>,
            || get(handlers::check),
            "Whether the coordinator and what it depends on are ready for a long run: warnings, worst first.",
        ),
        asks(
            "get_version",
            "/version",
            NEEDS,
            of::<Version>,
            || get(handlers::version),
            "Which program answers.",
        ),
    ]
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
