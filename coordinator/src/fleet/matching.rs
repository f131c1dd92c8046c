//! Decides which workers can ask which models: those that serve the model by name or by its connector, have its key, and may
//! contact its address. Grants, views and checks all use this rule, so that what people see is what workers get.

use std::collections::BTreeSet;

use domain::exchange::{ANY_MODEL, Offer, Serves, WorkerPhase, WorkerStatus};
use domain::model_name::is_listed_as;
use domain::reach::Reach;
use domain::text::listed;
use domain::{Connector, ModelSpec, RunId};

/// Maximum number of names in a message.
const NAMES_LISTED_MAX: usize = 5;

/// Whether a worker that serves this can ask the model, given its keys and allowed addresses.
pub(crate) fn can_ask(serves: &Serves, spec: &ModelSpec, reach: Option<&Reach>) -> bool {
    is_served(serves, spec) && has_key(spec, reach) && may_go(serves, spec, reach)
}

/// Whether the worker has the model's key. Workers that report no keys have no named ones.
fn has_key(spec: &ModelSpec, reach: Option<&Reach>) -> bool {
    reach.map_or(spec.key.is_none(), |reach| reach.has_key_of(spec))
}

/// Whether the worker may contact the model's own address.
fn may_go(serves: &Serves, spec: &ModelSpec, reach: Option<&Reach>) -> bool {
    match serves {
        Serves::Model(_) => true,
        Serves::Connector(_) => reach.is_none_or(|reach| reach.permits(spec, None).is_ok()),
    }
}

pub(crate) fn is_served(serves: &Serves, spec: &ModelSpec) -> bool {
    match serves {
        Serves::Model(name) => {
            matches!(spec.connector, Connector::OpenaiCompatible | Connector::Simulated)
                && match name.as_str() {
                    ANY_MODEL => spec.endpoint.is_none(),
                    name => is_listed_as(name, spec.requested()),
                }
        }
        Serves::Connector(connector) => {
            spec.connector == *connector
                && (spec.connector != Connector::OpenaiCompatible || spec.endpoint.is_some())
        }
    }
}

/// Whether a worker can ask a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does not serve it.
    No,
    /// It serves the model but may not ask it: it lacks the key, or the address is not allowed.
    Denied(String),
    /// It can.
    Yes,
}

/// Whether a worker with this status can ask the model. All displays and checks use this rule.
pub fn says_it_can(status: &WorkerStatus, spec: &ModelSpec) -> Fit {
    let reach = status.reach.as_ref();
    let mut fit = Fit::No;
    // Views ask this of every worker and model, and a worker may serve dozens: names that do not fit cost a comparison only.
    let may_fit = |name: &&String| {
        *name == ANY_MODEL || *name == spec.connector.as_str() || is_listed_as(name, spec.requested())
    };
    for name in status.serves.iter().filter(may_fit) {
        let named = Serves::Model(name.clone());
        let connector = (spec.connector.as_str() == name).then_some(Serves::Connector(spec.connector));
        for serves in [Some(named), connector].into_iter().flatten().filter(|serves| is_served(serves, spec))
        {
            if can_ask(&serves, spec, reach) {
                return Fit::Yes;
            }
            let why = match reach.map(|reach| reach.permits(spec, None)) {
                Some(Err(denied)) => denied.to_string(),
                _ => format!(
                    "the key `{}` is not among this worker's keys",
                    spec.key.as_deref().unwrap_or("?")
                ),
            };
            fit = Fit::Denied(why);
        }
    }
    fit
}

/// Whether the servers of a worker must serve this model.
fn expects(status: &WorkerStatus, spec: &ModelSpec) -> bool {
    status.expects.iter().any(|name| is_served(&Serves::Model(name.clone()), spec))
}

/// Whether a worker serves this model by its name, or will: servers that tell no names leave it to such a one.
pub(crate) fn names(status: &WorkerStatus, spec: &ModelSpec) -> bool {
    let named = |name: &String| name != ANY_MODEL && is_served(&Serves::Model(name.clone()), spec);
    status.serves.iter().any(named) || expects(status, spec)
}

/// Why none of some workers can ask a model. Those that a person can do least about come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// A worker waits for its server of the model to load.
    Loading,
    /// A conductor will start a server of it; what its pool does until then.
    Queued(&'static str),
    /// Those that serve it lack its key, or may not contact its address.
    Denied(String),
    /// A worker was started for it, and its server does not answer any more; what the worker says of that.
    ServerFailed(Option<String>),
    /// No server of its pool, which is named, is started any more.
    GivenUp(String),
    /// Conductors have no pool for it.
    NoPool,
    /// No worker is there for it; what they serve.
    NoWorker(String),
}

impl Unserved {
    /// The reason as metrics name it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Denied(_) => "denied",
            Self::Queued(_) => "queued",
            Self::ServerFailed(_) | Self::GivenUp(_) => "server-failed",
            Self::NoPool => "no-pool",
            Self::NoWorker(_) => "no-worker",
        }
    }

    /// Whether somebody will come by himself.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(self, Self::Loading | Self::Queued(_))
    }
}

impl std::fmt::Display for Unserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Loading => f.write_str("no worker serves it yet: a server of it is loading"),
            Self::Denied(why) => write!(f, "no worker that serves it may ask it: {why}"),
            Self::ServerFailed(Some(why)) => f.write_str(why),
            Self::ServerFailed(None) => {
                f.write_str("its server does not answer; `kgfleet fleet workers` says why")
            }
            Self::Queued(why) => write!(f, "no worker serves it yet: its pool {why}"),
            Self::GivenUp(pool) => write!(
                f,
                "its pool was given up; `kgfleet launch --status` says why, and once that is mended: kgfleet launch --retry {pool}"
            ),
            Self::NoPool => f.write_str("no worker serves it, and no pool is for it"),
            Self::NoWorker(serve) => write!(f, "no worker serves it; workers serve {serve}"),
        }
    }
}

