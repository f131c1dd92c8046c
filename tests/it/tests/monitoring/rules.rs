//! Whether rules name what exists, and every alert has its section and its test.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde::Deserialize;

use crate::{catalogue, root};

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
    expr: String,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

fn rules(file: &str) -> Vec<Rule> {
    let text = fs::read_to_string(root().join("deploy/prometheus").join(file)).unwrap();
    let file: File = serde_saphyr::from_str(&text).unwrap();
    file.groups.into_iter().flat_map(|group| group.rules).collect()
}

#[test]
fn rules_name_metrics_that_exist() {
    let catalogue = catalogue::read();
    let recording = rules("rules.yml");
    let recorded: Vec<&str> = recording.iter().filter_map(|rule| rule.record.as_deref()).collect();
    assert!(recorded.len() == recording.len() && recorded.iter().all(|name| name.starts_with("kgfleet:")));
    let alerts = rules("alerts.yml");
    for rule in recording.iter().chain(&alerts) {
        let named = catalogue.check(&rule.expr, &recorded);
        named.unwrap_or_else(|error| panic!("{}: {error}", rule.expr));
    }
}

#[test]
fn every_alert_has_its_section_and_its_test() {
    let page = fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    let tests = fs::read_to_string(root().join("deploy/prometheus/alerts_test.yml")).unwrap();
    let sections: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .filter(|line| line.starts_with("Kgfleet"))
        .collect();
    let alerts = rules("alerts.yml");
    for rule in &alerts {
        let name = rule.alert.as_deref().unwrap();
        assert!(sections.contains(name), "docs/monitoring.md has no section {name}");
        assert!(
            tests.contains(&format!("alertname: {name}\n        exp_alerts:\n")),
            "no test lets {name} fire"
        );
        assert!(rule.annotations.contains_key("summary") && rule.annotations.contains_key("description"));
        assert!(["page", "ticket", "info"].contains(&rule.labels["severity"].as_str()), "{name}");
    }
    assert_eq!(sections.len(), alerts.len(), "sections of alerts that do not exist");
}

#[test]
fn every_alert_fires_on_what_it_is_about() {
    let folder = root().join("deploy/prometheus");
    let Ok(output) =
        Command::new("promtool").args(["test", "rules", "alerts_test.yml"]).current_dir(folder).output()
    else {
        harness::skip("there is no promtool: tests/setup installs it");
        return;
    };
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
