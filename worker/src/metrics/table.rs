//! The metrics of a worker, with their meaning.

use service_kit::metrics::{MetricDefinition as Metric, Unit};

pub(super) const DIALOGUES: &str = "kgfleet_worker_dialogues_total";
pub(super) const DIALOGUE_SECONDS: &str = "kgfleet_worker_dialogue_duration_seconds";
pub(super) const ROUNDS: &str = "kgfleet_worker_rounds_total";
pub(super) const ROUND_SECONDS: &str = "kgfleet_worker_round_duration_seconds";
pub(super) const FIRST_TOKEN_SECONDS: &str = "kgfleet_worker_first_token_seconds";
pub(super) const TOKENS: &str = "kgfleet_worker_tokens_total";
pub(super) const FAILED_CALLS: &str = "kgfleet_worker_failed_calls_total";
pub(super) const EVALUATION_SECONDS: &str = "kgfleet_worker_evaluation_duration_seconds";
pub(super) const EVALUATION_WAIT_SECONDS: &str = "kgfleet_worker_evaluation_wait_seconds";
pub(super) const JUDGING_SECONDS: &str = "kgfleet_worker_judging_duration_seconds";
pub(super) const LIMITS_HIT: &str = "kgfleet_worker_evaluation_limits_total";
pub(super) const EVALUATORS_STARTED: &str = "kgfleet_worker_evaluators_started_total";
pub(super) const EVALUATOR_DEATHS: &str = "kgfleet_worker_evaluator_deaths_total";
pub(super) const RECALLED: &str = "kgfleet_worker_verdicts_recalled_total";
pub(super) const IN_FLIGHT: &str = "kgfleet_worker_inflight_dialogues";
pub(super) const LIMIT: &str = "kgfleet_worker_concurrency_limit";
pub(super) const LIMIT_REASON: &str = "kgfleet_worker_concurrency_limit_reason";
pub(super) const LEASES: &str = "kgfleet_worker_leases";
pub(super) const PENDING: &str = "kgfleet_worker_pending_dialogues";
pub(super) const UNACKNOWLEDGED: &str = "kgfleet_worker_unacknowledged_records";
pub(super) const SPOOL_BYTES: &str = "kgfleet_worker_spool_bytes";
pub(super) const SPOOL_LIMIT_BYTES: &str = "kgfleet_worker_spool_limit_bytes";
pub(super) const RECEIPTS: &str = "kgfleet_worker_receipts_total";
pub(super) const DELIVERY_SECONDS: &str = "kgfleet_worker_delivery_duration_seconds";
pub(super) const DELIVERY_FAILURES: &str = "kgfleet_worker_delivery_failures_total";
pub(super) const EXCHANGE_FAILURES: &str = "kgfleet_worker_exchange_failures_total";
pub(super) const RENEWAL_AGE: &str = "kgfleet_worker_lease_age_seconds";
pub(super) const LOST_LEASES: &str = "kgfleet_worker_lost_leases_total";
pub(super) const PARKINGS: &str = "kgfleet_worker_parkings_total";
pub(super) const TROUBLE: &str = "kgfleet_worker_trouble";
pub(super) const SERVER_UP: &str = "kgfleet_server_up";
pub(super) const SERVER_MISTAKEN: &str = "kgfleet_server_model_mismatch";
pub(super) const SERVER_RUNNING: &str = "kgfleet_server_running_requests";
pub(super) const SERVER_WAITING: &str = "kgfleet_server_waiting_requests";
pub(super) const SERVER_KV_CACHE: &str = "kgfleet_server_kv_cache_usage_ratio";
pub(super) const SERVER_PREFIX_QUERIES: &str = "kgfleet_server_prefix_cache_queries_total";
pub(super) const SERVER_PREFIX_HITS: &str = "kgfleet_server_prefix_cache_hits_total";
pub(super) const SERVER_PROMPT_TOKENS: &str = "kgfleet_server_prompt_tokens_total";
pub(super) const SERVER_GENERATED_TOKENS: &str = "kgfleet_server_generated_tokens_total";
pub(super) const SERVER_PREEMPTIONS: &str = "kgfleet_server_preemptions_total";

use Unit::{Bytes, Count, Seconds};

