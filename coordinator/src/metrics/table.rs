//! The metrics of a coordinator, with their meaning.

use service_kit::metrics::{MetricDefinition as Metric, Unit};

pub(super) const DIALOGUES: &str = "kgfleet_dialogues_total";
pub(super) const FAILED_DIALOGUES: &str = "kgfleet_failed_dialogues_total";
pub(super) const TOKENS: &str = "kgfleet_tokens_total";
pub(super) const RECORDS: &str = "kgfleet_records_total";
pub(super) const COMMIT_SECONDS: &str = "kgfleet_commit_duration_seconds";
pub(super) const COMMIT_LAG_SECONDS: &str = "kgfleet_commit_lag_seconds";
pub(super) const BYTES_IN_FLIGHT: &str = "kgfleet_records_in_flight_bytes";
pub(super) const SINK_SECONDS: &str = "kgfleet_sink_append_duration_seconds";
pub(super) const SINK_FAILURES: &str = "kgfleet_sink_failures_total";
pub(super) const QUEUE_SECONDS: &str = "kgfleet_queue_call_duration_seconds";
pub(super) const QUEUE_FAILURES: &str = "kgfleet_queue_failures_total";
pub(super) const QUEUE_REBUILDS: &str = "kgfleet_queue_rebuilds_total";
pub(super) const TAKEN_OVER: &str = "kgfleet_taken_over_units_total";
pub(super) const ASKED_AGAIN: &str = "kgfleet_retried_dialogues_total";
pub(super) const UNITS: &str = "kgfleet_units";
pub(super) const BACKLOG: &str = "kgfleet_backlog_dialogues";
pub(super) const WORKERS: &str = "kgfleet_workers";
pub(super) const WORKERS_IN_TROUBLE: &str = "kgfleet_workers_in_trouble";
pub(super) const WORKERS_DRAINING: &str = "kgfleet_workers_draining";
pub(super) const READY: &str = "kgfleet_coordinator_ready";
pub(super) const TROUBLE: &str = "kgfleet_coordinator_trouble";
pub(super) const RUNS: &str = "kgfleet_runs";
pub(super) const RUN_PHASE: &str = "kgfleet_run_phase";
pub(super) const RUN_TROUBLE: &str = "kgfleet_run_trouble";
pub(super) const RUN_CREATED: &str = "kgfleet_run_created_timestamp_seconds";
pub(super) const RUN_GENERATION: &str = "kgfleet_run_generation";
pub(super) const RUN_STAGE: &str = "kgfleet_run_stage";
pub(super) const RUN_DIALOGUES: &str = "kgfleet_run_dialogues";
pub(super) const RUN_RATE: &str = "kgfleet_run_dialogues_per_second";
pub(super) const RUN_TOKEN_RATE: &str = "kgfleet_run_tokens_per_second";
pub(super) const RUN_ETA: &str = "kgfleet_run_eta_seconds";
pub(super) const RUN_MODEL_REMAINING: &str = "kgfleet_run_model_remaining_dialogues";
pub(super) const RUN_MODEL_WORKERS: &str = "kgfleet_run_model_workers";
pub(super) const RUN_MODEL_BLOCKED: &str = "kgfleet_run_model_blocked";
pub(super) const RUN_MODEL_SCORE: &str = "kgfleet_run_model_score";
pub(super) const RUN_CELL_SCORE: &str = "kgfleet_run_cell_score";
pub(super) const RUN_CELL_DONE: &str = "kgfleet_run_cell_done_ratio";

use Unit::{Bytes, Count, Seconds};

