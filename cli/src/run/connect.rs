//! From a configuration's models to connectors, and the simulator that serves simulated ones.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use coordinator::configuration::{Benchmark, Connector, ModelSpec};
use models::{
    Anthropic, AnthropicConfig, ChatModel, Gemini, GeminiConfig, HttpClient, OpenAiCompatible, OpenAiConfig,
    Replay, Secret,
};
use vllm_sim::answers::{AnswerConfig, Skill, SkillDial};
use vllm_sim::{AnswerKey, ModelConfig, SimConfig, SimHandle, Simulator};
use worker::Script;

use super::recorded::recorded_dialogues;
use crate::exit_code::Exit;

/// Environment variables that hold keys when a configuration names none.
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const GEMINI_KEY: &str = "GEMINI_API_KEY";

/// Starts a simulator on a free port of the loopback interface for the simulated models of a configuration, if there
/// are any.
pub async fn simulator(benchmark: &Benchmark, key: Arc<dyn AnswerKey>) -> anyhow::Result<Option<SimHandle>> {
    let simulated = benchmark.models.iter().filter(|model| model.connector == Connector::Simulated);
    let models: Vec<ModelConfig> = simulated.map(simulated_model).collect();
    if models.is_empty() {
        return Ok(None);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("cannot bind the simulator")?;
    let simulator = Simulator::new(SimConfig::new(models)).map_err(Exit::usage)?.answer_key(key);
    Ok(Some(simulator.serve(listener)?))
}

fn simulated_model(model: &ModelSpec) -> ModelConfig {
    let mut config = ModelConfig::new(model.requested());
    config.answers = AnswerConfig::Skilled(Skill::overall(dial(model.skill.unwrap_or(0.6))));
    config
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

/// A connector, and what can be asked of its server before the run.
pub struct Connected {
    /// The connector.
    pub model: Arc<dyn ChatModel>,
    /// The same where it is one that lists what it serves.
    listing: Option<Arc<OpenAiCompatible>>,
    /// What a replayed model was asked.
    pub script: Option<Script>,
}

impl Connected {
    fn opaque(model: Arc<dyn ChatModel>) -> Self {
        Self { model, listing: None, script: None }
    }

    /// Makes sure that the server is there, takes the key and serves the model, before thousands of dialogues find
    /// out one by one.
    pub async fn check(&self, spec: &ModelSpec) -> anyhow::Result<()> {
        let Some(server) = &self.listing else { return Ok(()) };
        let endpoint = self.model.identity().endpoint.clone().unwrap_or_default();
        let served = match server.probe().await {
            Ok(served) => served,
            // Not every compatible server lists its models.
            Err(error) if matches!(error.status, Some(404 | 405 | 501)) => return Ok(()),
            Err(error) => bail!("model `{}`: {endpoint} does not answer as it should: {error}", spec.label),
        };
        let requested = spec.requested();
        if served.is_empty() || served.iter().any(|model| model.id == requested) {
            return Ok(());
        }
        let known: Vec<&str> = served.iter().map(|model| model.id.as_str()).take(20).collect();
        bail!(Exit::usage(anyhow::anyhow!(
            "model `{}`: {endpoint} does not serve `{requested}`; it serves: {}",
            spec.label,
            known.join(", ")
        )))
    }
}

/// The connector of a model.
pub fn connect(
    model: &ModelSpec,
    http: &HttpClient,
    simulator: Option<&SimHandle>,
    password: Option<&str>,
) -> anyhow::Result<Connected> {
    let of_model = || format!("model `{}`", model.label);
    let requested = model.requested();
    Ok(match model.connector {
        Connector::OpenaiCompatible | Connector::Simulated => {
            let endpoint = match simulator.filter(|_| model.connector == Connector::Simulated) {
                Some(simulator) => simulator.base_url(),
                None => model.endpoint.clone().with_context(of_model)?,
            };
            let mut config = OpenAiConfig::new(endpoint, requested);
            config.key = key(model, None).with_context(of_model)?;
            // The simulator is on this machine and cannot stall unnoticed; whole answers cost less.
            config.stream = model.stream.unwrap_or(model.connector != Connector::Simulated);
            let server =
                OpenAiCompatible::with_client(config, http).map_err(Exit::usage).with_context(of_model)?;
            let server = Arc::new(server);
            Connected {
                model: Arc::clone(&server) as Arc<dyn ChatModel>,
                listing: Some(server),
                script: None,
            }
        }
        Connector::Anthropic => {
            let key = key(model, Some(ANTHROPIC_KEY)).with_context(of_model)?.with_context(of_model)?;
            let mut config = AnthropicConfig::new(requested, key);
            config.endpoint = model.endpoint.clone().unwrap_or(config.endpoint);
            let model = Anthropic::with_client(config, http).map_err(Exit::usage).with_context(of_model)?;
            Connected::opaque(Arc::new(model))
        }
        Connector::Gemini => {
            let key = key(model, Some(GEMINI_KEY)).with_context(of_model)?.with_context(of_model)?;
            let mut config = GeminiConfig::new(requested, key);
            config.endpoint = model.endpoint.clone().unwrap_or(config.endpoint);
            let model = Gemini::with_client(config, http).map_err(Exit::usage).with_context(of_model)?;
            Connected::opaque(Arc::new(model))
        }
        Connector::Replay => {
            let recording =
                recorded_dialogues(&model.recorded, password, &model.label, model.model.as_deref())
                    .map_err(Exit::usage)
                    .with_context(of_model)?;
            let replay: Arc<dyn ChatModel> = Arc::new(Replay::new(requested, recording.answers));
            Connected { script: Some(recording.script), ..Connected::opaque(replay) }
        }
    })
}

/// The key that a model's configuration names, or the one of its provider's usual variable.
fn key(model: &ModelSpec, usual: Option<&str>) -> anyhow::Result<Option<Secret>> {
    let key = match (&model.key_env, &model.key_file) {
        (Some(name), _) => Secret::from_env(name),
        (None, Some(file)) => Secret::from_file(Path::new(file)),
        (None, None) => match usual {
            Some(name) => Secret::from_env(name),
            None => return Ok(None),
        },
    };
    key.map(Some).map_err(Exit::usage)
}
