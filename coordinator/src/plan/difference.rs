//! Differences between two configurations, as lines for people.

use domain::ModelSpec;
use domain::comparison::{self, Condition, Conditions};
use serde_json::Value;

use crate::plan::configuration::Configuration;

/// One line per value that differs: `- old` and `+ new` with its path.
pub(crate) fn between(old: &Configuration, new: &Configuration) -> Vec<String> {
    let value = |configuration: &Configuration| serde_json::to_value(configuration).unwrap_or_default();
    let mut lines = Vec::new();
    compare("", Some(&value(old)), Some(&value(new)), &mut lines);
    lines
}

/// Models in both configurations that were asked under other conditions before: old and new scores will share a column.
pub(crate) fn in_conditions(old: &Configuration, new: &Configuration) -> Vec<String> {
    let known = |label| old.models.iter().find(|model| model.label == label);
    let both = new.models.iter().filter_map(|model| Some((known(model.label.clone())?, model)));
    let changed = both.filter_map(|(before, now)| {
        let of =
            |spec: &ModelSpec| Conditions::default().with(Condition::Sampling, spec.sampling.to_string());
        let warning = comparison::differences([("before", &of(before)), ("now", &of(now))])?;
        Some(format!("model `{}`: {warning}", now.label))
    });
    changed.collect()
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, lines: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let only_right = right.keys().filter(|key| !left.contains_key(*key));
            for key in left.keys().chain(only_right) {
                compare(&below(key), left.get(key), right.get(key), lines);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                compare(&below(&index.to_string()), left.get(index), right.get(index), lines);
            }
        }
        (old, new) => {
            lines.extend(old.map(|value| format!("  - {path} = {value}")));
            lines.extend(new.map(|value| format!("  + {path} = {value}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_their_path() {
        let read = |text: &str| Configuration::parse(text, "a.yaml").unwrap();
        let old = read("name: a\niterations: 2\nmodels: [{label: m, connector: simulated}]\n");
        let new = read("name: a\niterations: 3\nmodels: [{label: m, connector: simulated, skill: 0.5}]\n");
        assert!(between(&old, &old).is_empty());
        assert_eq!(
            between(&old, &new),
            ["  - iterations = 2", "  + iterations = 3", "  + models.0.skill = 0.5"]
        );
    }

    #[test]
    fn a_model_asked_otherwise_than_before_is_named() {
        let read = |sampling: &str| {
            let model = format!("{{label: m, connector: simulated, sampling: {{{sampling}}}}}");
            Configuration::parse(&format!("name: a\nmodels: [{model}]\n"), "a.yaml").unwrap()
        };
        assert!(in_conditions(&read("top_p: 0.5"), &read("top_p: 0.5")).is_empty());
        let warnings = in_conditions(&read("temperature: 0"), &read(""));
        assert_eq!(warnings.len(), 1);
        for words in ["`m`", "sampling", "before: temperature 0", "now: the server's own"] {
            assert!(warnings[0].contains(words), "{}", warnings[0]);
        }
    }
}