/// Every metric of this crate.
pub const DEFINITIONS: &[Metric] = &[
    Metric::counter(
        DIALOGUES,
        Count,
        &["model", "outcome"],
        "Dialogues that ended at this worker, by outcome: scored, or the cause of failure.",
    ),
    Metric::histogram(DIALOGUE_SECONDS, &["model"], "Time from the start of a dialogue to its record."),
    Metric::counter(
        ROUNDS,
        Count,
        &["model", "kind"],
        "Answered prompts, by what the prompt was for: the first of its dialogue, or the kind of follow-up.",
    ),
    Metric::histogram(
        ROUND_SECONDS,
        &["server"],
        "Time from a prompt to the end of its answer, with all retries.",
    ),
    Metric::histogram(
        FIRST_TOKEN_SECONDS,
        &["server"],
        "Time from the request to the first token of an answer that came in a stream.",
    ),
    Metric::counter(
        TOKENS,
        Count,
        &["model", "server", "kind"],
        "Tokens of answered calls as the servers count them: prompt, of these cached, completion, of these reasoning.",
    ),
    Metric::counter(FAILED_CALLS, Count, &["model", "cause"], "Model calls that failed; most were retried."),
    Metric::histogram(
        EVALUATION_SECONDS,
        &["class"],
        "Time from an answer to its verdict, waiting included, by task class.",
    ),
    Metric::histogram(EVALUATION_WAIT_SECONDS, &[], "Time that an answer waited for an evaluation process."),
    Metric::histogram(
        JUDGING_SECONDS,
        &["stage"],
        "Time of one attempt of an evaluation process, by stage: full, and after a limit was hit without execution or without parsing.",
    ),
    Metric::counter(LIMITS_HIT, Count, &["limit"], "Answers whose verdict names a limit of evaluation."),
    Metric::counter(EVALUATORS_STARTED, Count, &[], "Evaluation processes started."),
    Metric::counter(
        EVALUATOR_DEATHS,
        Count,
        &["cause"],
        "Evaluation processes that died during a judgement: by the limit that the answer hit, or for an external cause.",
    ),
    Metric::counter(RECALLED, Count, &[], "Verdicts known from an equal answer."),
    Metric::gauge(IN_FLIGHT, Count, &["server"], "Dialogues under way."),
    Metric::gauge(LIMIT, Count, &["server"], "Limit of dialogues in flight per server."),
    Metric::gauge(
        LIMIT_REASON,
        Count,
        &["server", "reason"],
        "1 for the reason why the limit stands where it does: fixed by hand, requests wait at the server, it refused a call, the maximum is reached, the limit is not used up, or it is growing.",
    ),
    Metric::gauge(LEASES, Count, &[], "Leases held."),
    Metric::gauge(PENDING, Count, &[], "Leased dialogues that have not started."),
    Metric::gauge(UNACKNOWLEDGED, Count, &[], "Records not yet acknowledged by a coordinator."),
    Metric::gauge(SPOOL_BYTES, Bytes, &[], "Size of the spool on disk."),
    Metric::gauge(
        SPOOL_LIMIT_BYTES,
        Bytes,
        &[],
        "Size of undelivered records at which no new dialogue starts.",
    ),
    Metric::counter(RECEIPTS, Count, &["outcome"], "Receipts for records: stored or refused for good."),
    Metric::histogram(DELIVERY_SECONDS, &[], "Time from sending a batch of records to its receipts."),
    Metric::counter(
        DELIVERY_FAILURES,
        Count,
        &["code"],
        "Batches of records whose delivery failed; they are sent again.",
    ),
    Metric::counter(EXCHANGE_FAILURES, Count, &["code"], "Reports to the coordinator that failed."),
    Metric::gauge(RENEWAL_AGE, Seconds, &[], "Time since the last renewal of leases."),
    Metric::counter(LOST_LEASES, Count, &[], "Leases lost to expiry or take-over."),
    Metric::counter(
        PARKINGS,
        Count,
        &["model", "cause"],
        "Times that a model was parked because it could not be asked, by the failure that led to it; other where it was none of a dialogue.",
    ),
    Metric::gauge(
        TROUBLE,
        Count,
        &[],
        "1 while something keeps the worker from its work; `kgfleet workers` says what.",
    ),
    Metric::gauge(SERVER_UP, Count, &["server"], "Whether a discovered model server answers."),
    Metric::gauge(
        SERVER_MISTAKEN,
        Count,
        &["server"],
        "1 while a server serves another model under the name of one that it served before.",
    ),
    Metric::gauge(
        SERVER_RUNNING,
        Count,
        &["server"],
        "Requests that the server works on, of all its clients; vLLM's own number.",
    ),
    Metric::gauge(SERVER_WAITING, Count, &["server"], "Requests that wait at the server; vLLM's own number."),
    Metric::gauge(
        SERVER_KV_CACHE,
        Count,
        &["server"],
        "Share of vLLM's cache of keys and values in use, 0 to 1, of the fullest engine.",
    ),
    Metric::counter(
        SERVER_PREFIX_QUERIES,
        Count,
        &["server"],
        "Tokens that vLLM looked up in its prefix cache.",
    ),
    Metric::counter(SERVER_PREFIX_HITS, Count, &["server"], "Tokens that vLLM found in its prefix cache."),
    Metric::counter(
        SERVER_PROMPT_TOKENS,
        Count,
        &["server"],
        "Prompt tokens that vLLM processed, for all its clients.",
    ),
    Metric::counter(
        SERVER_GENERATED_TOKENS,
        Count,
        &["server"],
        "Tokens that vLLM generated, for all its clients.",
    ),
    Metric::counter(
        SERVER_PREEMPTIONS,
        Count,
        &["server"],
        "Requests that vLLM pushed out of its cache to compute them again.",
    ),
];
