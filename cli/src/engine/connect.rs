//! Models of a run on one machine that need no network: simulated models, on a simulator that it starts, and recordings.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use benchmarks::{Stage, kinds};
use coordinator::configuration::{Configuration, Connector, ModelSpec};
use domain::Ask;
use models::{ChatModel, Replay};
use vllm_sim::{AnswerConfig, AnswerKey, ModelConfig, SimConfig, SimHandle, Simulator, SkillDial};
use worker::{Connect, ConnectError, Connected, Connectors, FoundServer};

use crate::engine::recordings::recorded_dialogues;
use crate::kit::exit_code::{Exit, usage};
use crate::kit::output::{explain, printable};
use crate::place::targets::Targets;

/// Starts a simulator on a free port of the loopback interface for the simulated models of a configuration, if there
/// are any.
pub async fn simulator(
    configuration: &Configuration,
    key: Arc<dyn AnswerKey>,
) -> anyhow::Result<Option<SimHandle>> {
    let simulated = |model: &ModelSpec| model.connector == Connector::Simulated;
    let models = simulated_models(configuration, simulated)?;
    if models.is_empty() {
        return Ok(None);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("cannot bind the simulator")?;
    let simulator = Simulator::new(SimConfig::new(models)).map_err(Exit::usage)?.answer_key(key);
    Ok(Some(simulator.serve(listener)?))
}

/// The simulator's settings for the models of a benchmark that it serves.
pub fn simulated_models(
    configuration: &Configuration,
    serves: impl Fn(&ModelSpec) -> bool,
) -> anyhow::Result<Vec<ModelConfig>> {
    let mut asked: BTreeMap<&str, Ask> = BTreeMap::new();
    let mut models = Vec::new();
    // One model may be judge of several stages, or of itself.
    for (model, ask) in asks(configuration).filter(|(model, _)| serves(model)) {
        match asked.insert(model.requested(), ask) {
            None => models.push(simulated_model(model, ask)),
            Some(before) if before == ask => {}
            Some(before) => {
                return Err(usage!(
                    "`{}` cannot be asked to {before} and to {ask}: a simulated model is of one kind",
                    model.requested()
                ));
            }
        }
    }
    Ok(models)
}

/// The models of a benchmark, each with its kind of question.
pub fn asks(configuration: &Configuration) -> impl Iterator<Item = (&ModelSpec, Ask)> {
    let kind = kinds::find(configuration.pipeline.as_deref());
    let of_role = move |role: &str| {
        let stage = kind.and_then(|kind| kind.stages().iter().find(|stage| stage.judge == role));
        stage.map_or(Ask::Chat, Stage::asks)
    };
    let judges = configuration.judges.iter().map(move |(role, judge)| (judge, of_role(role)));
    configuration.models.iter().map(|model| (model, Ask::Chat)).chain(judges)
}

/// The simulator's settings for a model.
fn simulated_model(model: &ModelSpec, ask: Ask) -> ModelConfig {
    let mut config = ModelConfig::new(model.requested());
    let skill = model.skill.unwrap_or(0.6);
    config.answers = match ask {
        Ask::Chat => AnswerConfig::Skilled { overall: dial(skill), distinct: false },
        Ask::Embed => AnswerConfig::Embedder { unrelated: 1.0 - skill },
        Ask::Classify => AnswerConfig::Classifier { mistaken: 1.0 - skill },
    };
    config
}

/// The shares of kinds of answers for a skill. Of the answers that are not right, most are wrong, some malformed, and a
/// few have nothing to do with the question.
pub fn dial(skill: f64) -> SkillDial {
    let wrong = 1.0 - skill;
    SkillDial {
        right: skill,
        wrong: wrong * 0.5,
        malformed: wrong * 0.375,
        rambling: wrong * 0.125,
        fix: skill,
    }
}

/// The connectors of a worker, plus recordings. They contact and read only what the user agreed to, whatever the
/// manifest of a run names.
pub struct LocalConnect {
    network: Connectors,
    password: Option<String>,
    agreed: Targets,
}

impl LocalConnect {
    /// `password` decrypts encrypted recordings.
    pub fn new(password: Option<String>, agreed: Targets) -> Self {
        Self { network: Connectors::default(), password, agreed }
    }
}

impl Connect for LocalConnect {
    fn connect(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError> {
        if !self.agreed.hold(spec) {
            let needs = printable(&Targets::of_models([spec]).to_string());
            let why = format!(
                "its run would have this machine{needs}\nwhich was neither configured nor trusted here"
            );
            return Err(ConnectError::new(spec, why));
        }
        if spec.connector != Connector::Replay || ask != Ask::Chat {
            return self.network.connect(ask, spec, server);
        }
        let recording =
            recorded_dialogues(&spec.recorded, self.password.as_deref(), &spec.label, spec.model.as_deref())
                .map_err(|error| ConnectError::new(spec, explain(&error)))?;
        let replay: Arc<dyn ChatModel> = Arc::new(Replay::new(spec.requested(), recording.answers));
        Ok(Connected { script: Some(recording.script), ..Connected::opaque(replay) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_agreed_to_is_not_connected_whatever_a_manifest_says() {
        let model = |endpoint: &str, key: &str| {
            let mut spec = ModelSpec::new("m", Connector::OpenaiCompatible);
            spec.endpoint = Some(endpoint.to_owned());
            spec.key_file = (!key.is_empty()).then(|| key.into());
            spec
        };
        let connect = LocalConnect::new(None, Targets::of_models([&model("http://h/v1", "")]));
        let refused = |spec| match connect.connect(Ask::Chat, &spec, None) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{spec:?}"),
        };
        assert!(connect.connect(Ask::Chat, &model("http://h/v1", ""), None).is_ok());
        let other = refused(model("http://g/v1", ""));
        assert!(other.contains("`m`") && other.contains("http://g/v1"), "{other}");
        assert!(other.contains("neither configured nor trusted"), "{other}");
        // Nor is a key read, although the address is known.
        assert!(refused(model("http://h/v1", "/no/such/file")).contains("/no/such/file"));
        let found = FoundServer { endpoint: "http://h/v1".into(), key: None, context_tokens: None };
        assert!(connect.connect(Ask::Chat, &model("http://h/v1", "/k"), Some(&found)).is_err());
    }
}
