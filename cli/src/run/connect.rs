//! Models of a run on one machine that need no network: simulated models, on a simulator that it starts, and recordings.

use std::sync::Arc;

use anyhow::Context;
use coordinator::configuration::{Benchmark, Connector, ModelSpec};
use models::{ChatModel, Replay};
use vllm_sim::answers::{AnswerConfig, Skill, SkillDial};
use vllm_sim::{AnswerKey, ModelConfig, SimConfig, SimHandle, Simulator};
use worker::{Connect, ConnectError, Connected, Connectors, FoundServer};

use super::recorded::recorded_dialogues;
use crate::exit_code::Exit;
use crate::output::explain;

/// Starts a simulator on a free port of the loopback interface for the simulated models of a configuration, if there
/// are any.
pub async fn simulator(benchmark: &Benchmark, key: Arc<dyn AnswerKey>) -> anyhow::Result<Option<SimHandle>> {
    let simulated = benchmark.all_models().filter(|model| model.connector == Connector::Simulated);
    let mut models: Vec<ModelConfig> = simulated.map(simulated_model).collect();
    // A model may judge in several stages, and also judge itself.
    let mut served = std::collections::BTreeSet::new();
    models.retain(|model| served.insert(model.name.clone()));
    if models.is_empty() {
        return Ok(None);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("cannot bind the simulator")?;
    let simulator = Simulator::new(SimConfig::new(models)).map_err(Exit::usage)?.answer_key(key);
    Ok(Some(simulator.serve(listener)?))
}

/// The simulator's configuration of a model.
pub fn simulated_model(model: &ModelSpec) -> ModelConfig {
    let mut config = ModelConfig::new(model.requested());
    config.answers = AnswerConfig::Skilled(Skill::overall(dial(model.skill.unwrap_or(0.6))));
    config
}

/// The simulator's skill settings from one number: answers that are not right are mostly wrong, sometimes malformed, rarely
/// off topic.
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
    fn connect(&self, spec: &ModelSpec, server: Option<&FoundServer>) -> Result<Connected, ConnectError> {
        if spec.connector != Connector::Replay {
            return self.network.connect(spec, server);
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
