//! Asks discovered servers the [canary prompts](domain::canary): when they begin to answer, when they are back after a
//! silence, and when they list another model. Providers are not asked, because each call of them is paid for.

use std::sync::Arc;
use std::time::Duration;

use domain::canary::{PROMPTS, SEED, TOKENS_MAX};
use domain::{CanaryPrint, DialogueKey, Message, Sampling};
use models::{ChatModel, ChatRequest, OpenAiCompatible, OpenAiConfig, Progress, Secret, ServedModel};
use tokio::time::Instant;

/// How long a server may take for the prompts to all its models. It gets no dialogues before they are answered.
const ANSWERS_MAX: Duration = Duration::from_secs(15);

/// Asks one server, each of its models once per load.
#[derive(Clone, Debug)]
pub struct CanaryAsker {
    /// Only these models are asked; any if empty.
    expected: Vec<String>,
    key: Option<Secret>,
    /// Those that were asked since the server was away.
    asked: Vec<ServedModel>,
}

impl CanaryAsker {
    /// `key` is the servers' bearer token.
    pub fn new(expected: Vec<String>, key: Option<Secret>) -> Self {
        Self { expected, key, asked: Vec::new() }
    }

    /// The server does not answer. What it serves when it is back may have been loaded anew.
    pub fn was_away(&mut self) {
        self.asked.clear();
    }

    /// Asks those of the listed models that were not asked yet. `None` of a model that did not answer all prompts.
    pub async fn ask(
        &mut self,
        endpoint: &str,
        listed: &[ServedModel],
    ) -> Vec<(String, Option<CanaryPrint>)> {
        self.asked.retain(|model| listed.contains(model));
        if models::openai::is_a_providers(endpoint) {
            return Vec::new();
        }
        let until = Instant::now() + ANSWERS_MAX;
        let mut told = Vec::new();
        for model in listed {
            let is_expected = self.expected.is_empty() || self.expected.contains(&model.id);
            if !is_expected || self.asked.contains(model) {
                continue;
            }
            self.asked.push(model.clone());
            let asking = answers(endpoint, &model.id, self.key.clone());
            let print = match tokio::time::timeout_at(until, asking).await {
                Ok(Ok(answers)) => CanaryPrint::of(&answers),
                Ok(Err(error)) => {
                    // Embedders and classifiers do not chat.
                    tracing::debug!(endpoint, model = model.id, error, "canary prompts are not answered");
                    None
                }
                Err(_) => {
                    let seconds = ANSWERS_MAX.as_secs();
                    tracing::info!(
                        endpoint,
                        model = model.id,
                        seconds,
                        "canary prompts were not answered in time"
                    );
                    None
                }
            };
            told.push((model.id.clone(), print));
        }
        told
    }
}

/// The answers of a model, with what it thought before each.
async fn answers(endpoint: &str, model: &str, key: Option<Secret>) -> Result<Vec<String>, String> {
    let config = OpenAiConfig { key, stream: false, ..OpenAiConfig::new(endpoint, model) };
    let server = OpenAiCompatible::new(config).map_err(|error| error.to_string())?;
    let sampling = Sampling { temperature: Some(0.0), max_tokens: Some(TOKENS_MAX), ..Sampling::default() };
    let mut answers = Vec::with_capacity(PROMPTS.len());
    // One after the other: what is computed together may come out differently.
    for (number, prompt) in (0..).zip(PROMPTS) {
        let request = ChatRequest {
            messages: Arc::from([Message::user(prompt)]),
            sampling: sampling.clone(),
            seed: Some(SEED),
            deadline: ANSWERS_MAX,
            key: DialogueKey { model: model.into(), task: "canary".into(), iteration: number },
            round: 0,
            progress: Progress::default(),
            traceparent: None,
        };
        let answer = server.complete(request).await.map_err(|error| error.to_string())?.answer;
        answers.push(format!("{}\n{}", answer.reasoning.unwrap_or_default(), answer.text));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use vllm_sim::answers::AnswerConfig;
    use vllm_sim::{EmbedderDial, ModelConfig, SimConfig, SimHandle, Simulator};

    use super::*;

    async fn server(models: &[(&str, AnswerConfig)]) -> SimHandle {
        let model = |(name, answers): &(&str, AnswerConfig)| ModelConfig {
            answers: answers.clone(),
            ..ModelConfig::new(*name)
        };
        let config = SimConfig::new(models.iter().map(model).collect());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Simulator::new(config).unwrap().serve(listener).unwrap()
    }

    fn listed(names: &[&str]) -> Vec<ServedModel> {
        let model = |name: &&str| ServedModel { id: (*name).to_owned(), root: None, max_model_len: None };
        names.iter().map(model).collect()
    }

    const PROMPTS_EACH: u64 = PROMPTS.len() as u64;

    #[tokio::test]
    async fn a_model_is_asked_once_for_each_load() {
        let (echo, garbage) = (AnswerConfig::Echo {}, AnswerConfig::Garbage { tokens: 50 });
        let server = server(&[("m", echo), ("n", garbage)]).await;
        let url = server.base_url();
        let mut asker = CanaryAsker::new(Vec::new(), None);
        let first = asker.ask(&url, &listed(&["m"])).await;
        assert!(first[0].1.is_some() && asker.ask(&url, &listed(&["m"])).await.is_empty());
        // Another model was loaded beside it.
        let more = asker.ask(&url, &listed(&["m", "n"])).await;
        assert_eq!(more.len(), 1);
        let (m, n) = (first[0].1.clone().unwrap(), more[0].1.clone().unwrap());
        assert_eq!(m.differing(&n).len(), PROMPTS.len());
        asker.was_away();
        let again = asker.ask(&url, &listed(&["m", "n"])).await;
        assert_eq!(again, [first, more].concat(), "equal servers answer alike");
        assert_eq!(server.stats().requests, 4 * PROMPTS_EACH);
        server.shutdown().await;
    }

    #[tokio::test]
    async fn only_what_is_expected_and_can_chat_is_asked_and_no_provider() {
        let embedder = AnswerConfig::Embedder(EmbedderDial::default());
        let server =
            server(&[("m", AnswerConfig::Echo {}), ("other", AnswerConfig::Echo {}), ("e", embedder)]).await;
        let mut asker = CanaryAsker::new(vec!["m".to_owned(), "e".to_owned()], None);
        let told = asker.ask(&server.base_url(), &listed(&["other", "e", "m"])).await;
        let told: Vec<(&str, bool)> = told.iter().map(|(model, print)| (&**model, print.is_some())).collect();
        assert_eq!(told, [("e", false), ("m", true)]);
        let mut asker = CanaryAsker::new(Vec::new(), None);
        assert!(asker.ask("https://api.openai.com/v1", &listed(&["gpt"])).await.is_empty());
        server.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_is_not_waited_for() {
        // It takes the connection and says nothing.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let mut asker = CanaryAsker::new(Vec::new(), None);
        let began = Instant::now();
        let told = asker.ask(&url, &listed(&["m", "n"])).await;
        assert_eq!(told, [("m".to_owned(), None), ("n".to_owned(), None)]);
        assert!(began.elapsed() < 2 * ANSWERS_MAX);
    }
}
