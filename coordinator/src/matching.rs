//! Which worker can ask which model.

use std::collections::BTreeSet;

use domain::exchange::{Offer, Serves, WorkerStatus};
use domain::{Connector, ModelSpec};

/// Names that a message lists.
const NAMES_LISTED_MAX: usize = 5;

/// Whether who serves this can ask the model.
pub(crate) fn can_ask(serves: &Serves, spec: &ModelSpec) -> bool {
    match serves {
        Serves::Model(name) => {
            matches!(spec.connector, Connector::OpenaiCompatible | Connector::Simulated)
                && spec.requested() == name
        }
        Serves::Connector(connector) => {
            spec.connector == *connector
                && (spec.connector != Connector::OpenaiCompatible || spec.endpoint.is_some())
        }
    }
}

/// Whether a worker can ask a model, by what it tells people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does not serve it.
    No,
    /// It serves it and has not got its key.
    LacksKey,
    /// It serves it; whether it has got its key it will know when it first needs it.
    KeyUntried,
    /// It can.
    Yes,
}

impl Fit {
    /// Whether nothing is known that keeps the worker from asking.
    pub fn may_ask(self) -> bool {
        matches!(self, Self::KeyUntried | Self::Yes)
    }
}

/// Whether a worker that tells people this of itself can ask the model. The one rule for all who show or check it.
pub fn says_it_can(status: &WorkerStatus, spec: &ModelSpec) -> Fit {
    let serves = status.serves.iter().any(|name| {
        can_ask(&Serves::Model(name.clone()), spec)
            || (spec.connector.as_str() == name && can_ask(&Serves::Connector(spec.connector), spec))
    });
    match spec.key_place().map(|place| place.to_string()) {
        _ if !serves => Fit::No,
        Some(key) if status.keys_missing.contains(&key) => Fit::LacksKey,
        Some(key) if !status.keys_found.contains(&key) => Fit::KeyUntried,
        _ => Fit::Yes,
    }
}

/// Why none of these workers can ask the model; `None` where one may.
pub fn why_nobody<'a>(
    workers: impl IntoIterator<Item = &'a WorkerStatus>,
    spec: &ModelSpec,
) -> Option<String> {
    let (mut lack_the_key, mut served) = (false, BTreeSet::new());
    for status in workers {
        match says_it_can(status, spec) {
            Fit::Yes | Fit::KeyUntried => return None,
            Fit::LacksKey => lack_the_key = true,
            Fit::No => served.extend(status.serves.iter().map(String::as_str)),
        }
    }
    Some(match spec.key_place().filter(|_| lack_the_key) {
        Some(key) => format!("no worker that serves it has its key `{key}`"),
        None => format!("no worker serves it; workers serve {}", listed(&served)),
    })
}

/// Names for a message, not all of too many.
fn listed(names: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = names.iter().copied().take(NAMES_LISTED_MAX).collect();
    match names.len().saturating_sub(shown.len()) {
        0 if shown.is_empty() => "nothing".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Indexes of the models that an offer means, beginning at another place for every worker: workers that serve the same
/// models then spread over them.
pub(crate) fn models_of(offer: &Offer, models: &[ModelSpec], turn: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (0..models.len()).filter(|at| can_ask(&offer.serves, &models[*at])).collect();
    let turn = turn % found.len().max(1);
    found.rotate_left(turn);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(connector: &str, model: &str, endpoint: Option<&str>) -> ModelSpec {
        serde_json::from_value(serde_json::json!({
            "label": "label", "connector": connector, "model": model, "endpoint": endpoint,
        }))
        .unwrap()
    }

    #[test]
    fn models_go_by_their_name_and_providers_by_their_connector() {
        let (named, provider) = (Serves::Model("m".into()), Serves::Connector(Connector::Anthropic));
        let at_home = Serves::Connector(Connector::OpenaiCompatible);
        assert!(can_ask(&named, &spec("openai-compatible", "m", None)));
        assert!(can_ask(&named, &spec("simulated", "m", None)));
        assert!(!can_ask(&named, &spec("openai-compatible", "n", None)));
        assert!(!can_ask(&named, &spec("anthropic", "m", None)));
        assert!(can_ask(&provider, &spec("anthropic", "m", None)));
        assert!(!can_ask(&provider, &spec("gemini", "m", None)));
        assert!(can_ask(&at_home, &spec("openai-compatible", "m", Some("http://h/v1"))));
        assert!(!can_ask(&at_home, &spec("openai-compatible", "m", None)));
        assert!(!can_ask(&named, &spec("replay", "m", None)));
    }

    #[test]
    fn a_worker_without_the_key_of_a_model_cannot_ask_it() {
        let (claude, other) = (spec("anthropic", "m", None), spec("gemini", "m", None));
        let status = |found: &[&str], missing: &[&str]| WorkerStatus {
            serves: vec!["anthropic".into()],
            keys_found: found.iter().map(|&name| name.to_owned()).collect(),
            keys_missing: missing.iter().map(|&name| name.to_owned()).collect(),
            ..WorkerStatus::default()
        };
        let (with, without) = (status(&["ANTHROPIC_API_KEY"], &[]), status(&[], &["ANTHROPIC_API_KEY"]));
        assert_eq!(says_it_can(&with, &claude), Fit::Yes);
        assert_eq!(says_it_can(&without, &claude), Fit::LacksKey);
        assert_eq!(says_it_can(&status(&[], &[]), &claude), Fit::KeyUntried);
        assert_eq!(says_it_can(&with, &other), Fit::No);
        assert_eq!(why_nobody([&without, &with], &claude), None);
        assert_eq!(
            why_nobody([&without], &claude).unwrap(),
            "no worker that serves it has its key `ANTHROPIC_API_KEY`"
        );
        assert_eq!(why_nobody([&with], &other).unwrap(), "no worker serves it; workers serve anthropic");
        assert_eq!(why_nobody([], &other).unwrap(), "no worker serves it; workers serve nothing");
        let plain = spec("simulated", "anthropic", None);
        assert_eq!(says_it_can(&with, &plain), Fit::Yes, "a model may have the name of a connector");
    }

    #[test]
    fn workers_spread_over_the_models_that_they_all_serve() {
        let models = [spec("gemini", "a", None), spec("anthropic", "b", None), spec("gemini", "c", None)];
        let offer = Offer { serves: Serves::Connector(Connector::Gemini), room: 1 };
        assert_eq!(models_of(&offer, &models, 0), [0, 2]);
        assert_eq!(models_of(&offer, &models, 5), [2, 0]);
        let none = Offer { serves: Serves::Model("z".into()), room: 1 };
        assert!(models_of(&none, &models, 3).is_empty());
    }
}