/// Why none of these workers can ask the model; `None` if one can.
pub fn why_nobody<'a>(
    workers: impl IntoIterator<Item = &'a WorkerStatus>,
    spec: &ModelSpec,
) -> Option<Unserved> {
    let (mut denied, mut served) = (None, BTreeSet::new());
    let (mut is_loading, mut failed) = (false, None);
    for status in workers {
        match says_it_can(status, spec) {
            Fit::Yes => return None,
            Fit::Denied(why) => denied = Some(why),
            Fit::No => served.extend(status.serves.iter().map(String::as_str)),
        }
        if expects(status, spec) {
            match status.phase {
                Some(WorkerPhase::Loading) => is_loading = true,
                Some(WorkerPhase::Serving | WorkerPhase::Idle) => failed = Some(status.trouble.clone()),
                Some(WorkerPhase::Ending) | None => {}
            }
        }
    }
    Some(match (denied, failed) {
        _ if is_loading => Unserved::Loading,
        (Some(why), _) => Unserved::Denied(why),
        (None, Some(why)) => Unserved::ServerFailed(why),
        (None, None) if served.is_empty() => Unserved::NoWorker("nothing".to_owned()),
        (None, None) => Unserved::NoWorker(listed(served.iter(), NAMES_LISTED_MAX)),
    })
}

/// Indexes of the models that match an offer, starting at a different position for every worker, so that workers that
/// serve the same models spread over them.
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

/// The models of a run that may be granted for an offer: those of [`models_of`] without what the worker says it does not ask.
pub(crate) fn grantable(
    offer: &Offer,
    run: &RunId,
    models: &[ModelSpec],
    status: &WorkerStatus,
    turn: usize,
) -> Vec<usize> {
    let mut found = models_of(offer, models, status.reach.as_ref(), turn);
    found.retain(|at| {
        !status.not_asked.iter().any(|known| known.run == *run && known.model == models[*at].label)
    });
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
        assert_eq!(says_it_can(&anthropic, &spec("anthropic", "m", None)), Fit::Yes);
        assert_eq!(says_it_can(&anthropic, &spec("gemini", "m", None)), Fit::No);
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
    fn people_are_told_why_nobody_asks_a_model() {
        let (claude, other) = (spec("anthropic", "m", None), spec("gemini", "m", None));
        let status = |keys: &[&str]| {
            let key = |name: &&str| KeyReach {
                name: (*name).into(),
                connector: Connector::Anthropic,
                places: Vec::new(),
            };
            WorkerStatus {
                serves: vec!["anthropic".into()],
                reach: Some(Reach { keys: keys.iter().map(key).collect(), ..Reach::default() }),
                ..WorkerStatus::default()
            }
        };
        let (with, without) = (status(&["house"]), status(&[]));
        assert_eq!(says_it_can(&with, &claude), Fit::Yes);
        assert!(matches!(says_it_can(&without, &claude), Fit::Denied(_)));
        assert_eq!(says_it_can(&with, &other), Fit::No);
        assert_eq!(why_nobody([&without, &with], &claude), None);
        let named = ModelSpec { key: Some("spare".into()), ..claude.clone() };
        let words = why_nobody([&with], &named).unwrap().to_string();
        assert!(
            words.starts_with("no worker that serves it may ask it: ") && words.contains("`spare`"),
            "{words}"
        );
        let words =
            |statuses: &[&WorkerStatus]| why_nobody(statuses.iter().copied(), &other).unwrap().to_string();
        assert_eq!(words(&[&with]), "no worker serves it; workers serve anthropic");
        assert_eq!(words(&[]), "no worker serves it; workers serve nothing");
        let plain = spec("simulated", "anthropic", None);
        assert_eq!(says_it_can(&with, &plain), Fit::Yes, "a model may have the name of a connector");
    }

    #[test]
    fn a_model_whose_server_loads_has_its_worker() {
        let model = spec("openai-compatible", "m", None);
        let status = |phase, expects: &str| WorkerStatus {
            expects: vec![expects.into()],
            phase: Some(phase),
            ..WorkerStatus::default()
        };
        let why = |statuses: &[WorkerStatus]| why_nobody(statuses, &model).map(|why| why.word());
        let (loading, gone) = (status(WorkerPhase::Loading, "m"), status(WorkerPhase::Idle, "m"));
        assert_eq!(why(&[]), Some("no-worker"));
        assert_eq!(why(std::slice::from_ref(&loading)), Some("loading"));
        assert_eq!(why(&[status(WorkerPhase::Loading, "n")]), Some("no-worker"), "of another model");
        assert_eq!(why(std::slice::from_ref(&gone)), Some("server-failed"));
        let silent = "http://a does not answer any more: refused";
        let told = WorkerStatus { trouble: Some(silent.to_owned()), ..gone.clone() };
        assert_eq!(why_nobody([&told], &model).unwrap().to_string(), silent);
        assert_eq!(why(&[status(WorkerPhase::Ending, "m")]), Some("no-worker"));
        assert_eq!(why(&[gone, loading.clone()]), Some("loading"), "the other one comes");
        let serving = WorkerStatus { serves: vec!["m".into()], ..status(WorkerPhase::Serving, "m") };
        assert_eq!(why(&[loading, serving]), None);
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
