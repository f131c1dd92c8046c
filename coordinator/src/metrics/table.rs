//! The metrics of a coordinator, with their meaning.

service_kit::metric_table! {
    /// What a coordinator measures.
    pub const DEFINITIONS;

    DIALOGUES = counter "kgfleet_dialogues_total" Count ["model", "task", "outcome"]
        "Dialogues whose record counts, scored or failed, at the coordinator that stored the record. A record that supersedes another one counts again.";
    FAILED_DIALOGUES = counter "kgfleet_failed_dialogues_total" Count ["model", "cause"]
        "The failed ones of these dialogues, by cause.";
    TOKENS = counter "kgfleet_tokens_total" Count ["model"]
        "Tokens that models generated for these dialogues, as far as their servers tell.";
    RECORDS = counter "kgfleet_records_total" Count []
        "Records stored, whether they count or not.";
    COMMIT_SECONDS = histogram "kgfleet_commit_duration_seconds" []
        "Time from a batch of records being at hand to its receipts: log, table.";
    COMMIT_LAG_SECONDS = gauge "kgfleet_commit_lag_seconds" Seconds []
        "Age of the oldest record that was taken in and is not stored; 0 without one.";
    BYTES_IN_FLIGHT = gauge "kgfleet_records_in_flight_bytes" Bytes []
        "Bytes of records on their way to the log.";
    SINK_SECONDS = histogram "kgfleet_sink_append_duration_seconds" []
        "Time until a batch of records was durable in the record log.";
    SINK_FAILURES = counter "kgfleet_sink_failures_total" Count []
        "Batches of records that the record log did not take; workers send them again.";
    QUEUE_SECONDS = histogram "kgfleet_queue_call_duration_seconds" ["call"]
        "Time of a call of the queue.";
    QUEUE_FAILURES = counter "kgfleet_queue_failures_total" Count ["call", "code"]
        "Calls of the queue that failed because of the queue's server.";
    QUEUE_REBUILDS = counter "kgfleet_queue_rebuilds_total" Count []
        "Times that the queue of a run was built again because it was lost.";
    TAKEN_OVER = counter "kgfleet_taken_over_units_total" Count ["cause", "result"]
        "Units taken over from workers, because their lease expired or their worker started again: now returned as before, suspect, struck, or dead letters.";
    ASKED_AGAIN = counter "kgfleet_retried_dialogues_total" Count []
        "Failed dialogues that somebody asked again.";
    REPEATED = counter "kgfleet_repeated_records_total" Count ["result"]
        "Records of dialogues that had one already, so that these were asked more than once: superseded, where the earlier one counts no more, or unused.";
    UNITS = gauge "kgfleet_units" Count ["model", "state"]
        "Units of runs that are not over: pending, leased or dead; suspect are those of the first two that run alone.";
    BACKLOG = gauge "kgfleet_backlog_dialogues" Count ["model"]
        "Dialogues of pending and leased units, by the label of their model.";
    NEED = gauge "kgfleet_need_dialogues" Count ["serves", "state"]
        "What runs and judged benchmarks have left for servers of a model, by the name that is asked for: dialogues without a record in active runs (now) and in those that are paused or capped (held); later is 1 while a judged benchmark may ask it in a later stage, whose dialogues are not known yet.";
    WORKERS = gauge "kgfleet_workers" Count []
        "Registered workers.";
    WORKERS_IN_TROUBLE = gauge "kgfleet_workers_in_trouble" Count []
        "Registered workers that something keeps from their work.";
    WORKERS_DRAINING = gauge "kgfleet_workers_draining" Count []
        "Registered workers that were asked to drain.";
    WORKERS_LOST = gauge "kgfleet_workers_lost" Count []
        "Workers that went away in the last hour without signing off, as far as this coordinator has seen; `kgfleet fleet workers` says what they held.";
    READY = gauge "kgfleet_coordinator_ready" Count []
        "Whether the coordinator can do its work, as /readyz says.";
    TROUBLE = gauge "kgfleet_coordinator_trouble" Count ["part"]
        "1 while the coordinator is kept from its work by the queue, by the sink, or because the queue belongs to other records.";
    CERTIFICATE_EXPIRATION = gauge "kgfleet_certificate_expiration_timestamp_seconds" Seconds []
        "When the certificate that the coordinator serves with ends, or an earlier one of its chain, since the Unix epoch; absent without TLS.";
    RUNS = gauge "kgfleet_runs" Count []
        "Runs that are not over.";
    RUN_PHASE = gauge "kgfleet_run_phase" Count ["run", "phase"]
        "1 for the phase of a run that is not over.";
    RUN_TROUBLE = gauge "kgfleet_run_trouble" Count ["run"]
        "1 while something keeps this coordinator from looking after the run.";
    RUN_CREATED = gauge "kgfleet_run_created_timestamp_seconds" Seconds ["run"]
        "When the run was planned, since the Unix epoch.";
    RUN_GENERATION = gauge "kgfleet_run_generation" Count ["run"]
        "Generation of the run's queue; it rises when the queue is built again.";
    RUN_STAGE = gauge "kgfleet_run_stage" Count ["run", "pipeline", "stage", "model"]
        "1 for the place of a run in its pipeline: the stage, and the model under test.";
    RUN_DIALOGUES = gauge "kgfleet_run_dialogues" Count ["run", "state"]
        "Dialogues of a run: planned, scored, failed.";
    RUN_RATE = gauge "kgfleet_run_dialogues_per_second" Count ["run"]
        "Dialogues per second over the last minute.";
    RUN_TOKEN_RATE = gauge "kgfleet_run_tokens_per_second" Count ["run"]
        "Generated tokens per second over the last minute.";
    RUN_ETA = gauge "kgfleet_run_eta_seconds" Seconds ["run"]
        "Time that the slowest model takes for the rest at its present rate; absent while a model with dialogues left does not move.";
    RUN_MODEL_REMAINING = gauge "kgfleet_run_model_remaining_dialogues" Count ["run", "model", "serves"]
        "Dialogues of a model that have no record yet; serves is the name by which it is asked for.";
    RUN_MODEL_DIALOGUES = gauge "kgfleet_run_model_dialogues" Count ["run", "model", "state"]
        "Dialogues of a model that have a record, scored or failed.";
    RUN_MODEL_WORKERS = gauge "kgfleet_run_model_workers" Count ["run", "model"]
        "Registered workers that serve the model.";
    RUN_MODEL_BLOCKED = gauge "kgfleet_run_model_blocked" Count ["run", "model", "reason"]
        "1 while no worker can ask the rest of a model: no-worker; loading, while a server of it loads; denied, where workers lack the key or may not go to the address; server-failed, where its server does not answer any more or its pool was given up; queued and no-pool, where a conductor starts servers and will start one of it, or has no pool for it; cap, once its benchmark has used as much as it may; or the failure for which it is parked. Absent otherwise.";
    RUN_MODEL_SCORE = gauge "kgfleet_run_model_score" Count ["run", "model"]
        "Mean of the means of a model's tasks so far.";
    RUN_MODEL_SPENT = gauge "kgfleet_run_model_spent" Count ["run", "model"]
        "What the tokens of a model's dialogues have cost, in the currency of the coordinator's table of prices; absent without a price.";
    RUN_CELL_SCORE = gauge "kgfleet_run_cell_score" Count ["run", "model", "task"]
        "Mean score of a model on a task so far.";
    RUN_CELL_DONE = gauge "kgfleet_run_cell_done_ratio" Count ["run", "model", "task"]
        "Share of a model's dialogues on a task that have a record, 0 to 1.";
}
