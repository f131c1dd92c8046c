//! The dashboard that answers: how fast and how far is a run, and what are the results? `reliability` explains the form
//! of a panel.

use crate::panels::{ColourStep, Dashboard, Is, MODEL, PanelKind, PanelRow, RELEASE, RUN, panel};
use Is::{Fault, Number, PerSecond, Seconds, Share};
use PanelKind::{Bars, Lines, Matrix, Stacked, Stat, Table, Word};

pub const DASHBOARD: Dashboard = Dashboard {
    uid: "kgfleet-run",
    title: "kgfleet: Run",
    about: "How fast, how far, and what comes out. Numbers of a run are told by every coordinator; the largest is shown, so that nothing is counted twice and nothing jumps when a coordinator goes. All runs are in the table at the top; the rest shows the one that is chosen, unless a title says otherwise.",
    variables: &[RELEASE, RUN, MODEL],
    rows: &[
        PanelRow {
            title: "All runs",
            panels: &[panel(
                "Runs that are not over",
                Table,
                Number,
                24,
                "Each run with the share of its dialogues that have a record, those that failed, dialogues per second, and the time left in seconds, which is empty while a model with dialogues left does not move.",
                &[
                    (
                        "sum by (namespace, release, run) (max by (namespace, release, run, state) (kgfleet_run_dialogues{state=~\"scored|failed\"})) / max by (namespace, release, run) (kgfleet_run_dialogues{state=\"planned\"})",
                        "done",
                    ),
                    (
                        "max by (namespace, release, run) (kgfleet_run_dialogues{state=\"failed\"})",
                        "failed",
                    ),
                    ("max by (namespace, release, run) (kgfleet_run_dialogues_per_second)", "per second"),
                    ("max by (namespace, release, run) (kgfleet_run_eta_seconds)", "seconds left"),
                ],
            )],
        },
        PanelRow {
            title: "Now",
            panels: &[
                panel(
                    "Done",
                    Stat,
                    Share,
                    4,
                    "Share of the planned dialogues that have a record, scored or failed.",
                    &[(
                        "sum by (run) (max by (run, state) (kgfleet_run_dialogues{run=\"$run\", state=~\"scored|failed\"})) / max by (run) (kgfleet_run_dialogues{run=\"$run\", state=\"planned\"})",
                        "{{run}}",
                    )],
                ),
                panel(
                    "Time left",
                    Stat,
                    Seconds,
                    4,
                    "What the slowest model takes for the rest at its present rate. Empty while a model with dialogues left does not move.",
                    &[("max by (run) (kgfleet_run_eta_seconds{run=\"$run\"})", "{{run}}")],
                ),
                panel(
                    "Dialogues",
                    Stat,
                    PerSecond,
                    4,
                    "Dialogues per second over the last minute.",
                    &[("max by (run) (kgfleet_run_dialogues_per_second{run=\"$run\"})", "{{run}}")],
                ),
                panel(
                    "Tokens",
                    Stat,
                    PerSecond,
                    4,
                    "Generated tokens per second over the last minute.",
                    &[("max by (run) (kgfleet_run_tokens_per_second{run=\"$run\"})", "{{run}}")],
                ),
                panel(
                    "Failed",
                    Stat,
                    Number,
                    4,
                    "Dialogues without a score. Not scored is not zero: `kgfleet retry` asks them again.",
                    &[("max by (run) (kgfleet_run_dialogues{run=\"$run\", state=\"failed\"})", "{{run}}")],
                )
                .with("green", &[ColourStep(1.0, "orange")]),
                panel(
                    "Phase",
                    Word,
                    Number,
                    4,
                    "Preparing, active or paused.",
                    &[("max by (run, phase) (kgfleet_run_phase{run=\"$run\"}) == 1", "{{run}} {{phase}}")],
                ),
            ],
        },
        PanelRow {
            title: "Over time",
            panels: &[
                panel(
                    "Progress",
                    Lines,
                    Share,
                    12,
                    "Share of the planned dialogues that have a record.",
                    &[(
                        "sum by (run) (max by (run, state) (kgfleet_run_dialogues{run=\"$run\", state=~\"scored|failed\"})) / max by (run) (kgfleet_run_dialogues{run=\"$run\", state=\"planned\"})",
                        "{{run}}",
                    )],
                ),
                panel(
                    "Dialogues left by model",
                    Lines,
                    Number,
                    12,
                    "The model whose line falls slowest decides when the run ends. A line leads to the servers of its model.",
                    &[(
                        "max by (run, model, serves) (kgfleet_run_model_remaining_dialogues{run=\"$run\", model=~\"$model\"})",
                        "{{model}}",
                    )],
                )
                .to_servers(),
                panel(
                    "Dialogues per second by model",
                    Stacked,
                    PerSecond,
                    12,
                    "How fast what is left grows less.",
                    &[(
                        "clamp_min(-deriv(max by (run, model) (kgfleet_run_model_remaining_dialogues{run=\"$run\", model=~\"$model\"})[5m:]), 0)",
                        "{{model}}",
                    )],
                ),
                panel(
                    "Generated tokens per second by model, all runs",
                    Stacked,
                    PerSecond,
                    12,
                    "As the model servers count them.",
                    &[(
                        "sum by (model) (rate(kgfleet_worker_tokens_total{model=~\"$model\", kind=\"completion\"}[$__rate_interval]))",
                        "{{model}}",
                    )],
                ),
                panel(
                    "Prompt tokens per second by model, all runs",
                    Stacked,
                    PerSecond,
                    12,
                    "As the model servers count them, those found in a prefix cache included.",
                    &[(
                        "sum by (model) (rate(kgfleet_worker_tokens_total{model=~\"$model\", kind=\"prompt\"}[$__rate_interval]))",
                        "{{model}}",
                    )],
                ),
                panel(
                    "Duration of a dialogue, all runs",
                    Lines,
                    Seconds,
                    12,
                    "Median and 95th percentile by model, from the first prompt to the record.",
                    &[
                        (
                            "histogram_quantile(0.5, sum by (le, model) (rate(kgfleet_worker_dialogue_duration_seconds_bucket{model=~\"$model\"}[$__rate_interval])))",
                            "{{model}} median",
                        ),
                        (
                            "histogram_quantile(0.95, sum by (le, model) (rate(kgfleet_worker_dialogue_duration_seconds_bucket{model=~\"$model\"}[$__rate_interval])))",
                            "{{model}} 95 %",
                        ),
                    ],
                ),
            ],
        },
        PanelRow {
            title: "Outcomes, all runs",
            panels: &[
                panel(
                    "Outcomes",
                    Stacked,
                    PerSecond,
                    8,
                    "Records that count, scored or failed.",
                    &[(
                        "sum by (outcome) (rate(kgfleet_dialogues_total{model=~\"$model\"}[$__rate_interval]))",
                        "{{outcome}}",
                    )],
                ),
                panel(
                    "Failures by cause, all runs",
                    Stacked,
                    PerSecond,
                    8,
                    "Why dialogues ended without a score.",
                    &[(
                        "sum by (cause) (rate(kgfleet_failed_dialogues_total{model=~\"$model\"}[$__rate_interval]))",
                        "{{cause}}",
                    )],
                ),
                panel(
                    "Answers by kind of prompt, all runs",
                    Stacked,
                    PerSecond,
                    8,
                    "First prompts, and follow-ups by what they ask for. Many syntax follow-ups: answers that do not parse.",
                    &[(
                        "sum by (kind) (rate(kgfleet_worker_rounds_total{model=~\"$model\"}[$__rate_interval]))",
                        "{{kind}}",
                    )],
                ),
                panel(
                    "Failed by model",
                    Lines,
                    Number,
                    24,
                    "Dialogues of the chosen run without a score. One line that rises while others do not: that model's server refuses it.",
                    &[(
                        "max by (run, model) (kgfleet_run_model_dialogues{run=\"$run\", model=~\"$model\", state=\"failed\"})",
                        "{{model}}",
                    )],
                ),
            ],
        },
        PanelRow {
            title: "Models and tasks",
            panels: &[
                panel(
                    "Done by model and task",
                    Matrix { rows: "task", columns: "model" },
                    Share,
                    12,
                    "Share of the planned dialogues that have a record.",
                    &[(
                        "max by (run, model, task) (kgfleet_run_cell_done_ratio{run=\"$run\", model=~\"$model\"})",
                        "",
                    )],
                ),
                panel(
                    "Mean score so far by model and task",
                    Matrix { rows: "task", columns: "model" },
                    Share,
                    12,
                    "Mean headline score of the dialogues scored so far. It moves until the run has ended.",
                    &[(
                        "max by (run, model, task) (kgfleet_run_cell_score{run=\"$run\", model=~\"$model\"})",
                        "",
                    )],
                ),
                panel(
                    "Mean score so far",
                    Bars,
                    Share,
                    12,
                    "Mean of the means of a model's tasks.",
                    &[(
                        "max by (run, model) (kgfleet_run_model_score{run=\"$run\", model=~\"$model\"})",
                        "{{model}}",
                    )],
                ),
                panel(
                    "Blocked models",
                    Table,
                    Fault,
                    12,
                    "Models whose rest nobody can ask now, and why: loading and no-worker are normal while models wait for their turn.",
                    &[(
                        "max by (run, model, reason) (kgfleet_run_model_blocked{run=\"$run\", model=~\"$model\"})",
                        "",
                    )],
                ),
                panel(
                    "Stages of pipelines",
                    Table,
                    Share,
                    24,
                    "How far the runs of a pipeline are. Empty unless a judged benchmark runs.",
                    &[(
                        "max by (run, pipeline, stage, model) (kgfleet_run_stage) * on (run) group_left () (sum by (run) (max by (run, state) (kgfleet_run_dialogues{state=~\"scored|failed\"})) / max by (run) (kgfleet_run_dialogues{state=\"planned\"}))",
                        "",
                    )],
                ),
            ],
        },
    ],
};
