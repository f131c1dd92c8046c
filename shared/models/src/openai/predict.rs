//! The `/predict` of Hugging Face's text-embeddings-inference: classifies pairs of texts, which the server joins itself as the
//! model's tokenizer does. Written from its public source and interface description, and tried against stand-ins only.

use std::collections::BTreeSet;

use domain::{FailureCause, RetryAdvice, TimeLimits, Usage};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ApiSettings;
use super::api::Api;
use super::classify::is_distribution;
use crate::chat::ModelIdentity;
use crate::classify::{Class, Classification, ClassifyModel, ClassifyReply, ClassifyRequest};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};
use crate::secret::Secret;

/// Configuration of a classifier.
#[derive(Clone, Debug)]
pub struct PredictConfig {
    /// Address of the server, such as `http://127.0.0.1:8080`; `/predict` is below it, and beside `/v1`.
    pub endpoint: String,
    /// The model's name, for records: the server has one model.
    pub model: String,
    /// Sent as bearer token.
    pub key: Option<Secret>,
    /// The classes. A server that returns others is an error. Default: whatever it returns.
    pub labels: Vec<String>,
    pub settings: ApiSettings,
}

impl PredictConfig {
    /// Defaults: no key, any classes.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: model.into(),
            key: None,
            labels: Vec::new(),
            settings: ApiSettings::default(),
        }
    }
}

/// A classifier behind text-embeddings-inference.
#[derive(Debug)]
pub struct TeiClassifier {
    api: Api,
    predict: Route,
    time_limits: TimeLimits,
    labels: BTreeSet<String>,
}

impl TeiClassifier {
    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: PredictConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(&config.endpoint, &config.model, config.key, &config.settings, http)?;
        let labels = config.labels.into_iter().collect();
        let time_limits = config.settings.time_limits;
        Ok(Self { predict: api.route_beside("predict"), api, time_limits, labels })
    }

    /// The classes of one pair.
    fn read(&self, at: usize, predictions: Vec<Prediction>) -> Result<Classification, CallError> {
        let scores: Vec<f64> = predictions.iter().map(|prediction| prediction.score).collect();
        if !is_distribution(&scores) {
            let message =
                format!("pair {at}: {scores:?} are not the probabilities of mutually exclusive classes");
            return Err(unusable(&message));
        }
        let named: BTreeSet<&str> = predictions.iter().map(|prediction| prediction.label.as_str()).collect();
        if named.len() != predictions.len() {
            return Err(unusable(&format!("pair {at}: classes have the same name")));
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
        let best = likeliest.ok_or_else(|| unusable(&format!("pair {at} has no classes")))?;
        let label = best.label.clone().unwrap_or_default();
        Ok(Classification { label, probability: best.probability, classes })
    }
}

#[async_trait::async_trait]
impl ClassifyModel for TeiClassifier {
    async fn classify(&self, request: ClassifyRequest) -> Result<ClassifyReply, CallError> {
        request.check()?;
        let limits = self.time_limits;
        let clock = CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
        let inputs: Vec<[&str; 2]> =
            request.pairs.iter().map(|pair| [pair.premise.as_ref(), pair.hypothesis.as_ref()]).collect();
        let question = Question { inputs: &inputs, truncate: false, raw_scores: false };
        let mut predictions: Vec<Vec<Prediction>> =
            self.api.ask(&self.predict, &question, &clock).await.map_err(|error| match error.status {
                // Of a pair that is longer than the model reads.
                Some(413) => {
                    CallError { cause: FailureCause::ContextExceeded, retry: RetryAdvice::No, ..error }
                }
                _ => error,
            })?;
        for prediction in predictions.iter_mut().flatten() {
            prediction.label = self.api.scrub(std::mem::take(&mut prediction.label));
        }
        if predictions.len() != inputs.len() {
            return Err(unusable(&format!("the answer has {} of {} pairs", predictions.len(), inputs.len())));
        }
        let classifications = predictions
            .into_iter()
            .enumerate()
            .map(|(at, of_pair)| self.read(at, of_pair))
            .collect::<Result<_, _>>()?;
        Ok(ClassifyReply { classifications, usage: Usage::default(), reported_model: None })
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
