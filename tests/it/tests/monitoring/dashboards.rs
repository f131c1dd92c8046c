//! Whether the kept dashboards are those that the source says.

use std::collections::BTreeSet;
use std::fs;

use dashboards::ALL;

use crate::{catalogue, root};

/// Metrics of Prometheus itself.
const PROMETHEUS: [&str; 2] = ["ALERTS", "scrape_samples_scraped"];

#[test]
fn the_kept_dashboards_are_those_of_the_source() {
    for (name, made) in dashboards::files() {
        let kept = fs::read_to_string(root().join("deploy/grafana").join(&name)).unwrap_or_default();
        assert!(kept == made, "deploy/grafana/{name} is stale; run `cargo run -p dashboards`");
    }
}

#[test]
fn panels_name_metrics_and_labels_that_exist() {
    let catalogue = catalogue::read();
    let mut shown = BTreeSet::new();
    for dashboard in ALL {
        for panel in dashboard.rows.iter().flat_map(|row| row.panels) {
            assert!(panel.help.ends_with('.') && panel.width <= 24, "{}", panel.title);
            for (expression, legend) in panel.queries {
                let place = format!("{}: {}", dashboard.title, panel.title);
                let named =
                    catalogue.check(expression, &PROMETHEUS).unwrap_or_else(|e| panic!("{place}: {e}"));
                let is_prometheus = PROMETHEUS.iter().any(|name| expression.contains(name));
                assert!(!named.is_empty() || is_prometheus, "{place} names no metric");
                for label in legend.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")) {
                    assert!(
                        expression.contains(label.0) || label.0 == "instance",
                        "{place}: legend {legend}"
                    );
                }
                shown.extend(named);
            }
        }
        for variable in dashboard.variables {
            catalogue.check(variable.from, &[]).unwrap();
        }
    }
    let hidden: Vec<&String> = catalogue.names().filter(|name| !shown.contains(*name)).collect();
    assert_eq!(hidden, KEPT_FOR_QUERIES, "metrics that no panel shows");
}

/// Metrics that no panel shows: for alerts, for people's own queries.
const KEPT_FOR_QUERIES: [&str; 6] = [
    "kgfleet_tokens_total",
    "kgfleet_run_created_timestamp_seconds",
    "kgfleet_worker_hedged_calls_total",
    "kgfleet_server_canaries_differing",
    "kgfleet_server_prompt_tokens_total",
    "process_threads",
];
