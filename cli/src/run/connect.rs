//! Models of a run on one machine that need no network: simulated models, on a simulator that it starts, and recordings.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use coordinator::configuration::{Benchmark, Connector, ModelSpec};
use domain::Ask;
use models::{ChatModel, Replay};
use stages::{StageSpec, kinds};
use vllm_sim::answers::{AnswerConfig, Skill, SkillDial};
use vllm_sim::{AnswerKey, ClassifierDial, EmbedderDial, ModelConfig, SimConfig, SimHandle, Simulator};
use worker::{Connect, ConnectError, Connected, Connectors, FoundServer};

use super::recorded::recorded_dialogues;
use crate::exit_code::{Exit, usage};
use crate::output::explain;

/// Starts a simulator on a free port of the loopback interface for the simulated models of a configuration, if there
/// are any.
pub async fn simulator(benchmark: &Benchmark, key: Arc<dyn AnswerKey>) -> anyhow::Result<Option<SimHandle>> {
    let simulated = |model: &ModelSpec| model.connector == Connector::Simulated;
    let models = simulated_models(benchmark, simulated)?;
    if models.is_empty() {
        return Ok(None);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("cannot bind the simulator")?;
    let simulator = Simulator::new(SimConfig::new(models)).map_err(Exit::usage)?.answer_key(key);
    Ok(Some(simulator.serve(listener)?))
}

/// What the simulator is told of the models of a benchmark that it is to serve.
pub fn simulated_models(
    benchmark: &Benchmark,
    serves: impl Fn(&ModelSpec) -> bool,
) -> anyhow::Result<Vec<ModelConfig>> {
    let mut asked: BTreeMap<&str, Ask> = BTreeMap::new();
    let mut models = Vec::new();
    // One model may be judge of several stages, or of itself.
    for (model, ask) in asks(benchmark).filter(|(model, _)| serves(model)) {
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

/// The models of a benchmark, each with what it is asked.
pub fn asks(benchmark: &Benchmark) -> impl Iterator<Item = (&ModelSpec, Ask)> {
    let kind = benchmark.pipeline.as_deref().and_then(kinds::find);
    let of_role = move |role: &str| {
        let stage = kind.and_then(|kind| kind.stages.iter().find(|stage| stage.judge == role));
        stage.map_or(Ask::Chat, StageSpec::asks)
    };
    let judges = benchmark.judges.iter().map(move |(role, judge)| (judge, of_role(role)));
    benchmark.models.iter().map(|model| (model, Ask::Chat)).chain(judges)
}

/// What the simulator is told of a model.
fn simulated_model(model: &ModelSpec, ask: Ask) -> ModelConfig {
    let mut config = ModelConfig::new(model.requested());
    let skill = model.skill.unwrap_or(0.6);
    config.answers = match ask {
        Ask::Chat => AnswerConfig::Skilled(Skill::overall(dial(skill))),
        Ask::Embed => {
            AnswerConfig::Embedder(EmbedderDial { unrelated: 1.0 - skill, ..EmbedderDial::default() })
        }
        Ask::Classify => AnswerConfig::Classifier(ClassifierDial {
            confusion: confusion(1.0 - skill),
            ..ClassifierDial::default()
        }),
    };
    config
}

/// How often a classifier takes one class for another: in equal parts for both of the others.
fn confusion(share: f64) -> BTreeMap<String, BTreeMap<String, f64>> {
    const CLASSES: [&str; 3] = ["contradiction", "neutral", "entailment"];
    let others = |class: &&str| {
        let others = CLASSES.into_iter().filter(|other| other != class);
        others.map(|other| (other.to_owned(), share / 2.0)).collect()
    };
    CLASSES.iter().map(|class| ((*class).to_owned(), others(class))).collect()
}

/// A dial from one number: what is not right is mostly wrong, sometimes malformed, rarely beside the point.
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

/// The connectors of a worker, plus recordings.
pub struct LocalConnect {
    network: Connectors,
    password: Option<String>,
}

impl LocalConnect {
    /// `password` decrypts encrypted recordings.
    pub fn new(password: Option<String>) -> Self {
        Self { network: Connectors::default(), password }
    }
}

impl Connect for LocalConnect {
    fn connect(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError> {
        if spec.connector != Connector::Replay || ask != Ask::Chat {
            return self.network.connect(ask, spec, server);
        }
        let recording =
            recorded_dialogues(&spec.recorded, self.password.as_deref(), &spec.label, spec.model.as_deref())
                .map_err(|error| ConnectError::Recording {
                    model: spec.label.to_string(),
                    message: explain(&error),
                })?;
        let replay: Arc<dyn ChatModel> = Arc::new(Replay::new(spec.requested(), recording.answers));
        Ok(Connected { script: Some(recording.script), ..Connected::opaque(replay) })
    }
}
