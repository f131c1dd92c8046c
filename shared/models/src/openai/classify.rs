//! vLLM's `/classify`: classifies pairs of texts.

use std::sync::{Arc, Mutex, PoisonError};

use domain::{FailureCause, RetryAdvice};
use futures::future::try_join;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::OpenAiConfig;
use super::api::{Api, only};
use super::convert;
use super::join::{TokenFrame, TokenList, TokenizeText};
use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::classify::{Class, Classification, texts};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};

/// Tolerance for the sum of probabilities, which should be 1: models compute them in half precision.
const SUM_TOLERANCE: f64 = 0.02;

/// A classifier behind vLLM. `/classify` and `/tokenize` are beside `/v1`.
#[derive(Debug)]
pub struct VllmClassifier {
    config: OpenAiConfig,
    api: Api,
    classify: Route,
    tokenize: Route,
    /// Set by the first pair.
    tokenizer: OnceCell<Tokenizer>,
    labels: Mutex<Labels>,
}

/// What the server reports about the model's tokenizer.
#[derive(Clone, Debug)]
struct Tokenizer {
    frame: TokenFrame,
    context_tokens: Option<u32>,
}

impl VllmClassifier {
    /// A connector that shares the connections of `http`. The classes of the configuration are in the order of the model's
    /// `id2label`: a server that returns others is an error. Where there are none, they are learnt from the server's answers.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(&config, http)?;
        Ok(Self {
            classify: api.route_beside("classify"),
            tokenize: api.route_beside("tokenize"),
            api,
            tokenizer: OnceCell::new(),
            labels: Mutex::new(Labels::configured(&config.spec.request.labels)),
            config,
        })
    }

    /// The classes of the pair of a request, in one attempt.
    ///
    /// # Errors
    /// Any reason why there is no answer, and replies without valid classes. A pair beyond the model's context is
    /// [`FailureCause::ContextExceeded`].
    pub async fn classify(&self, request: &ChatRequest) -> Result<Classification, CallError> {
        let pair = texts(request)?;
        let limits = self.config.spec.time_limits;
        let clock = CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
        let input = [self.joined(&pair, &clock).await?];
        let model = self.config.spec.requested();
        let question = Question { model, input: &input, add_special_tokens: false };
        let mut reply: WireReply = self.api.ask(&self.classify, &question, &clock).await?;
        let labels = reply.data.iter_mut().map(|item| &mut item.label);
        for text in labels.chain([&mut reply.model]) {
            *text = text.take().map(|text| self.api.scrub(text));
        }
        let usage = reply.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default();
        self.api.check_answerer(reply.model.as_deref(), usage, &clock).await?;
        // The lock is never held across an await.
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        reply.read(&mut labels).map_err(|error| error.in_vain(usage))
    }

    /// Converts the pair to token ids.
    async fn joined(
        &self,
        [premise, hypothesis]: &[String; 2],
        clock: &CallClock,
    ) -> Result<Vec<u32>, CallError> {
        let tokenizer = self.tokenizer.get_or_try_init(|| self.learn_tokenizer(clock)).await?;
        let both =
            try_join(self.tokens(premise, false, clock), self.tokens(hypothesis, false, clock)).await?;
        let ids = tokenizer.frame.join(self.config.spec.request.pair_layout, &both.0.tokens, &both.1.tokens);
        match tokenizer.context_tokens {
            Some(context) if ids.len() > context as usize => {
                let message = format!("the pair has {} tokens, the model's context {context}", ids.len());
                Err(CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message))
            }
            _ => Ok(ids),
        }
    }

    async fn learn_tokenizer(&self, clock: &CallClock) -> Result<Tokenizer, CallError> {
        let nothing = self.tokens("", true, clock).await?;
        let frame = TokenFrame::of_nothing(nothing.tokens).ok_or_else(|| {
            let message =
                format!("the tokenizer of `{}` puts no separator after a text", self.config.spec.requested());
            CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
        })?;
        Ok(Tokenizer { frame, context_tokens: nothing.max_model_len })
    }

    async fn tokens(&self, text: &str, framed: bool, clock: &CallClock) -> Result<TokenList, CallError> {
        let model = self.config.spec.requested();
        let question = TokenizeText { model, prompt: text, add_special_tokens: framed };
        self.api.ask(&self.tokenize, &question, clock).await.map_err(|error| error.about("/tokenize"))
    }
}

