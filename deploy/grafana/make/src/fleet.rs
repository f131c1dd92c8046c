//! The dashboard that answers: who works, and which GPU is idle? `reliability` explains the form of a panel.

use crate::panels::{ColourStep, Dashboard, INSTANCE, Is, POOL, PanelKind, PanelRow, RELEASE, SERVES, panel};
use Is::{Bytes, Fault, Number, PerSecond, Seconds, Share};
use PanelKind::{Bars, Lines, Stacked, Stat, States, Table};

pub const DASHBOARD: Dashboard = Dashboard {
    uid: "kgfleet-fleet",
    title: "kgfleet: Fleet",
    about: "Who works, how full are the model servers, which of them is idle while work waits, and who is slower than the others.",
    variables: &[RELEASE, POOL, INSTANCE, SERVES],
    rows: &[
        PanelRow {
            title: "Now",
            panels: &[
                panel("Workers", Stat, Number, 4, "Registered workers.", &[("sum(max by (namespace, release) (kgfleet_workers))", "")]),
                panel(
                    "In trouble",
                    Stat,
                    Fault,
                    4,
                    "Workers that something keeps from their work; `kgfleet workers` says what.",
                    &[("sum(max by (namespace, release) (kgfleet_workers_in_trouble))", "")],
                ),
                panel(
                    "Draining",
                    Stat,
                    Number,
                    4,
                    "Workers that finish what they hold and end.",
                    &[("sum(max by (namespace, release) (kgfleet_workers_draining))", "")],
                ),
                panel("Runs", Stat, Number, 4, "Runs that are not over.", &[("sum(max by (namespace, release) (kgfleet_runs))", "")]),
                panel(
                    "Backlog",
                    Stat,
                    Number,
                    4,
                    "Dialogues of pending and leased units.",
                    &[("sum(max by (namespace, release, model) (kgfleet_backlog_dialogues))", "")],
                ),
                panel(
                    "In flight",
                    Stat,
                    Number,
                    4,
                    "Dialogues under way at all workers.",
                    &[("sum(kgfleet_worker_inflight_dialogues)", "")],
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
                        "sum by (release, serves, server) (kgfleet_worker_inflight_dialogues) / (sum by (release, serves, server) (kgfleet_worker_concurrency_limit) > 0)",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Idle servers while work waits",
                    Table,
                    Number,
                    12,
                    "Servers with nothing in flight although dialogues of their model wait, and their limits. Empty is good.",
                    &[(
                        "sum by (namespace, release, serves, server) (kgfleet_worker_concurrency_limit) and on (namespace, release, server) (sum by (namespace, release, server) (kgfleet_worker_inflight_dialogues) == 0) and on (namespace, release, serves) (max by (namespace, release, serves) (kgfleet_need_dialogues{state=\"now\"}) > 0)",
                        "limit",
                    )],
                )
                .none_is_good(),
                panel(
                    "Limit and dialogues in flight",
                    Lines,
                    Number,
                    12,
                    "The limit grows while it is used up and the server does not queue, and shrinks when the server refuses.",
                    &[
                        (
                            "sum by (release, serves, server) (kgfleet_worker_concurrency_limit)",
                            "{{server}} limit",
                        ),
                        (
                            "sum by (release, serves, server) (kgfleet_worker_inflight_dialogues)",
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
                        "max by (release, serves, server, reason) (kgfleet_worker_concurrency_limit_reason) == 1",
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
                        ("max by (release, serves, server) (kgfleet_server_running_requests)", "{{server}} running"),
                        ("sum by (serves) (max by (serves, release, server) (kgfleet_server_running_requests))", "all of {{serves}} running"),
                        ("max by (release, serves, server) (kgfleet_server_waiting_requests)", "{{server}} waiting"),
                    ],
                ),
                panel(
                    "Cache of keys and values",
                    Lines,
                    Share,
                    8,
                    "Share in use of the fullest engine, and the mean of a model's servers. Near 1, vLLM pushes requests out and computes them again.",
                    &[
                        ("max by (release, serves, server) (kgfleet_server_kv_cache_usage_ratio)", "{{server}}"),
                        ("avg by (serves) (max by (serves, release, server) (kgfleet_server_kv_cache_usage_ratio))", "mean of {{serves}}"),
                    ],
                )
                .with("blue", &[ColourStep(0.95, "red")]),
                panel(
                    "Prefix cache hits",
                    Lines,
                    Share,
                    8,
                    "Share of the looked-up tokens that were in vLLM's prefix cache. Units of one task share their beginning, so this should be high.",
                    &[(
                        "sum by (release, serves, server) (rate(kgfleet_server_prefix_cache_hits_total[$__rate_interval])) / (sum by (release, serves, server) (rate(kgfleet_server_prefix_cache_queries_total[$__rate_interval])) > 0)",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Generated tokens per second",
                    Lines,
                    PerSecond,
                    8,
                    "vLLM's own count, of all its clients: by server, and of all servers of a model.",
                    &[
                        (
                            "max by (release, serves, server) (rate(kgfleet_server_generated_tokens_total[$__rate_interval]))",
                            "{{server}}",
                        ),
                        (
                            "sum by (serves) (max by (serves, release, server) (rate(kgfleet_server_generated_tokens_total[$__rate_interval])))",
                            "all of {{serves}}",
                        ),
                    ],
                ),
                panel(
                    "Preemptions",
                    Lines,
                    PerSecond,
                    8,
                    "Requests pushed out of the cache per second.",
                    &[(
                        "max by (release, serves, server) (rate(kgfleet_server_preemptions_total[$__rate_interval]))",
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
                        ("max by (release, serves, server) (kgfleet_server_up == 0)", ""),
                        ("max by (release, serves, server) (kgfleet_server_model_mismatch == 1)", ""),
                    ],
                ),
            ],
        },
        PanelRow {
            title: "Pools of a conductor",
            panels: &[
                panel(
                    "Servers of pools",
                    Stacked,
                    Number,
                    12,
                    "Jobs of pools by what they are doing: without nodes yet, loading, serving, idle, ending.",
                    &[("sum by (release, state) (max by (release, pool, state) (kgfleet_pool_servers))", "{{state}}")],
                ),
                panel(
                    "GPUs of pools",
                    Lines,
                    Number,
                    12,
                    "GPUs that may be used at once, those of servers that have not ended, and those of lost nodes.",
                    &[("max by (release, state) (kgfleet_pool_gpus)", "{{state}}")],
                ),
                panel(
                    "Pools that wait for a server",
                    Lines,
                    Seconds,
                    12,
                    "How long a pool with work has waited for its first server, and for what: GPUs, nodes of another server, the budget, a retry, weights.",
                    &[("max by (release, pool, why) (kgfleet_pool_waiting_seconds)", "{{pool}}: {{why}}")],
                )
                .none_is_good(),
                panel(
                    "Failures of pools",
                    Table,
                    Number,
                    12,
                    "Servers that ended although their work was not done, by the reason, since the pool's template was changed or somebody retried it, and pools that get no server any more. `kgfleet launch --status` says more.",
                    &[
                        ("max by (release, pool, why) (kgfleet_pool_failures) > 0", "failures"),
                        ("max by (release, pool) (kgfleet_pool_given_up) > 0", "given up"),
                    ],
                )
                .none_is_good(),
                panel(
                    "GPU-hours",
                    Lines,
                    Number,
                    12,
                    "GPU-hours of all servers of pools so far, those that are foreseen at the end, and the budget if there is one.",
                    &[
                        ("max by (release) (kgfleet_gpu_hours)", "used"),
                        ("max by (release) (kgfleet_gpu_hours_planned)", "planned"),
                        ("max by (release) (kgfleet_gpu_hours_budget)", "budget"),
                    ],
                ),
                panel(
                    "GPU-hours by pool",
                    Bars,
                    Number,
                    12,
                    "GPU-hours of a pool's servers by what they were for: loading, work, having nothing to do, and servers that never served.",
                    &[("max by (release, pool, kind) (kgfleet_pool_gpu_hours) > 0", "{{pool}}: {{kind}}")],
                ),
                panel(
                    "Loading of pools",
                    Lines,
                    Seconds,
                    12,
                    "For how long servers of pools have been loading, and how long they are expected to: as the pool's last one did, else as the table says.",
                    &[
                        ("max by (release, pool) (kgfleet_pool_loading_seconds)", "{{pool}}"),
                        ("max by (release, pool) (kgfleet_pool_load_seconds and on (release, pool) kgfleet_pool_loading_seconds)", "{{pool}}: expected"),
                    ],
                )
                .none_is_good(),
                panel(
                    "End of the plan",
                    Lines,
                    Seconds,
                    12,
                    "Time until the last server of a pool ends, as far as that can be foreseen. The conductor says nothing while it cannot do its rounds.",
                    &[("(max by (release) (kgfleet_plan_end_timestamp_seconds) - time()) and on (release) max by (release) (kgfleet_conductor_ready) == 1", "left")],
                ),
            ],
        },
        PanelRow {
            title: "GPUs",
            panels: &[
                panel(
                    "What workers do",
                    States(&[
                        (1, "loading", "orange"),
                        (2, "serving", "green"),
                        (3, "idle", "yellow"),
                        (4, "ending", "blue"),
                    ]),
                    Number,
                    12,
                    "For each worker: its server loads, it has dialogues in flight, it waits for work, or it ends.",
                    &[(
                        "sum by (release, pool, instance) (kgfleet_worker_phase{phase=\"loading\"}) + 2 * sum by (release, pool, instance) (kgfleet_worker_phase{phase=\"serving\"}) + 3 * sum by (release, pool, instance) (kgfleet_worker_phase{phase=\"idle\"}) + 4 * sum by (release, pool, instance) (kgfleet_worker_phase{phase=\"ending\"})",
                        "{{instance}}",
                    )],
                ),
                panel(
                    "GPUs by what their worker does",
                    Stacked,
                    Number,
                    12,
                    "GPUs as --gpus of the workers says.",
                    &[(
                        "sum by (phase) (kgfleet_worker_phase * on (namespace, release, instance) group_left () kgfleet_worker_gpus)",
                        "{{phase}}",
                    )],
                ),
                panel(
                    "GPU hours in this time",
                    Bars,
                    Number,
                    8,
                    "GPU hours of the chosen time by what the worker did. serving is work; the rest is what it cost.",
                    &[(
                        "sum by (phase) (sum_over_time((kgfleet_worker_phase * on (namespace, release, instance) group_left () kgfleet_worker_gpus)[$__range:30s])) / 120",
                        "{{phase}}",
                    )],
                ),
                panel(
                    "Time to load",
                    Bars,
                    Seconds,
                    8,
                    "From the start of a worker until its first server answered.",
                    &[("max by (release, pool, instance) (kgfleet_worker_load_seconds)", "{{instance}}")],
                ),
                panel(
                    "Longest in what they do",
                    Table,
                    Seconds,
                    8,
                    "The ten workers that have been longest in their phase.",
                    &[(
                        "topk(10, max by (release, pool, instance, phase) (kgfleet_worker_phase == 1) * on (release, pool, instance) group_left () max by (release, pool, instance) (kgfleet_worker_phase_seconds))",
                        "time",
                    )],
                ),
                panel(
                    "Dialogues left for servers",
                    Table,
                    Number,
                    24,
                    "By the name that is asked for: dialogues of active runs (now) and of paused ones (held); later is 1 while a judged benchmark may ask the model in a later stage.",
                    &[(
                        "max by (release, serves, state) (kgfleet_need_dialogues) > 0",
                        "dialogues",
                    )],
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
                        "histogram_quantile(0.95, sum by (le, release, serves, server) (rate(kgfleet_worker_round_duration_seconds_bucket[$__rate_interval])))",
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
                        "histogram_quantile(0.95, sum by (le, release, serves, server) (rate(kgfleet_worker_first_token_seconds_bucket[$__rate_interval])))",
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
                        "topk(10, sum by (release, serves, server) (rate(kgfleet_worker_round_duration_seconds_sum[15m])) / (sum by (release, serves, server) (rate(kgfleet_worker_round_duration_seconds_count[15m])) > 0))",
                        "{{server}}",
                    )],
                ),
                panel(
                    "Workers by model",
                    Bars,
                    Number,
                    12,
                    "Registered workers that serve each model of the active runs.",
                    &[("max by (release, model) (kgfleet_run_model_workers)", "{{model}}")],
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
                    &[("max by (release, instance) (kgfleet_worker_leases)", "{{instance}}")],
                ),
                panel(
                    "Leased dialogues that have not started",
                    Lines,
                    Number,
                    8,
                    "Zero for long with a backlog: the worker waits for leases.",
                    &[("max by (release, instance) (kgfleet_worker_pending_dialogues)", "{{instance}}")],
                ),
                panel(
                    "Units",
                    Stacked,
                    Number,
                    8,
                    "Units of the active runs by state. A suspect is also pending or leased.",
                    &[(
                        "sum by (state) (max by (namespace, release, model, state) (kgfleet_units{state!=\"suspect\"}))",
                        "{{state}}",
                    )],
                ),
                panel(
                    "Time since leases were renewed",
                    Lines,
                    Seconds,
                    12,
                    "It must stay below the lease, 30 s unless set otherwise.",
                    &[("max by (release, instance) (kgfleet_worker_lease_age_seconds)", "{{instance}}")],
                ),
                panel(
                    "Dialogues by worker",
                    Stacked,
                    PerSecond,
                    12,
                    "Dialogues that ended per second.",
                    &[(
                        "sum by (instance) (rate(kgfleet_worker_dialogues_total[$__rate_interval]))",
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
                        "rate(process_cpu_seconds_total[$__rate_interval]) and on (namespace, release, instance) kgfleet_build_info",
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
                        "process_resident_memory_bytes and on (namespace, release, instance) kgfleet_build_info",
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
                        "max by (release, node, component, version, instance) (kgfleet_build_info)",
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
                        "(process_open_fds / process_max_fds) and on (namespace, release, instance) kgfleet_build_info",
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
                        "(time() - process_start_time_seconds) and on (namespace, release, instance) kgfleet_build_info",
                        "",
                    )],
                ),
            ],
        },
    ],
};
