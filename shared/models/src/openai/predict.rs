//! The `/predict` of Hugging Face's text-embeddings-inference: classifies pairs of texts, which the server joins itself as the
//! model's tokenizer does. Written from its public source and interface description, and tried against stand-ins only.

use std::collections::BTreeSet;

use domain::{FailureCause, RetryAdvice, TimeLimits, Usage};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::OpenAiConfig;
use super::api::{Api, only};
use super::classify::is_distribution;
use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::classify::{Class, Classification, texts};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};

/// A classifier behind text-embeddings-inference. `/predict` is below the server's address, and beside `/v1`.
#[derive(Debug)]
pub struct TeiClassifier {
    api: Api,
    predict: Route,
    time_limits: TimeLimits,
    labels: BTreeSet<String>,
}

impl TeiClassifier {
    /// A connector that shares the connections of `http`. The server has one model; its name is for records. A server that returns
    /// other classes than those of the configuration is an error. Where there are none, it may return any.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: &OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(config, http)?;
        let spec = &config.spec;
        let (labels, time_limits) = (spec.request.labels.iter().cloned().collect(), spec.time_limits);
        Ok(Self { predict: api.route_beside("predict"), api, time_limits, labels })
    }

    /// The classes of the pair of a request, in one attempt.
    ///
    /// # Errors
    /// As those of [`VllmClassifier::classify`](super::VllmClassifier::classify).
    pub async fn classify(&self, request: &ChatRequest) -> Result<Classification, CallError> {
        let (now, limits) = (Instant::now(), self.time_limits);
        let clock = CallClock::of_model(now, limits, &request.key.model, request.deadline, false);
        let inputs = [texts(request)?];
        let question = Question { inputs: &inputs, truncate: false, raw_scores: false };
        let predictions: Vec<Vec<Prediction>> =
            self.api.ask(&self.predict, &question, &clock).await.map_err(|error| match error.status {
                // Of a pair that is longer than the model reads.
                Some(413) => {
                    CallError { cause: FailureCause::ContextExceeded, retry: RetryAdvice::No, ..error }
                }
                _ => error,
            })?;
        let mut of_pair = only(predictions)?;
        for prediction in &mut of_pair {
            prediction.label = self.api.scrub(std::mem::take(&mut prediction.label));
        }
        self.read(of_pair)
    }

    fn read(&self, predictions: Vec<Prediction>) -> Result<Classification, CallError> {
        let scores: Vec<f64> = predictions.iter().map(|prediction| prediction.score).collect();
        if !is_distribution(&scores) {
            let message = format!("{scores:?} are not the probabilities of mutually exclusive classes");
            return Err(unusable(&message));
        }
        let named: BTreeSet<&str> = predictions.iter().map(|prediction| prediction.label.as_str()).collect();
        if named.len() != predictions.len() {
            return Err(unusable("classes have the same name"));
        }
        if !self.labels.is_empty() && !named.iter().copied().eq(self.labels.iter().map(String::as_str)) {
            let message = format!("the server's classes are {named:?}, not {:?} as configured", self.labels);
            return Err(CallError::new(FailureCause::Server, RetryAdvice::No, message));
        }
        // The server sorts them by probability, so their order says nothing.
        let mut classes: Vec<Class> = predictions
            .into_iter()
            .map(|prediction| Class { label: Some(prediction.label.into()), probability: prediction.score })
            .collect();
        classes.sort_by(|a, b| a.label.cmp(&b.label));
        let likeliest = classes.iter().fold(None, |best: Option<&Class>, class| match best {
            Some(best) if best.probability >= class.probability => Some(best),
            _ => Some(class),
        });
        let best = likeliest.ok_or_else(|| unusable("the pair has no classes"))?;
        let (label, probability) = (best.label.clone().unwrap_or_default(), best.probability);
        Ok(Classification { label, probability, classes, usage: Usage::default(), reported_model: None })
    }
}

#[async_trait::async_trait]
impl ChatModel for TeiClassifier {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        Ok(self.classify(&request).await?.into())
    }

    fn identity(&self) -> &ModelIdentity {
        &self.api.identity
    }
}

/// Body of `POST /predict`. It does not ask for truncation, so that a too long pair is an error.
#[derive(Serialize)]
struct Question<'a> {
    inputs: &'a [[String; 2]],
    truncate: bool,
    raw_scores: bool,
}

/// A class of its answer.
#[derive(Deserialize)]
struct Prediction {
    label: String,
    score: f64,
}