#[async_trait::async_trait]
impl ChatModel for VllmClassifier {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        Ok(self.classify(&request).await?.into())
    }

    fn identity(&self) -> &ModelIdentity {
        &self.api.identity
    }
}

/// Body of `POST /classify`. It does not ask for truncation, so that a too long pair is an error.
#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [Vec<u32>; 1],
    /// The ids already include them.
    add_special_tokens: bool,
}

/// Its answer.
#[derive(Deserialize)]
struct WireReply {
    model: Option<String>,
    data: Vec<Item>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    /// The name of the likeliest class; null if the model's configuration has no names.
    label: Option<String>,
    probs: Vec<f64>,
}

impl WireReply {
    /// The classes of the only pair.
    fn read(self, labels: &mut Labels) -> Result<Classification, CallError> {
        let item = only(self.data)?;
        let mut learnt = labels.clone();
        let (at, label) = learnt.learn(&item)?;
        *labels = learnt;
        Ok(Classification {
            label,
            probability: item.probs[at],
            classes: labels.of(&item.probs),
            usage: self.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default(),
            reported_model: self.model,
        })
    }
}

/// The model's names for its classes, in its order. The server names only the likeliest class of each pair, so names
/// become known one by one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Labels {
    names: Vec<Option<Arc<str>>>,
}

impl Labels {
    fn configured(labels: &[String]) -> Self {
        Self { names: labels.iter().map(|label| Some(Arc::from(label.as_str()))).collect() }
    }

    /// Checks one pair's classes; returns the likeliest one with its name.
    fn learn(&mut self, item: &Item) -> Result<(usize, Arc<str>), CallError> {
        let probs = &item.probs;
        if !is_distribution(probs) {
            let message = format!("{probs:?} are not the probabilities of mutually exclusive classes");
            return Err(unusable(&message));
        }
        if self.names.is_empty() {
            self.names = vec![None; probs.len()];
        }
        if probs.len() != self.names.len() {
            return Err(disagrees(&format!("{} classes, not {}", probs.len(), self.names.len())));
        }
        // The first of equals, as in vLLM. The sum is about 1, so there is one.
        let mut likeliest = 0;
        for (at, prob) in probs.iter().enumerate() {
            if *prob > probs[likeliest] {
                likeliest = at;
            }
        }
        let known = &mut self.names[likeliest];
        match (known.clone(), item.label.as_deref()) {
            (Some(known), None) => Ok((likeliest, known)),
            (Some(known), Some(said)) if *known == *said => Ok((likeliest, known)),
            (Some(known), Some(said)) => {
                Err(disagrees(&format!("class {likeliest} is `{said}`, not `{known}`")))
            }
            (None, Some(said)) => {
                let said: Arc<str> = said.into();
                *known = Some(Arc::clone(&said));
                Ok((likeliest, said))
            }
            (None, None) => {
                let message =
                    format!("the server does not name class {likeliest}: configure the model's labels");
                Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
            }
        }
    }

    fn of(&self, probs: &[f64]) -> Vec<Class> {
        let class = |(label, probability): (&Option<Arc<str>>, &f64)| Class {
            label: label.clone(),
            probability: *probability,
        };
        self.names.iter().zip(probs).map(class).collect()
    }
}

/// Whether numbers are the probabilities of mutually exclusive classes.
pub(super) fn is_distribution(probs: &[f64]) -> bool {
    let sum: f64 = probs.iter().sum();
    probs.iter().all(|prob| (0.0..=1.0).contains(prob)) && (sum - 1.0).abs() <= SUM_TOLERANCE
}

