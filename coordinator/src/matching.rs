//! Which worker can ask which model.

use domain::exchange::{Offer, Serves};
use domain::{Connector, ModelSpec};

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

/// Whether a worker that tells people that it serves these names can ask the model.
pub(crate) fn says_it_can(serves: &[String], spec: &ModelSpec) -> bool {
    serves.iter().any(|name| {
        can_ask(&Serves::Model(name.clone()), spec)
            || (spec.connector.as_str() == name && can_ask(&Serves::Connector(spec.connector), spec))
    })
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
        assert!(says_it_can(&["anthropic".into()], &spec("anthropic", "m", None)));
        assert!(!says_it_can(&["anthropic".into()], &spec("gemini", "m", None)));
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
