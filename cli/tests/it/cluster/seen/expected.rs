//! Every query of dashboards and rules, and those that return nothing by design.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::prometheus::root;

/// A question: where it stands, and its expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    pub place: String,
    /// As the dashboard has it, with variables.
    pub template: String,
    pub expression: String,
}

pub const NO_CONDUCTOR: &str =
    "no conductor starts servers in this cluster; `pools.rs` asks for it in one that has one";

/// Panels of which one expression gives nothing in this test, with the reason.
pub const EMPTY_BY_DESIGN: [(&str, &str, &str); 16] = [
    (
        "Preemptions",
        "kgfleet_server_preemptions_total",
        "the simulator pushes no request out of its cache, and does not tell of it",
    ),
    (
        "Failures of log and delivery",
        "kgfleet_worker_delivery_failures_total",
        "no record is on its way any more when the coordinator goes",
    ),
    (
        "Stages of pipelines",
        "kgfleet_run_stage",
        "the quick benchmark has no judges, so no run is a stage of a pipeline",
    ),
    (
        "Models parked",
        "kgfleet_worker_parkings_total",
        "no quota is used up, no key is refused, and no server is gone for as long as it takes",
    ),
    (
        "Runs and workers in trouble",
        "kgfleet_run_trouble",
        "every run can be looked after as long as the queue is there",
    ),
    ("Servers of pools", "kgfleet_pool_servers", NO_CONDUCTOR),
    ("GPUs of pools", "kgfleet_pool_gpus", NO_CONDUCTOR),
    ("Pools that wait for a server", "kgfleet_pool_waiting_seconds", NO_CONDUCTOR),
    ("Failures of pools", "kgfleet_pool_", NO_CONDUCTOR),
    ("GPU-hours", "kgfleet_gpu_hours", NO_CONDUCTOR),
    ("GPU-hours used", "kgfleet_gpu_hours", NO_CONDUCTOR),
    ("Spent on tokens", "kgfleet_run_model_spent", "nobody bills a simulated model"),
    ("GPU-hours by pool", "kgfleet_pool_gpu_hours", NO_CONDUCTOR),
    ("Loading of pools", "kgfleet_pool_load", NO_CONDUCTOR),
    ("End of the plan", "kgfleet_plan_end_timestamp_seconds", NO_CONDUCTOR),
    (
        "Servers that do not answer, or answer as another model",
        "kgfleet_server_model_mismatch",
        "no server changes what it serves under a name",
    ),
];

/// Alerts that are tried in `deploy/prometheus/alerts_test.yml` alone, because what they are about would spoil what panels
/// show.
pub const NOT_CAUSED: [&str; 9] = [
    "KgfleetCertificateEnds",
    "KgfleetModelFailing",
    "KgfleetQuotaExhausted",
    "KgfleetSpoolFilling",
    "KgfleetDeadLetters",
    "KgfleetEvaluationLimits",
    "KgfleetSinkLag",
    "KgfleetSinkFailing",
    "KgfleetSeriesDropped",
];

/// Alerts about pools, which a test with a conductor causes (`pools.rs`), but for the first one: a server would have to serve
/// for the hour that others take to be given up, so that its rule is tried in `deploy/prometheus/alerts_test.yml` alone.
pub const OF_CONDUCTORS: [&str; 6] = [
    "KgfleetPoolCannotGrow",
    "KgfleetPoolFailed",
    "KgfleetPoolNotStarting",
    "KgfleetBudgetNearlyUsed",
    "KgfleetBudgetUsed",
    "KgfleetConductorAbsent",
];

/// Every expression of every panel, with its variables filled in.
pub fn panels() -> BTreeSet<Question> {
    let mut questions = BTreeSet::new();
    for file in ["kgfleet-run", "kgfleet-fleet", "kgfleet-reliability"] {
        let path = root().join(format!("deploy/grafana/{file}.json"));
        let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let all = dashboard["panels"].as_array().unwrap().iter();
        // A closed row holds its panels.
        for panel in all
            .flat_map(|panel| std::iter::once(panel).chain(panel["panels"].as_array().into_iter().flatten()))
        {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let template = target["expr"].as_str().unwrap().to_owned();
                let mut expression = template.clone();
                for (variable, value) in [
                    ("$__rate_interval", "8s"),
                    ("$__range", "60s"),
                    // The rate of what is left, in the shorter time of this test.
                    ("[5m:]", "[8s:1s]"),
                    // Of all runs: that with a model which nobody serves has no time left to tell.
                    ("=\"$run\"", "=~\".+\""),
                    ("$model", ".*"),
                    ("$release", "seen"),
                    ("$pool", "gpus"),
                    ("$instance", ".*"),
                    ("$serves", ".*"),
                ] {
                    expression = expression.replace(variable, value);
                }
                let place = panel["title"].as_str().unwrap().to_owned();
                questions.insert(Question { place, template, expression });
            }
        }
    }
    assert!(questions.len() > 80, "the panels ask something");
    questions
}

/// The names of all recorded series and of all alerts.
pub fn rules() -> (Vec<String>, Vec<String>) {
    #[derive(Deserialize)]
    struct File {
        groups: Vec<Group>,
    }
    #[derive(Deserialize)]
    struct Group {
        rules: Vec<Rule>,
    }
    #[derive(Deserialize)]
    struct Rule {
        record: Option<String>,
        alert: Option<String>,
    }
    let read = |file: &str| -> Vec<Rule> {
        let text = std::fs::read_to_string(root().join("deploy/prometheus").join(file)).unwrap();
        let file: File = serde_saphyr::from_str(&text).unwrap();
        file.groups.into_iter().flat_map(|group| group.rules).collect()
    };
    let recorded = read("rules.yml").into_iter().filter_map(|rule| rule.record).collect();
    let alerts = read("alerts.yml").into_iter().filter_map(|rule| rule.alert).collect();
    (recorded, alerts)
}
