//! The addresses that a configuration makes this machine contact, and the keys and recordings that it reads for that.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use coordinator::configuration::{Configuration, ModelSpec};
use domain::KeyPlace;
use serde::Serialize;

/// The targets of a configuration, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Targets(BTreeSet<Target>);

/// An address with the key that is sent there, or recordings that are read. Notes of own runs contain a hash of its
/// JSON: if that changes, every earlier run becomes foreign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Target {
    /// `None`: a server that this process starts itself.
    address: Option<String>,
    key: Option<Key>,
    recorded: Vec<String>,
}

/// Where a key is stored on this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Key {
    Variable(String),
    File(String),
    Command(Vec<String>),
}

impl Target {
    /// What a model needs; `None` if it is simulated here.
    fn of(spec: &ModelSpec) -> Option<Self> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let key = spec.key_place().map(|place| match place {
            KeyPlace::Variable(name) => Key::Variable(name.to_owned()),
            KeyPlace::File(path) => Key::File(text(path)),
            KeyPlace::Command(words) => Key::Command(words.to_vec()),
        });
        let address = spec.endpoint.as_deref().or_else(|| spec.connector.own_endpoint()).map(str::to_owned);
        let needs = address.is_some() || key.is_some() || !spec.recorded.is_empty();
        needs.then(|| Self { address, key, recorded: spec.recorded.iter().map(|path| text(path)).collect() })
    }
}

/// Names may come from somebody else, so they are printed in quotes and with escapes.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, &self.recorded[..]) {
            (Some(address), _) => write!(f, "contact {address:?} ")?,
            (None, []) => f.write_str("contact the built-in simulator ")?,
            (None, _) => {}
        }
        match &self.key {
            Some(Key::Variable(name)) => write!(f, "with the key in the variable {name:?}")?,
            Some(Key::File(path)) => write!(f, "with the key in the file {path:?}")?,
            Some(Key::Command(words)) => write!(f, "with the key that the command {words:?} prints")?,
            None if self.address.is_some() => f.write_str("without a key")?,
            None => {}
        }
        let mut between = if self.address.is_some() || self.key.is_some() { "; read " } else { "read " };
        for path in &self.recorded {
            write!(f, "{between}{path:?}")?;
            between = ", ";
        }
        Ok(())
    }
}

impl Targets {
    /// The targets of the models and judges of a configuration.
    pub fn of(configuration: &Configuration) -> Self {
        Self::of_models(configuration.models.iter().chain(configuration.judges.values()))
    }

    /// The targets of these models.
    pub fn of_models<'a>(models: impl IntoIterator<Item = &'a ModelSpec>) -> Self {
        Self(models.into_iter().filter_map(Target::of).collect())
    }

    /// Whether all targets of a model are among these.
    pub fn hold(&self, spec: &ModelSpec) -> bool {
        Target::of(spec).is_none_or(|target| self.0.contains(&target))
    }

    /// Whether all of `others` are among these.
    pub fn include(&self, others: &Self) -> bool {
        self.0.is_superset(&others.0)
    }

    /// The targets of both.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether nothing outside this process is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One line per target.
impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|target| write!(f, "\n  - {target}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(models: &str) -> Targets {
        let text = format!("name: a\nmodels:\n{models}");
        Targets::of(&Configuration::parse(&text, "a.yaml").unwrap())
    }

    #[test]
    fn everything_that_leaves_the_process_is_named() {
        let named = targets(
            "  - {label: a, connector: simulated}\n\
             \x20 - {label: b, connector: openai-compatible, endpoint: 'http://h/v1'}\n\
             \x20 - {label: b2, connector: openai-compatible, endpoint: 'http://h/v1', iterations: 3}\n\
             \x20 - {label: c, connector: openai-compatible, endpoint: 'http://h/v1', key_file: /k}\n\
             \x20 - {label: d, connector: anthropic, endpoint: 'http://h'}\n\
             \x20 - {label: e, connector: gemini, key_env: X}\n\
             \x20 - {label: f, connector: replay, recorded: [/a, /b]}\n",
        );
        assert_eq!(
            named.to_string(),
            "\n  - read \"/a\", \"/b\"\
             \n  - contact \"http://h\" with the key in the variable \"ANTHROPIC_API_KEY\"\
             \n  - contact \"http://h/v1\" without a key\
             \n  - contact \"http://h/v1\" with the key in the file \"/k\"\
             \n  - contact \"https://generativelanguage.googleapis.com\" with the key in the variable \"X\""
        );
        assert!(targets("  - {label: a, connector: simulated}\n").is_empty());
    }

    #[test]
    fn a_model_is_held_with_its_address_and_its_key_together() {
        let at = |more: &str| {
            format!("  - {{label: a, connector: openai-compatible, endpoint: 'http://h/v1'{more}}}\n")
        };
        let (plain, keyed) = (targets(&at("")), targets(&at(", key_env: X")));
        let model = |more: &str| {
            let text = format!("name: a\nmodels:\n{}", at(more));
            Configuration::parse(&text, "a.yaml").unwrap().models.remove(0)
        };
        assert!(plain.hold(&model(", iterations: 7")) && !plain.hold(&model(", key_env: X")));
        assert!(!keyed.hold(&model("")) && !keyed.hold(&model(", key_env: Y")));
        let both = plain.clone().and(keyed.clone());
        assert!(both.include(&plain) && both.include(&keyed) && !plain.include(&both));
        let judge = "pipeline: judged-facts\njudges:\n  grader: {label: g, connector: anthropic}\n  \
                     reviewer: {label: r, connector: simulated}\n";
        let judged = targets(&format!("  - {{label: a, connector: simulated}}\n{judge}"));
        assert!(judged.to_string().contains("https://api.anthropic.com"), "{judged}");
    }

    #[test]
    fn a_strangers_name_cannot_say_something_else_on_the_terminal() {
        let named = targets(
            "  - {label: a, connector: openai-compatible, endpoint: \"http://h\\n  - nothing\\u001b[2K\\u202e\"}\n",
        );
        let shown = named.to_string();
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(!shown.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{shown:?}");
    }
}
