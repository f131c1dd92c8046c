//! The metrics of a worker, with their meaning.

service_kit::metric_table! {
    /// Every metric of this crate.
    pub const DEFINITIONS;

    DIALOGUES = counter "kgfleet_worker_dialogues_total" Count ["model", "outcome"]
        "Dialogues that ended at this worker, by outcome: scored, or the cause of failure.";
    DIALOGUE_SECONDS = histogram "kgfleet_worker_dialogue_duration_seconds" ["model"]
        "Time from the start of a dialogue to its record.";
    ROUNDS = counter "kgfleet_worker_rounds_total" Count ["model", "kind"]
        "Answered prompts, by what the prompt was for: the first of its dialogue, or the kind of follow-up.";
    ROUND_SECONDS = histogram "kgfleet_worker_round_duration_seconds" ["server"]
        "Time from a prompt to the end of its answer, with all retries.";
    FIRST_TOKEN_SECONDS = histogram "kgfleet_worker_first_token_seconds" ["server"]
        "Time from the request to the first token of an answer that came in a stream.";
    TOKENS = counter "kgfleet_worker_tokens_total" Count ["model", "server", "kind"]
        "Tokens of answered calls as the servers count them: prompt, of these cached, completion, of these reasoning.";
    ODD_ANSWERS = counter "kgfleet_worker_odd_answers_total" Count ["model", "oddity"]
        "Answers that were cut by the limit of tokens, are empty, were refused by a filter, are to a prompt that the server cut, came without a finish reason, or hold markers of reasoning.";
    FAILED_CALLS = counter "kgfleet_worker_failed_calls_total" Count ["model", "server", "cause"]
        "Model calls that failed, counted when they fail; most are repeated.";
    EVALUATION_SECONDS = histogram "kgfleet_worker_evaluation_duration_seconds" ["class"]
        "Time from an answer to its verdict, waiting included, by task class.";
    EVALUATION_WAIT_SECONDS = histogram "kgfleet_worker_evaluation_wait_seconds" []
        "Time that an answer waited for an evaluation process.";
    JUDGING_SECONDS = histogram "kgfleet_worker_judging_duration_seconds" ["stage"]
        "Time of one attempt of an evaluation process, by stage: full, and after a limit was hit without execution or without parsing.";
    LIMITS_HIT = counter "kgfleet_worker_evaluation_limits_total" Count ["limit"]
        "Answers whose verdict names a limit of evaluation.";
    EVALUATORS_STARTED = counter "kgfleet_worker_evaluators_started_total" Count []
        "Evaluation processes started.";
    EVALUATOR_DEATHS = counter "kgfleet_worker_evaluator_deaths_total" Count ["cause"]
        "Evaluation processes that died during a judgement: by the limit that the answer hit, or for an external cause.";
    RECALLED = counter "kgfleet_worker_verdicts_recalled_total" Count []
        "Verdicts known from an equal answer.";
    IN_FLIGHT = gauge "kgfleet_worker_inflight_dialogues" Count ["server", "serves"]
        "Dialogues under way.";
    LIMIT = gauge "kgfleet_worker_concurrency_limit" Count ["server", "serves"]
        "Limit of dialogues in flight per server.";
    LIMIT_REASON = gauge "kgfleet_worker_concurrency_limit_reason" Count ["server", "serves", "reason"]
        "1 for the reason why the limit stands where it does: fixed by hand, requests wait at the server, it refused a call, the maximum is reached, the limit is not used up, it is growing, or the first question is asked alone.";
    LEASES = gauge "kgfleet_worker_leases" Count []
        "Leases held.";
    PENDING = gauge "kgfleet_worker_pending_dialogues" Count []
        "Leased dialogues that have not started.";
    UNACKNOWLEDGED = gauge "kgfleet_worker_unacknowledged_records" Count []
        "Records not yet acknowledged by a coordinator.";
    SPOOL_BYTES = gauge "kgfleet_worker_spool_bytes" Bytes []
        "Size of the spool on disk.";
    SPOOL_LIMIT_BYTES = gauge "kgfleet_worker_spool_limit_bytes" Bytes []
        "Size of undelivered records at which no new dialogue starts.";
    RECEIPTS = counter "kgfleet_worker_receipts_total" Count ["outcome"]
        "Receipts for records: stored or refused for good.";
    DELIVERY_SECONDS = histogram "kgfleet_worker_delivery_duration_seconds" []
        "Time from sending a batch of records to its receipts.";
    DELIVERY_FAILURES = counter "kgfleet_worker_delivery_failures_total" Count ["code"]
        "Batches of records whose delivery failed; they are sent again.";
    EXCHANGE_FAILURES = counter "kgfleet_worker_exchange_failures_total" Count ["code"]
        "Reports to the coordinator that failed.";
    RENEWAL_AGE = gauge "kgfleet_worker_lease_age_seconds" Seconds []
        "Time since the last renewal of leases.";
    LOST_LEASES = counter "kgfleet_worker_lost_leases_total" Count []
        "Leases lost to expiry or take-over.";
    PARKINGS = counter "kgfleet_worker_parkings_total" Count ["model", "cause"]
        "Times that a model was parked because it could not be asked, by the failure that led to it; other where it was none of a dialogue.";
    TROUBLE = gauge "kgfleet_worker_trouble" Count []
        "1 while something keeps the worker from its work; `kgfleet fleet workers` says what.";
    PHASE = gauge "kgfleet_worker_phase" Count ["phase"]
        "1 for what the worker does: it waits for its servers to load, serves, is idle, or ends.";
    PHASE_SECONDS = gauge "kgfleet_worker_phase_seconds" Seconds []
        "Time since it began to do that.";
    LOAD_SECONDS = gauge "kgfleet_worker_load_seconds" Seconds []
        "Time from the start of the worker until its first server answered; absent until then.";
    GPUS = gauge "kgfleet_worker_gpus" Count []
        "GPUs of the worker's server, as `--gpus` says; 0 if nobody says.";
    SERVER_UP = gauge "kgfleet_server_up" Count ["server", "serves"]
        "Whether a discovered model server answers.";
    SERVER_MISTAKEN = gauge "kgfleet_server_model_mismatch" Count ["server", "serves"]
        "1 while a server serves another model under the name of one that it served before.";
    SERVER_RUNNING = gauge "kgfleet_server_running_requests" Count ["server", "serves"]
        "Requests that the server works on, of all its clients; vLLM's own number.";
    SERVER_WAITING = gauge "kgfleet_server_waiting_requests" Count ["server", "serves"]
        "Requests that wait at the server; vLLM's own number.";
    SERVER_KV_CACHE = gauge "kgfleet_server_kv_cache_usage_ratio" Count ["server", "serves"]
        "Share of vLLM's cache of keys and values in use, 0 to 1, of the fullest engine.";
    SERVER_PREFIX_QUERIES = counter "kgfleet_server_prefix_cache_queries_total" Count ["server", "serves"]
        "Tokens that vLLM looked up in its prefix cache.";
    SERVER_PREFIX_HITS = counter "kgfleet_server_prefix_cache_hits_total" Count ["server", "serves"]
        "Tokens that vLLM found in its prefix cache.";
    SERVER_PROMPT_TOKENS = counter "kgfleet_server_prompt_tokens_total" Count ["server", "serves"]
        "Prompt tokens that vLLM processed, for all its clients.";
    SERVER_GENERATED_TOKENS = counter "kgfleet_server_generated_tokens_total" Count ["server", "serves"]
        "Tokens that vLLM generated, for all its clients.";
    SERVER_PREEMPTIONS = counter "kgfleet_server_preemptions_total" Count ["server", "serves"]
        "Requests that vLLM pushed out of its cache to compute them again.";
}
