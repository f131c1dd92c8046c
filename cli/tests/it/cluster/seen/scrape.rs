//! Whether a process exports the metrics of its catalogue.

use std::collections::{BTreeMap, BTreeSet};

use service_kit::metrics::MetricDefinition;

use super::prometheus::get;

/// A page of metrics: help, kind and labels of each metric.
#[derive(Default)]
struct Told<'a> {
    help: BTreeMap<&'a str, &'a str>,
    kind: BTreeMap<&'a str, &'a str>,
    labels: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// Checks a scrape of a process against the table of its metrics; the names of those that it told.
#[track_caller]
pub fn check(port: u16, table: &[MetricDefinition]) -> BTreeSet<&'static str> {
    let page = get(port, "/metrics");
    let mut told = Told::default();
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            told.help.insert(name, help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(told.kind.insert(name, kind).is_none(), "{name} stands twice in the page");
        } else {
            let (series, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let stem = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let name = stem.filter(|stem| told.kind.get(stem) == Some(&"histogram")).unwrap_or(name);
            let names = labels.split("=\"").filter_map(|part| part.rsplit(['"', ',']).next());
            let names = names.filter(|name| !name.is_empty() && *name != "le" && !name.ends_with('}'));
            told.labels.entry(name).or_default().extend(names);
        }
    }
    for (name, kind) in &told.kind {
        let definition = table.iter().find(|definition| definition.name == *name);
        let definition = definition.unwrap_or_else(|| panic!("{name} is told and not in the catalogue"));
        assert_eq!(*kind, definition.kind.as_str(), "{name}");
        assert_eq!(told.help.get(name), Some(&definition.help), "{name}");
        let expected: BTreeSet<&str> = definition.labels.iter().copied().collect();
        assert_eq!(told.labels.get(name).cloned().unwrap_or_default(), expected, "labels of {name}");
    }
    assert_eq!(told.labels.keys().collect::<Vec<_>>(), told.kind.keys().collect::<Vec<_>>());
    table.iter().map(|definition| definition.name).filter(|name| told.kind.contains_key(name)).collect()
}
