//! The dashboards of `deploy/grafana`: whether their panels name metrics and labels that exist.

use std::collections::BTreeSet;
use std::fs;
use std::iter::once;

use serde_json::Value;

use crate::{catalogue, root};

/// Metrics of Prometheus itself.
const PROMETHEUS: [&str; 2] = ["ALERTS", "scrape_samples_scraped"];

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn panels_name_metrics_and_labels_that_exist() {
    let catalogue = catalogue::read();
    let mut shown = BTreeSet::new();
    for name in ["kgfleet-run", "kgfleet-fleet", "kgfleet-reliability"] {
        let file = fs::read_to_string(root().join(format!("deploy/grafana/{name}.json"))).unwrap();
        let dashboard: Value = serde_json::from_str(&file).unwrap();
        // A closed row holds its panels.
        let panels = list(&dashboard["panels"]).flat_map(|panel| once(panel).chain(list(&panel["panels"])));
        for panel in panels.filter(|panel| panel["type"] != "row") {
            let place = format!("{name}: {}", text(&panel["title"]));
            assert!(text(&panel["description"]).ends_with('.'), "{place}");
            for target in list(&panel["targets"]) {
                let (expression, legend) = (text(&target["expr"]), text(&target["legendFormat"]));
                let named =
                    catalogue.check(expression, &PROMETHEUS).unwrap_or_else(|e| panic!("{place}: {e}"));
                let is_prometheus = PROMETHEUS.iter().any(|name| expression.contains(name));
                assert!(!named.is_empty() || is_prometheus, "{place} names no metric");
                assert!(expression.contains("release=~\"$release\""), "{place} shows all releases");
                for (label, _) in legend.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")) {
                    assert!(expression.contains(label) || label == "instance", "{place}: legend {legend}");
                }
                shown.extend(named);
            }
        }
        for variable in list(&dashboard["templating"]["list"]) {
            if let Some(query) = variable["query"]["query"].as_str() {
                let (_, of_metric) = query.split_once('(').unwrap();
                let metric = of_metric.split(',').next().unwrap();
                catalogue.check(metric, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
    }
    let hidden: Vec<&String> = catalogue.names().filter(|name| !shown.contains(*name)).collect();
    assert_eq!(hidden, KEPT_FOR_QUERIES, "metrics that no panel shows");
}

#[test]
fn the_fleet_at_a_glance_fits_a_screen() {
    let file = fs::read_to_string(root().join("deploy/grafana/kgfleet-fleet.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&file).unwrap();
    let rows = list(&dashboard["panels"]).filter(|panel| panel["type"] == "row");
    let open: Vec<&str> =
        rows.filter(|row| row["collapsed"] != true).map(|row| text(&row["title"])).collect();
    assert_eq!(open, ["Now", "Model servers"]);
}

/// Metrics that no panel shows: for alerts, for people's own queries.
const KEPT_FOR_QUERIES: [&str; 6] = [
    "kgfleet_tokens_total",
    "kgfleet_certificate_expiration_timestamp_seconds",
    "kgfleet_run_created_timestamp_seconds",
    "kgfleet_worker_odd_answers_total",
    "kgfleet_server_prompt_tokens_total",
    "process_threads",
];
