//! The metrics that exist, from the reference page, which a test of the binary keeps true.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::root;

/// The metrics by name, in their order.
pub struct Catalogue {
    order: Vec<String>,
    metrics: BTreeMap<String, Metric>,
}

struct Metric {
    is_histogram: bool,
    labels: BTreeSet<String>,
}

/// Words of PromQL that stand where names of metrics do.
const WORDS: [&str; 13] = [
    "and",
    "or",
    "unless",
    "on",
    "ignoring",
    "by",
    "without",
    "group_left",
    "group_right",
    "bool",
    "offset",
    "inf",
    "nan",
];

/// Labels that Prometheus and the chart's monitors give to all series of a process.
const OF_SCRAPES: [&str; 4] = ["instance", "job", "release", "pool"];

pub fn read() -> Catalogue {
    let page = fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let (mut order, mut metrics) = (Vec::new(), BTreeMap::new());
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches([' ', '|'])).collect();
        let name = cells[0].trim_matches('`').to_owned();
        let labels = cells[2].split(", ").map(|label| label.trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        order.push(name.clone());
        metrics.insert(name, Metric { is_histogram: cells[1] == "histogram", labels });
    }
    assert!(order.len() > 70, "the page lists the metrics");
    Catalogue { order, metrics }
}

impl Catalogue {
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.order.iter()
    }

    /// The metrics that an expression names; `beside` are others that it may name.
    ///
    /// # Errors
    /// One does not exist, or has no such label.
    pub fn check(&self, expression: &str, beside: &[&str]) -> Result<BTreeSet<String>, String> {
        let mut named = BTreeSet::new();
        let mut rest = expression;
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '"')) {
            if rest[start..].starts_with('"') {
                let end = rest[start + 1..].find('"').ok_or("a text has no end")?;
                rest = &rest[start + end + 2..];
                continue;
            }
            let before = rest[..start].chars().next_back();
            let name_end = rest[start..]
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
                .map_or(rest.len(), |end| start + end);
            let (name, after) = (&rest[start..name_end], &rest[name_end..]);
            rest = after;
            // A unit of time, or a variable of Grafana's.
            if before.is_some_and(|c| c.is_ascii_digit() || c == '$') || WORDS.contains(&name) {
                if matches!(name, "on" | "by" | "ignoring" | "without" | "group_left" | "group_right") {
                    rest = after
                        .trim_start()
                        .strip_prefix('(')
                        .map_or(after, |list| list.split_once(')').map_or("", |(_, rest)| rest));
                }
                continue;
            }
            if after.trim_start().starts_with('(') {
                // A function, or an aggregation, whose `by` may come before its argument.
                continue;
            }
            if after.trim_start().starts_with("by ") {
                continue;
            }
            let labels = match after.strip_prefix('{') {
                Some(selector) => {
                    let (selector, behind) = selector.split_once('}').ok_or("a selector has no end")?;
                    rest = behind;
                    labels_of(selector)
                }
                None => Vec::new(),
            };
            if beside.contains(&name) {
                continue;
            }
            let (metric, definition) = self.find(name).ok_or_else(|| format!("there is no metric {name}"))?;
            for label in labels {
                if !OF_SCRAPES.contains(&label.as_str()) && !definition.labels.contains(&label) {
                    return Err(format!("{metric} has no label {label}"));
                }
            }
            named.insert(metric.clone());
        }
        Ok(named)
    }

    fn find(&self, name: &str) -> Option<(&String, &Metric)> {
        self.metrics.get_key_value(name).or_else(|| {
            let suffixes = ["_bucket", "_sum", "_count"];
            let stem = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix))?;
            self.metrics.get_key_value(stem).filter(|(_, metric)| metric.is_histogram)
        })
    }
}

/// The labels of a selector.
fn labels_of(selector: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut rest = selector;
    while let Some((label, after)) = rest.split_once('=') {
        labels.push(label.trim_matches([' ', ',', '!']).to_owned());
        let after = after.trim_start_matches('~');
        let end = after[1..].find('"').map_or(after.len(), |end| end + 2);
        rest = &after[end..];
    }
    labels
}

#[test]
fn an_expression_may_name_only_what_exists() {
    let catalogue = read();
    let good = "histogram_quantile(0.95, sum by (le, model) (rate(kgfleet_worker_dialogue_duration_seconds_bucket{model=~\"$model\"}[$__rate_interval]))) and on (run) max(kgfleet_runs) > 0";
    let named = catalogue.check(good, &[]).unwrap();
    assert_eq!(
        named.into_iter().collect::<Vec<_>>(),
        ["kgfleet_runs", "kgfleet_worker_dialogue_duration_seconds"]
    );
    for (bad, words) in [
        ("sum(rate(kgfleet_dialogs_total[5m]))", "no metric kgfleet_dialogs_total"),
        ("kgfleet_workers_bucket", "no metric"),
        ("kgfleet_units{models=\"x\"}", "has no label models"),
        ("kgfleet_units{state=\"dead\", where!=\"x\"}", "has no label where"),
    ] {
        assert!(catalogue.check(bad, &[]).unwrap_err().contains(words), "{bad}");
    }
}
