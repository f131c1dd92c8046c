//! The dashboard that answers: who works, and which GPU is idle? `reliability` explains the form of a panel.

use crate::panels::{Dashboard, Is, NODE, PanelKind, PanelRow, panel};
use Is::{Bytes, Fault, Number, PerSecond, Seconds, Share};
use PanelKind::{Bars, Lines, Stacked, Stat, Table};

pub const DASHBOARD: Dashboard = Dashboard {
    uid: "kgfleet-fleet",
    title: "kgfleet: Fleet",
    about: "Who works, how full are the model servers, which of them is idle while work waits, and who is slower than the others.",
    variables: &[NODE],
    rows: &[
        PanelRow {
            title: "Now",
            panels: &[
                panel("Workers", Stat, Number, 4, "Registered workers.", &[("max(kgfleet_workers)", "")]),
                panel(
                    "In trouble",
                    Stat,
                    Fault,
                    4,
                    "Workers that something keeps from their work; `kgfleet workers` says what.",
                    &[("max(kgfleet_workers_in_trouble)", "")],
                ),
                panel(
                    "Draining",
                    Stat,
                    Number,
                    4,
                    "Workers that finish what they hold and end.",
                    &[("max(kgfleet_workers_draining)", "")],
                ),
                panel("Runs", Stat, Number, 4, "Runs that are not over.", &[("max(kgfleet_runs)", "")]),
                panel(
                    "Backlog",
                    Stat,
                    Number,
                    4,
                    "Dialogues of pending and leased units.",
                    &[("sum(max by (model) (kgfleet_backlog_dialogues))", "")],
                ),
                panel(
                    "In flight",
                    Stat,
                    Number,
                    4,
                    "Dialogues under way at all workers.",
                    &[("sum(kgfleet_worker_inflight_dialogues{instance=~\"$node\"})", "")],
                ),
            ],
        },
        PanelRow {
            title: "Model servers",
            panels: &[
                panel(
                    "Use of the limit by server",
                    Lines,
                    Share,
                    12,
                    "Dialogues in flight over the limit. 1: the server gets all that the limit allows. Far below 1 with a backlog: the worker lacks leases or is in trouble.",
                    &[(
                        "sum by (server) (kgfleet_worker_inflight_dialogues{instance=~\"$node\"}) / (sum by (server) (kgfleet_worker_concurrency_limit{instance=~\"$node\"}) > 0)",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Idle servers while work waits",
                    Table,
                    Number,
                    12,
                    "Servers with nothing in flight although dialogues wait, and their limits. Empty is good; the waiting work may be for other models.",
                    &[(
                        "sum by (server) (kgfleet_worker_concurrency_limit) and on (server) (sum by (server) (kgfleet_worker_inflight_dialogues) == 0) and on () (sum(max by (model) (kgfleet_backlog_dialogues)) > 0)",
                        "",
                    )],
                ),
                panel(
                    "Limit and dialogues in flight",
                    Lines,
                    Number,
                    12,
                    "The limit grows while it is used up and the server does not queue, and shrinks when the server refuses.",
                    &[
                        (
                            "sum by (server) (kgfleet_worker_concurrency_limit{instance=~\"$node\"})",
                            "{{server}} limit",
                        ),
                        (
                            "sum by (server) (kgfleet_worker_inflight_dialogues{instance=~\"$node\"})",
                            "{{server}} in flight",
                        ),
                    ],
                ),
                panel(
                    "Why the limit stands where it does",
                    Table,
                    Number,
                    12,
                    "fixed by hand; server-queue: requests wait at the server; refused: the server was full; maximum; unused: not used up; growing.",
                    &[(
                        "max by (server, reason) (kgfleet_worker_concurrency_limit_reason{instance=~\"$node\"}) == 1",
                        "",
                    )],
                ),
                panel(
                    "Requests at the server",
                    Lines,
                    Number,
                    8,
                    "vLLM's own numbers, of all its clients.",
                    &[
                        ("max by (server) (kgfleet_server_running_requests)", "{{server}} running"),
                        ("max by (server) (kgfleet_server_waiting_requests)", "{{server}} waiting"),
                    ],
                ),
                panel(
                    "Cache of keys and values",
                    Lines,
                    Share,
                    8,
                    "Share in use of the fullest engine. Near 1, vLLM pushes requests out and computes them again.",
                    &[("max by (server) (kgfleet_server_kv_cache_usage_ratio)", "{{server}}")],
                ),
                panel(
                    "Prefix cache hits",
                    Lines,
                    Share,
                    8,
                    "Share of the looked-up tokens that were in vLLM's prefix cache. Units of one task share their beginning, so this should be high.",
                    &[(
                        "sum by (server) (rate(kgfleet_server_prefix_cache_hits_total[$__rate_interval])) / (sum by (server) (rate(kgfleet_server_prefix_cache_queries_total[$__rate_interval])) > 0)",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Generated tokens per second",
                    Stacked,
                    PerSecond,
                    8,
                    "vLLM's own count, of all its clients.",
                    &[(
                        "max by (server) (rate(kgfleet_server_generated_tokens_total[$__rate_interval]))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Preemptions",
                    Lines,
                    PerSecond,
                    8,
                    "Requests pushed out of the cache per second.",
                    &[(
                        "max by (server) (rate(kgfleet_server_preemptions_total[$__rate_interval]))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Servers that do not answer, or answer as another model",
                    Table,
                    Fault,
                    8,
                    "Empty is good.",
                    &[
                        ("max by (server) (kgfleet_server_up == 0)", ""),
                        ("max by (server) (kgfleet_server_model_mismatch == 1)", ""),
                    ],
                ),
            ],
        },
        PanelRow {
            title: "Stragglers",
            panels: &[
                panel(
                    "Time of an answer",
                    Lines,
                    Seconds,
                    12,
                    "95th percentile by server, retries included. One line above the others: that server is slower.",
                    &[(
                        "histogram_quantile(0.95, sum by (le, server) (rate(kgfleet_worker_round_duration_seconds_bucket{instance=~\"$node\"}[$__rate_interval])))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Time to the first token",
                    Lines,
                    Seconds,
                    12,
                    "95th percentile by server, of answers that come in a stream.",
                    &[(
                        "histogram_quantile(0.95, sum by (le, server) (rate(kgfleet_worker_first_token_seconds_bucket{instance=~\"$node\"}[$__rate_interval])))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Slowest servers",
                    Bars,
                    Seconds,
                    12,
                    "Mean time of an answer over the last quarter of an hour.",
                    &[(
                        "topk(10, sum by (server) (rate(kgfleet_worker_round_duration_seconds_sum[15m])) / (sum by (server) (rate(kgfleet_worker_round_duration_seconds_count[15m])) > 0))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Workers by model",
                    Bars,
                    Number,
                    12,
                    "Registered workers that serve each model of the active runs.",
                    &[("max by (model) (kgfleet_run_model_workers)", "{{model}}")],
                ),
            ],
        },
        PanelRow {
            title: "Leases and units",
            panels: &[
                panel(
                    "Leases",
                    Lines,
                    Number,
                    8,
                    "Leases held by worker.",
                    &[("kgfleet_worker_leases{instance=~\"$node\"}", "{{instance}}")],
                ),
                panel(
                    "Leased dialogues that have not started",
                    Lines,
                    Number,
                    8,
                    "Zero for long with a backlog: the worker waits for leases.",
                    &[("kgfleet_worker_pending_dialogues{instance=~\"$node\"}", "{{instance}}")],
                ),
                panel(
                    "Units",
                    Stacked,
                    Number,
                    8,
                    "Units of the active runs by state. A suspect is also pending or leased.",
                    &[(
                        "sum by (state) (max by (model, state) (kgfleet_units{state!=\"suspect\"}))",
                        "{{state}}",
                    )],
                ),
                panel(
                    "Time since leases were renewed",
                    Lines,
                    Seconds,
                    12,
                    "It must stay below the lease, 30 s unless set otherwise.",
                    &[("kgfleet_worker_lease_age_seconds{instance=~\"$node\"}", "{{instance}}")],
                ),
                panel(
                    "Dialogues by worker",
                    Stacked,
                    PerSecond,
                    12,
                    "Dialogues that ended per second.",
                    &[(
                        "sum by (instance) (rate(kgfleet_worker_dialogues_total{instance=~\"$node\"}[$__rate_interval]))",
                        "{{instance}}",
                    )],
                ),
            ],
        },
        PanelRow {
            title: "Processes",
            panels: &[
                panel(
                    "Processors",
                    Lines,
                    Number,
                    8,
                    "Processors in use by process, evaluation processes left out.",
                    &[(
                        "rate(process_cpu_seconds_total{instance=~\"$node\"}[$__rate_interval]) and on (instance) kgfleet_build_info",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Memory",
                    Lines,
                    Bytes,
                    8,
                    "In RAM, evaluation processes left out.",
                    &[(
                        "process_resident_memory_bytes{instance=~\"$node\"} and on (instance) kgfleet_build_info",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Versions",
                    Table,
                    Number,
                    8,
                    "Version of every process. docs/versions.md says which understand each other.",
                    &[(
                        "max by (component, version, instance) (kgfleet_build_info{instance=~\"$node\"})",
                        "",
                    )],
                ),
                panel(
                    "File descriptors",
                    Lines,
                    Share,
                    12,
                    "Share of the allowed file descriptors in use.",
                    &[(
                        "(process_open_fds{instance=~\"$node\"} / process_max_fds) and on (instance) kgfleet_build_info",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "Up since",
                    Table,
                    Seconds,
                    12,
                    "Time since the process started.",
                    &[(
                        "(time() - process_start_time_seconds{instance=~\"$node\"}) and on (instance) kgfleet_build_info",
                        "",
                    )],
                ),
            ],
        },
    ],
};