/// The error for a server that has switched to another model. A retry does not help.
fn disagrees(message: &str) -> CallError {
    let message =
        format!("the classes of the server's model differ from the configured or earlier ones: {message}");
    CallError::new(FailureCause::Server, RetryAdvice::No, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::openai::api::read;

    const NLI: [&str; 3] = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"];

    fn parse(body: &Value, labels: &mut Labels) -> Result<Classification, CallError> {
        read::<WireReply>(body.to_string().as_bytes(), None)?.read(labels)
    }

    fn body(label: impl Into<Value>, probs: &[f64]) -> Value {
        let item = json!({"index": 0, "label": label.into(), "probs": probs, "num_classes": probs.len()});
        json!({"id": "classify-1", "object": "list", "model": "nli", "data": [item],
               "usage": {"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0}})
    }

    #[test]
    fn labels_become_known_one_by_one_and_stay() {
        let mut labels = Labels::default();
        let known = |found: &Classification| -> Vec<Option<String>> {
            found.classes.iter().map(|class| class.label.as_deref().map(str::to_owned)).collect()
        };
        let first = parse(&body("ENTAILMENT", &[0.1, 0.2, 0.7]), &mut labels).unwrap();
        assert_eq!(known(&first), [None, None, Some("ENTAILMENT".to_owned())]);
        assert_eq!((&*first.label, first.probability), ("ENTAILMENT", 0.7));
        let second = parse(&body("NEUTRAL", &[0.1, 0.8, 0.1]), &mut labels).unwrap();
        assert_eq!(known(&second), [None, Some("NEUTRAL".to_owned()), Some("ENTAILMENT".to_owned())]);
        assert_eq!((second.usage.prompt_tokens, second.usage.completion_tokens), (Some(7), None));
        // Another model under the same name: neither names nor counts agree, and nothing is learnt from it.
        let before = labels.clone();
        for other in [body("entailment", &[0.1, 0.8, 0.1]), body("yes", &[0.9, 0.1])] {
            let error = parse(&other, &mut labels).unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::No));
            assert_eq!(labels, before);
        }
    }

    #[test]
    fn configured_labels_are_compared_with_the_servers() {
        let mut labels = Labels::configured(&NLI.map(str::to_owned));
        let agreed = parse(&body("NEUTRAL", &[0.2, 0.6, 0.2]), &mut labels).unwrap();
        assert!(agreed.classes.iter().all(|class| class.label.is_some()));
        // A model without names takes the configured ones, and only those.
        let unnamed = body(Value::Null, &[0.2, 0.6, 0.2]);
        assert_eq!(&*parse(&unnamed, &mut labels).unwrap().label, "NEUTRAL");
        let error = parse(&unnamed, &mut Labels::default()).unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No));
        let error = parse(&body("ENTAILMENT", &[0.6, 0.2, 0.2]), &mut labels).unwrap_err();
        assert!(error.message.contains("class 0 is `ENTAILMENT`, not `CONTRADICTION`"), "{error}");
    }

    #[test]
    fn what_is_no_choice_of_one_class_is_an_error() {
        for probs in [&[][..], &[0.9, 0.9], &[-0.1, 1.1], &[0.0, 0.0], &[3.2, -1.0, 0.4]] {
            let error = parse(&body("A", probs), &mut Labels::default()).unwrap_err();
            assert_eq!(
                (error.cause, error.retry),
                (FailureCause::Server, RetryAdvice::Transient),
                "{probs:?}"
            );
        }
        let null = json!({"data": [{"index": 0, "label": "A", "probs": [null, 1.0]}]});
        assert!(parse(&null, &mut Labels::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<WireReply>(&bytes, None).and_then(|reply| reply.read(&mut Labels::default()));
        }
    }
}
