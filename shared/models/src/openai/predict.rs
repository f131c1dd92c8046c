//! The `/predict` of Hugging Face's text-embeddings-inference: classifies pairs of texts, which the server joins itself as the
//! model's tokenizer does. Written from its public source and interface description, and tried against stand-ins only.

use std::collections::BTreeSet;

use domain::{FailureCause, RetryAdvice, TimeLimits, Usage};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::OpenAiConfig;
use super::api::{Api, only};
use super::classify::is_distribution;
use crate::chat::ModelIdentity;
use crate::classify::{Class, Classification, ClassifyModel, ClassifyRequest};
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
    /// A connector that shares the connections of `http`. The server has one model; its name is for records. `labels` are the
    /// classes: a server that returns others is an error. Where there are none, it may return any.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: &OpenAiConfig, labels: &[String], http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(config, http)?;
        let (labels, time_limits) = (labels.iter().cloned().collect(), config.settings.time_limits);
        Ok(Self { predict: api.route_beside("predict"), api, time_limits, labels })
    }

    /// The classes of the pair.
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
impl ClassifyModel for TeiClassifier {
    async fn classify(&self, request: ClassifyRequest) -> Result<Classification, CallError> {
        request.check()?;
        let (now, limits) = (Instant::now(), self.time_limits);
        let clock = CallClock::of_model(now, limits, &request.key.model, request.deadline, false);
        let inputs = [[request.premise.as_str(), request.hypothesis.as_str()]];
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

    fn identity(&self) -> &ModelIdentity {
        self.api.identity()
    }
}

/// Body of `POST /predict`. It does not ask for truncation, so that a too long pair is an error.
#[derive(Serialize)]
struct Question<'a> {
    inputs: &'a [[&'a str; 2]],
    truncate: bool,
    raw_scores: bool,
}

/// A class of its answer.
#[derive(Deserialize)]
struct Prediction {
    label: String,
    score: f64,
}
