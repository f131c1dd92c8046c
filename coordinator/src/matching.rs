//! Which worker can ask which model.

use domain::exchange::{Offer, Serves, WorkerStatus};
use domain::reach::Reach;
use domain::{Connector, ModelSpec};

/// Whether who serves this can ask the model, by its keys and the addresses that it may ask. Workers that say nothing of
/// these have no named keys.
pub(crate) fn can_ask(serves: &Serves, spec: &ModelSpec, reach: Option<&Reach>) -> bool {
    let has_key = reach.map_or(spec.key.is_none(), |reach| reach.has_key_of(spec));
    match serves {
        Serves::Model(name) => {
            matches!(spec.connector, Connector::OpenaiCompatible | Connector::Simulated)
                && spec.requested() == name
                && has_key
        }
        Serves::Connector(connector) => {
            spec.connector == *connector
                && (spec.connector != Connector::OpenaiCompatible || spec.endpoint.is_some())
                && has_key
                && reach.is_none_or(|reach| reach.permits(spec, None).is_ok())
        }
    }
}

/// Whether a worker that tells this of itself can ask the model.
pub(crate) fn says_it_can(status: &WorkerStatus, spec: &ModelSpec) -> bool {
    let connector = serde_json::to_value(spec.connector).unwrap_or_default();
    let reach = status.reach.as_ref();
    status.serves.iter().any(|name| {
        can_ask(&Serves::Model(name.clone()), spec, reach)
            || (connector == name.as_str() && can_ask(&Serves::Connector(spec.connector), spec, reach))
    })
}

/// Indexes of the models that an offer means, beginning at another place for every worker: workers that serve the same
/// models then spread over them.
pub(crate) fn models_of(
    offer: &Offer,
    models: &[ModelSpec],
    reach: Option<&Reach>,
    turn: usize,
) -> Vec<usize> {
    let can = |at: &usize| can_ask(&offer.serves, &models[*at], reach);
    let mut found: Vec<usize> = (0..models.len()).filter(can).collect();
    let turn = turn % found.len().max(1);
    found.rotate_left(turn);
    found
}

#[cfg(test)]
mod tests {
    use domain::reach::{KeyReach, Place};

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
        assert!(can_ask(&named, &spec("openai-compatible", "m", None), None));
        assert!(can_ask(&named, &spec("simulated", "m", None), None));
        assert!(!can_ask(&named, &spec("openai-compatible", "n", None), None));
        assert!(!can_ask(&named, &spec("anthropic", "m", None), None));
        assert!(can_ask(&provider, &spec("anthropic", "m", None), None));
        assert!(!can_ask(&provider, &spec("gemini", "m", None), None));
        assert!(can_ask(&at_home, &spec("openai-compatible", "m", Some("http://h/v1")), None));
        assert!(!can_ask(&at_home, &spec("openai-compatible", "m", None), None));
        assert!(!can_ask(&named, &spec("replay", "m", None), None));
        let anthropic = WorkerStatus { serves: vec!["anthropic".into()], ..WorkerStatus::default() };
        assert!(says_it_can(&anthropic, &spec("anthropic", "m", None)));
        assert!(!says_it_can(&anthropic, &spec("gemini", "m", None)));
    }

    #[test]
    fn a_model_goes_to_workers_that_have_its_key_and_may_ask_its_address() {
        let provider = Serves::Connector(Connector::Anthropic);
        let mut model = spec("anthropic", "m", None);
        let key =
            |name: &str| KeyReach { name: name.into(), connector: Connector::Anthropic, places: Vec::new() };
        let with =
            |names: &[&str]| Reach { keys: names.iter().map(|name| key(name)).collect(), ..Reach::default() };
        assert!(can_ask(&provider, &model, Some(&with(&["a"]))));
        assert!(!can_ask(&provider, &model, Some(&with(&[]))), "a worker without any key");
        model.key = Some("b".into());
        assert!(can_ask(&provider, &model, Some(&with(&["a", "b"]))));
        assert!(!can_ask(&provider, &model, Some(&with(&["a"]))));
        assert!(!can_ask(&provider, &model, None), "a worker that tells of no keys has none by name");
        let elsewhere = spec("openai-compatible", "m", Some("http://h:1/v1"));
        let at_home = Serves::Connector(Connector::OpenaiCompatible);
        assert!(!can_ask(&at_home, &elsewhere, Some(&Reach::default())));
        let allowed = Reach { places: vec![Place::parse("http://h:1").unwrap()], ..Reach::default() };
        assert!(can_ask(&at_home, &elsewhere, Some(&allowed)));
    }

    #[test]
    fn workers_spread_over_the_models_that_they_all_serve() {
        let models = [spec("gemini", "a", None), spec("anthropic", "b", None), spec("gemini", "c", None)];
        let offer = Offer { serves: Serves::Connector(Connector::Gemini), room: 1 };
        assert_eq!(models_of(&offer, &models, None, 0), [0, 2]);
        assert_eq!(models_of(&offer, &models, None, 5), [2, 0]);
        let none = Offer { serves: Serves::Model("z".into()), room: 1 };
        assert!(models_of(&none, &models, None, 3).is_empty());
    }
}