/// What a coordinator measures.
pub const DEFINITIONS: &[Metric] = &[
    Metric::counter(
        DIALOGUES,
        Count,
        &["model", "task", "outcome"],
        "Dialogues whose record counts, scored or failed, at the coordinator that stored the record. A record that supersedes another one counts again.",
    ),
    Metric::counter(
        FAILED_DIALOGUES,
        Count,
        &["model", "cause"],
        "The failed ones of these dialogues, by cause.",
    ),
    Metric::counter(
        TOKENS,
        Count,
        &["model"],
        "Tokens that models generated for these dialogues, as far as their servers tell.",
    ),
    Metric::counter(RECORDS, Count, &[], "Records stored, whether they count or not."),
    Metric::histogram(
        COMMIT_SECONDS,
        &[],
        "Time from a batch of records being at hand to its receipts: ticket, log, queue.",
    ),
    Metric::gauge(
        COMMIT_LAG_SECONDS,
        Seconds,
        &[],
        "Age of the oldest record that was taken in and is not stored; 0 without one.",
    ),
    Metric::gauge(BYTES_IN_FLIGHT, Bytes, &[], "Bytes of records on their way to the log."),
    Metric::histogram(SINK_SECONDS, &[], "Time until a batch of records was durable in the record log."),
    Metric::counter(
        SINK_FAILURES,
        Count,
        &[],
        "Batches of records that the record log did not take; workers send them again.",
    ),
    Metric::histogram(QUEUE_SECONDS, &["call"], "Time of a call of the queue."),
    Metric::counter(
        QUEUE_FAILURES,
        Count,
        &["call", "code"],
        "Calls of the queue that failed because of the queue's server.",
    ),
    Metric::counter(
        QUEUE_REBUILDS,
        Count,
        &[],
        "Times that the queue of a run was built again because it was lost.",
    ),
    Metric::counter(
        TAKEN_OVER,
        Count,
        &["cause", "result"],
        "Units taken over from workers, because their lease expired or their worker started again: now suspect, struck, or dead letters.",
    ),
    Metric::counter(ASKED_AGAIN, Count, &[], "Failed dialogues that somebody asked again."),
    Metric::gauge(
        UNITS,
        Count,
        &["model", "state"],
        "Units of runs that are not over: pending, leased or dead; suspect are those of the first two that run alone.",
    ),
    Metric::gauge(
        BACKLOG,
        Count,
        &["model"],
        "Dialogues of pending and leased units: what autoscaling goes by.",
    ),
    Metric::gauge(WORKERS, Count, &[], "Registered workers."),
    Metric::gauge(WORKERS_IN_TROUBLE, Count, &[], "Registered workers that something keeps from their work."),
    Metric::gauge(WORKERS_DRAINING, Count, &[], "Registered workers that were asked to drain."),
    Metric::gauge(READY, Count, &[], "Whether the coordinator can do its work, as /readyz says."),
    Metric::gauge(
        TROUBLE,
        Count,
        &["part"],
        "1 while the coordinator is kept from its work by the queue, by the sink, or because the queue belongs to other records.",
    ),
    Metric::gauge(RUNS, Count, &[], "Runs that are not over."),
    Metric::gauge(RUN_PHASE, Count, &["run", "phase"], "1 for the phase of a run that is not over."),
    Metric::gauge(
        RUN_TROUBLE,
        Count,
        &["run"],
        "1 while something keeps this coordinator from looking after the run.",
    ),
    Metric::gauge(RUN_CREATED, Seconds, &["run"], "When the run was planned, since the Unix epoch."),
    Metric::gauge(
        RUN_GENERATION,
        Count,
        &["run"],
        "Generation of the run's queue; it rises when the queue is built again.",
    ),
    Metric::gauge(
        RUN_STAGE,
        Count,
        &["run", "pipeline", "stage", "model"],
        "1 for the place of a run in its pipeline: the stage, and the model under test.",
    ),
    Metric::gauge(RUN_DIALOGUES, Count, &["run", "state"], "Dialogues of a run: planned, scored, failed."),
    Metric::gauge(RUN_RATE, Count, &["run"], "Dialogues per second over the last minute."),
    Metric::gauge(RUN_TOKEN_RATE, Count, &["run"], "Generated tokens per second over the last minute."),
    Metric::gauge(
        RUN_ETA,
        Seconds,
        &["run"],
        "Time that the slowest model takes for the rest at its present rate; absent where no model moves.",
    ),
    Metric::gauge(
        RUN_MODEL_REMAINING,
        Count,
        &["run", "model"],
        "Dialogues of a model that have no record yet.",
    ),
    Metric::gauge(RUN_MODEL_WORKERS, Count, &["run", "model"], "Registered workers that serve the model."),
    Metric::gauge(
        RUN_MODEL_BLOCKED,
        Count,
        &["run", "model", "reason"],
        "1 while no worker can ask the rest of a model: no-worker, or the failure for which it is parked; absent otherwise.",
    ),
    Metric::gauge(RUN_MODEL_SCORE, Count, &["run", "model"], "Mean of the means of a model's tasks so far."),
    Metric::gauge(
        RUN_CELL_SCORE,
        Count,
        &["run", "model", "task"],
        "Mean score of a model on a task so far.",
    ),
    Metric::gauge(
        RUN_CELL_DONE,
        Count,
        &["run", "model", "task"],
        "Share of a model's dialogues on a task that have a record, 0 to 1.",
    ),
];
