//! The dashboard that answers: what is wrong?
//!
//! Each [`panel`] has a title, how and in which unit its values are drawn, its width, a sentence for readers, and its
//! queries with the legends of their series.

use crate::panels::{ColourStep, Dashboard, INSTANCE, Is, POOL, PanelKind, PanelRow, RELEASE, panel};
use Is::{Bytes, Fault, Number, PerSecond, Seconds, Share};
use PanelKind::{Lines, Stacked, Stat, Table};

pub const DASHBOARD: Dashboard = Dashboard {
    uid: "kgfleet-reliability",
    title: "kgfleet: Reliability",
    about: "What is wrong: alerts, retries, lost leases, dead letters, the way of records into the log, Redis, and the evaluation of answers.",
    variables: &[RELEASE, POOL, INSTANCE],
    rows: &[
        PanelRow {
            title: "Now",
            panels: &[
                panel(
                    "Firing alerts",
                    Table,
                    Fault,
                    12,
                    "Each alert has a section in docs/monitoring.md. Empty is good.",
                    &[(
                        "max by (alertname, severity, namespace, release, run, model, server, instance) (ALERTS{alertname=~\"Kgfleet.+\", alertstate=\"firing\"})",
                        "",
                    )],
                ),
                panel(
                    "Coordinators ready",
                    Stat,
                    Number,
                    4,
                    "Coordinators that can do their work.",
                    &[("sum(kgfleet_coordinator_ready)", "")],
                )
                .with("red", &[ColourStep(1.0, "green")]),
                panel(
                    "Dead letters",
                    Stat,
                    Fault,
                    4,
                    "Units given up because workers died of them; `kgfleet dlq ls` shows them.",
                    &[("sum(max by (namespace, release, model) (kgfleet_units{state=\"dead\"}))", "")],
                ),
                panel(
                    "Oldest unstored record",
                    Stat,
                    Seconds,
                    4,
                    "Age of the oldest record that a coordinator took in and has not stored.",
                    &[("max(kgfleet_commit_lag_seconds)", "")],
                )
                .with("green", &[ColourStep(10.0, "orange"), ColourStep(30.0, "red")]),
                panel(
                    "What keeps coordinators from their work",
                    Table,
                    Fault,
                    12,
                    "Empty is good.",
                    &[("max by (release, node, instance, part) (kgfleet_coordinator_trouble == 1)", "")],
                ),
                panel(
                    "Runs and workers in trouble",
                    Table,
                    Fault,
                    12,
                    "`kgfleet status RUN` and `kgfleet workers` say why. Empty is good.",
                    &[
                        ("max by (release, run) (kgfleet_run_trouble == 1)", ""),
                        ("max by (release, node, instance) (kgfleet_worker_trouble == 1)", ""),
                    ],
                ),
            ],
        },
        PanelRow {
            title: "Model servers",
            panels: &[
                panel(
                    "Failed calls by cause",
                    Stacked,
                    PerSecond,
                    12,
                    "Most are retried. overloaded and rate-limited: throttling.",
                    &[(
                        "sum by (cause) (rate(kgfleet_worker_failed_calls_total[$__rate_interval]))",
                        "{{cause}}",
                    )],
                ),
                panel(
                    "Failed calls by model",
                    Lines,
                    Share,
                    12,
                    "Share of all calls.",
                    &[(
                        "sum by (model) (rate(kgfleet_worker_failed_calls_total[$__rate_interval])) / (sum by (model) (rate(kgfleet_worker_failed_calls_total[$__rate_interval])) + sum by (model) (rate(kgfleet_worker_rounds_total[$__rate_interval])))",
                        "{{model}}",
                    )],
                ),
                panel(
                    "Models parked",
                    Lines,
                    Number,
                    12,
                    "Times in the last quarter of an hour that a model was not asked for a while, by cause.",
                    &[(
                        "sum by (model, cause) (increase(kgfleet_worker_parkings_total[15m]))",
                        "{{model}} {{cause}}",
                    )],
                ),
                panel(
                    "Asked again by hand",
                    Lines,
                    Number,
                    12,
                    "Failed dialogues that somebody asked again with `kgfleet retry`.",
                    &[("sum(increase(kgfleet_retried_dialogues_total[15m]))", "dialogues")],
                ),
            ],
        },
        PanelRow {
            title: "Work and workers",
            panels: &[
                panel(
                    "Units taken over",
                    Stacked,
                    Number,
                    12,
                    "In the last quarter of an hour. expired: the worker did not renew; restarted: it came back without them. suspect, then struck, then dead.",
                    &[(
                        "sum by (cause, result) (increase(kgfleet_taken_over_units_total[15m]))",
                        "{{cause}} {{result}}",
                    )],
                ),
                panel(
                    "Lost leases",
                    Lines,
                    Number,
                    12,
                    "Leases that workers lost in the last quarter of an hour.",
                    &[(
                        "sum by (release, node, instance) (increase(kgfleet_worker_lost_leases_total[15m]))",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Reports that failed",
                    Lines,
                    PerSecond,
                    12,
                    "Reports of workers to coordinators that failed, by code.",
                    &[(
                        "sum by (code) (rate(kgfleet_worker_exchange_failures_total[$__rate_interval]))",
                        "{{code}}",
                    )],
                ),
                panel(
                    "Suspects",
                    Lines,
                    Number,
                    12,
                    "Units that run alone because a worker died with them.",
                    &[("max by (release, model) (kgfleet_units{state=\"suspect\"})", "{{model}}")],
                ),
            ],
        },
        PanelRow {
            title: "The way of records",
            panels: &[
                panel(
                    "Records",
                    Lines,
                    PerSecond,
                    8,
                    "Records stored per second.",
                    &[("sum(rate(kgfleet_records_total[$__rate_interval]))", "stored")],
                ),
                panel(
                    "Receipts",
                    Lines,
                    PerSecond,
                    8,
                    "What coordinators told workers of their records.",
                    &[(
                        "sum by (outcome) (rate(kgfleet_worker_receipts_total[$__rate_interval]))",
                        "{{outcome}}",
                    )],
                ),
                panel(
                    "Time to store a batch",
                    Lines,
                    Seconds,
                    8,
                    "99th percentile: until durable in the record log, until committed to the queue as well, and as a worker sees it.",
                    &[
                        (
                            "histogram_quantile(0.99, sum by (le) (rate(kgfleet_sink_append_duration_seconds_bucket[$__rate_interval])))",
                            "log",
                        ),
                        (
                            "histogram_quantile(0.99, sum by (le) (rate(kgfleet_commit_duration_seconds_bucket[$__rate_interval])))",
                            "log and queue",
                        ),
                        (
                            "histogram_quantile(0.99, sum by (le) (rate(kgfleet_worker_delivery_duration_seconds_bucket[$__rate_interval])))",
                            "worker",
                        ),
                    ],
                ),
                panel(
                    "Sink lag",
                    Lines,
                    Seconds,
                    8,
                    "Age of the oldest record that was taken in and is not stored.",
                    &[("max by (release, node, instance) (kgfleet_commit_lag_seconds)", "{{instance}}")],
                )
                .with("blue", &[ColourStep(30.0, "red")]),
                panel(
                    "Records on their way",
                    Lines,
                    Bytes,
                    8,
                    "Bytes in coordinators; they take 64 MiB at most.",
                    &[("max by (release, node, instance) (kgfleet_records_in_flight_bytes)", "{{instance}}")],
                ),
                panel(
                    "Failures of log and delivery",
                    Lines,
                    PerSecond,
                    8,
                    "Batches that the log did not take, and deliveries of workers that failed. Records are sent again.",
                    &[
                        ("sum(rate(kgfleet_sink_failures_total[$__rate_interval]))", "log"),
                        (
                            "sum by (code) (rate(kgfleet_worker_delivery_failures_total[$__rate_interval]))",
                            "delivery {{code}}",
                        ),
                    ],
                ),
                panel(
                    "Use of the spool",
                    Lines,
                    Share,
                    12,
                    "Size of undelivered records over the size at which no new dialogue starts.",
                    &[("kgfleet_worker_spool_bytes / kgfleet_worker_spool_limit_bytes", "{{instance}}")],
                )
                .with("blue", &[ColourStep(0.5, "orange"), ColourStep(1.0, "red")]),
                panel(
                    "Unacknowledged records",
                    Lines,
                    Number,
                    12,
                    "By worker.",
                    &[("kgfleet_worker_unacknowledged_records", "{{instance}}")],
                ),
            ],
        },
        PanelRow {
            title: "Queue (Redis)",
            panels: &[
                panel(
                    "Time of a call",
                    Lines,
                    Seconds,
                    8,
                    "99th percentile of all calls, and of the slowest kind.",
                    &[
                        (
                            "histogram_quantile(0.99, sum by (le) (rate(kgfleet_queue_call_duration_seconds_bucket[$__rate_interval])))",
                            "all",
                        ),
                        (
                            "max(histogram_quantile(0.99, sum by (le, call) (rate(kgfleet_queue_call_duration_seconds_bucket[$__rate_interval]))) >= 0)",
                            "slowest kind",
                        ),
                    ],
                ),
                panel(
                    "Calls",
                    Stacked,
                    PerSecond,
                    8,
                    "Calls per second by kind.",
                    &[(
                        "sum by (call) (rate(kgfleet_queue_call_duration_seconds_count[$__rate_interval]))",
                        "{{call}}",
                    )],
                ),
                panel(
                    "Failed calls",
                    Lines,
                    PerSecond,
                    8,
                    "Calls that failed because of the queue's server.",
                    &[("sum by (code) (rate(kgfleet_queue_failures_total[$__rate_interval]))", "{{code}}")],
                ),
                panel(
                    "Queues built again",
                    Lines,
                    Number,
                    12,
                    "In the last quarter of an hour: the queue had lost a run.",
                    &[("sum(increase(kgfleet_queue_rebuilds_total[15m]))", "rebuilds")],
                ),
                panel(
                    "Generations",
                    Table,
                    Number,
                    12,
                    "Generation of each run's queue; it rises when the queue is built again.",
                    &[("max by (release, run) (kgfleet_run_generation)", "")],
                ),
            ],
        },
        PanelRow {
            title: "Evaluation of answers",
            panels: &[
                panel(
                    "Time of an evaluation",
                    Lines,
                    Seconds,
                    12,
                    "95th percentile by task class, from the answer to its verdict.",
                    &[(
                        "histogram_quantile(0.95, sum by (le, class) (rate(kgfleet_worker_evaluation_duration_seconds_bucket[$__rate_interval])))",
                        "{{class}}",
                    )],
                ),
                panel(
                    "Waiting for an evaluation process",
                    Lines,
                    Seconds,
                    12,
                    "95th percentile by worker. If it is long, give the worker more processors or --evaluators.",
                    &[(
                        "histogram_quantile(0.95, sum by (le, release, node, instance) (rate(kgfleet_worker_evaluation_wait_seconds_bucket[$__rate_interval])))",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Time of an attempt by stage",
                    Lines,
                    Seconds,
                    8,
                    "95th percentile. After an answer hit a limit it is judged without execution, then without parsing.",
                    &[(
                        "histogram_quantile(0.95, sum by (le, stage) (rate(kgfleet_worker_judging_duration_seconds_bucket[$__rate_interval])))",
                        "{{stage}}",
                    )],
                ),
                panel(
                    "Limits hit",
                    Lines,
                    Number,
                    8,
                    "Answers of the last quarter of an hour whose verdict names a limit.",
                    &[(
                        "sum by (limit) (increase(kgfleet_worker_evaluation_limits_total[15m]))",
                        "{{limit}}",
                    )],
                ),
                panel(
                    "Evaluation processes that died",
                    Lines,
                    Number,
                    8,
                    "In the last quarter of an hour. external: killed, stopped or starved; no answer can do that.",
                    &[("sum by (cause) (increase(kgfleet_worker_evaluator_deaths_total[15m]))", "{{cause}}")],
                ),
                panel(
                    "Evaluation processes started",
                    Lines,
                    Number,
                    12,
                    "In the last quarter of an hour.",
                    &[(
                        "sum by (release, node, instance) (increase(kgfleet_worker_evaluators_started_total[15m]))",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Verdicts known from equal answers",
                    Lines,
                    PerSecond,
                    12,
                    "Answers that did not need an evaluation process.",
                    &[(
                        "sum by (release, node, instance) (rate(kgfleet_worker_verdicts_recalled_total[$__rate_interval]))",
                        "{{instance}}",
                    )],
                ),
            ],
        },
        PanelRow {
            title: "Monitoring itself",
            panels: &[
                panel(
                    "Series and spans left out",
                    Lines,
                    Number,
                    12,
                    "Series: active runs have more models times tasks than one metric may have series. Spans: the collector of traces did not take them.",
                    &[
                        ("max by (release, node, instance) (kgfleet_dropped_series)", "{{instance}} series"),
                        (
                            "sum by (release, node, instance) (increase(kgfleet_dropped_spans_total[15m]))",
                            "{{instance}} spans",
                        ),
                    ],
                ),
                panel(
                    "Size of a scrape",
                    Lines,
                    Number,
                    12,
                    "Samples of the last scrape.",
                    &[(
                        "scrape_samples_scraped and on (namespace, release, instance) kgfleet_build_info",
                        "{{instance}}",
                    )],
                ),
            ],
        },
    ],
};
