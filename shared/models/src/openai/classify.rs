//! vLLM's `/classify`: classifies pairs of texts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{FailureCause, PairLayout, RetryAdvice};
use futures::TryFutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::ApiSettings;
use super::api::{Api, in_order};
use super::convert;
use super::join::{TokenFrame, TokenList, TokenizeText};
use super::said::WireUsage;
use super::wire::ServedModel;
use crate::chat::ModelIdentity;
use crate::classify::{Class, Classification, ClassifyModel, ClassifyReply, ClassifyRequest, TextPair};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};
use crate::secret::Secret;

/// Maximum number of texts of one request that are tokenized concurrently.
const TOKENIZED_AT_ONCE: usize = 8;

/// Tolerance for the sum of probabilities, which should be 1: models compute them in half precision.
const SUM_TOLERANCE: f64 = 0.02;

/// Configuration of a classifier.
#[derive(Clone, Debug)]
pub struct ClassifyConfig {
    /// Address of the API, such as `http://127.0.0.1:8000/v1`; `/classify` and `/tokenize` are beside `/v1`.
    pub endpoint: String,
    /// The model name to ask for.
    pub model: String,
    /// Sent as bearer token.
    pub key: Option<Secret>,
    /// How the model's tokenizer joins a pair. Default: like RoBERTa's.
    pub layout: PairLayout,
    /// The classes in the order of the model's `id2label`. A server that returns others is an error. Default: learnt
    /// from the server's answers.
    pub labels: Vec<String>,
    pub settings: ApiSettings,
}

impl ClassifyConfig {
    /// Defaults: no key, RoBERTa's layout, labels from the server's answers.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: model.into(),
            key: None,
            layout: PairLayout::default(),
            labels: Vec::new(),
            settings: ApiSettings::default(),
        }
    }
}

/// A classifier behind vLLM.
#[derive(Debug)]
pub struct VllmClassifier {
    config: ClassifyConfig,
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
    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: ClassifyConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let key = config.key.clone();
        let api = Api::new(&config.endpoint, &config.model, key, &config.settings, http)?;
        Ok(Self {
            classify: api.route_beside("classify"),
            tokenize: api.route_beside("tokenize"),
            api,
            tokenizer: OnceCell::new(),
            labels: Mutex::new(Labels::configured(&config.labels)),
            config,
        })
    }

    /// The models that the server lists.
    ///
    /// # Errors
    /// The server is unreachable, refuses, or sends something else.
    pub async fn probe(&self) -> Result<Vec<ServedModel>, CallError> {
        self.api.models().await
    }

    /// Converts the pairs to token ids; each text is tokenized once.
    async fn joined(&self, pairs: &[TextPair], clock: &CallClock) -> Result<Vec<Vec<u32>>, CallError> {
        let tokenizer = self.tokenizer.get_or_try_init(|| self.learn_tokenizer(clock)).await?;
        let mut texts: Vec<&str> =
            pairs.iter().flat_map(|pair| [pair.premise.as_ref(), pair.hypothesis.as_ref()]).collect();
        texts.sort_unstable();
        texts.dedup();
        let asked: Vec<_> = texts
            .into_iter()
            .map(|text| self.tokens(text, false, clock).map_ok(move |found| (text, found.tokens)))
            .collect();
        let tokens: HashMap<&str, Vec<u32>> =
            stream::iter(asked).buffer_unordered(TOKENIZED_AT_ONCE).try_collect().await?;
        let of = |text: &str| tokens.get(text).map_or(&[][..], Vec::as_slice);
        let joined = pairs.iter().enumerate().map(|(at, pair)| {
            let ids = tokenizer.frame.join(self.config.layout, of(&pair.premise), of(&pair.hypothesis));
            match tokenizer.context_tokens {
                Some(context) if ids.len() > context as usize => {
                    let message =
                        format!("pair {at} has {} tokens, the model's context {context}", ids.len());
                    Err(CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message))
                }
                _ => Ok(ids),
            }
        });
        joined.collect()
    }

    async fn learn_tokenizer(&self, clock: &CallClock) -> Result<Tokenizer, CallError> {
        let nothing = self.tokens("", true, clock).await?;
        let frame = TokenFrame::of_nothing(nothing.tokens).ok_or_else(|| {
            let message = format!("the tokenizer of `{}` puts no separator after a text", self.config.model);
            CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
        })?;
        Ok(Tokenizer { frame, context_tokens: nothing.max_model_len })
    }

    async fn tokens(&self, text: &str, framed: bool, clock: &CallClock) -> Result<TokenList, CallError> {
        let question = TokenizeText { model: &self.config.model, prompt: text, add_special_tokens: framed };
        self.api.ask(&self.tokenize, &question, clock).await.map_err(|error| error.about("/tokenize"))
    }
}

#[async_trait::async_trait]
impl ClassifyModel for VllmClassifier {
    async fn classify(&self, request: ClassifyRequest) -> Result<ClassifyReply, CallError> {
        request.check()?;
        let limits = self.config.settings.time_limits;
        let clock = CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
        let input = self.joined(&request.pairs, &clock).await?;
        let question = Question { model: &self.config.model, input: &input, add_special_tokens: false };
        let mut reply: WireReply = self.api.ask(&self.classify, &question, &clock).await?;
        let labels = reply.data.iter_mut().map(|item| &mut item.label);
        for text in labels.chain([&mut reply.model]) {
            *text = text.take().map(|text| self.api.scrub(text));
        }
        let usage = reply.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default();
        self.api.check_answerer(reply.model.as_deref(), usage, &clock).await?;
        // The lock is never held across an await.
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        reply.read(input.len(), &mut labels).map_err(|error| error.in_vain(usage))
    }

    fn identity(&self) -> &ModelIdentity {
        self.api.identity()
    }
}

/// Body of `POST /classify`. It does not ask for truncation, so that a too long pair is an error.
#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [Vec<u32>],
    /// The ids already include them.
    add_special_tokens: bool,
}

/// Its answer.
#[derive(Deserialize)]
struct WireReply {
    model: Option<String>,
    data: Vec<Item>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    /// The name of the likeliest class; null if the model's configuration has no names.
    label: Option<String>,
    probs: Vec<f64>,
}

impl WireReply {
    /// The classes of `count` pairs. All are checked before any label is learnt.
    fn read(self, count: usize, labels: &mut Labels) -> Result<ClassifyReply, CallError> {
        let items = in_order(self.data.into_iter().map(|item| (item.index, item)), count)?;
        let mut learnt = labels.clone();
        let likeliest = items
            .iter()
            .enumerate()
            .map(|(at, item)| learnt.learn(item).map_err(|error| error.about(&format!("pair {at}"))))
            .collect::<Result<Vec<_>, _>>()?;
        *labels = learnt;
        let classifications = items.into_iter().zip(likeliest).map(|(item, (at, label))| Classification {
            label,
            probability: item.probs[at],
            classes: labels.of(&item.probs),
        });
        let usage = self.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default();
        Ok(ClassifyReply { classifications: classifications.collect(), usage, reported_model: self.model })
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
    use serde_json::{Value, json};

    use super::*;
    use crate::openai::api::read;

    const NLI: [&str; 3] = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"];

    fn parse(body: &Value, count: usize, labels: &mut Labels) -> Result<ClassifyReply, CallError> {
        read::<WireReply>(body.to_string().as_bytes(), None)?.read(count, labels)
    }

    fn item(index: usize, label: impl Into<Value>, probs: &[f64]) -> Value {
        json!({"index": index, "label": label.into(), "probs": probs, "num_classes": probs.len()})
    }

    fn body(items: &[Value]) -> Value {
        json!({"id": "classify-1", "object": "list", "model": "nli", "data": items,
               "usage": {"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0}})
    }

    #[test]
    fn labels_become_known_one_by_one_and_stay() {
        let mut labels = Labels::default();
        let known = |reply: &ClassifyReply| -> Vec<Option<String>> {
            reply.classifications[0]
                .classes
                .iter()
                .map(|class| class.label.as_deref().map(str::to_owned))
                .collect()
        };
        let first = parse(&body(&[item(0, "ENTAILMENT", &[0.1, 0.2, 0.7])]), 1, &mut labels).unwrap();
        assert_eq!(known(&first), [None, None, Some("ENTAILMENT".to_owned())]);
        assert_eq!(
            (&*first.classifications[0].label, first.classifications[0].probability),
            ("ENTAILMENT", 0.7)
        );
        let second = parse(&body(&[item(0, "NEUTRAL", &[0.1, 0.8, 0.1])]), 1, &mut labels).unwrap();
        assert_eq!(known(&second), [None, Some("NEUTRAL".to_owned()), Some("ENTAILMENT".to_owned())]);
        assert_eq!((second.usage.prompt_tokens, second.usage.completion_tokens), (Some(7), None));
        // Another model under the same name: neither names nor counts agree, and nothing is learnt from it.
        let before = labels.clone();
        for other in [item(1, "entailment", &[0.1, 0.8, 0.1]), item(1, "yes", &[0.9, 0.1])] {
            let mixed = body(&[item(0, "CONTRADICTION", &[0.8, 0.1, 0.1]), other]);
            let error = parse(&mixed, 2, &mut labels).unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::No));
            assert!(error.message.starts_with("pair 1: "), "{error}");
            assert_eq!(labels, before);
        }
    }

    #[test]
    fn configured_labels_are_compared_with_the_servers() {
        let mut labels = Labels::configured(&NLI.map(str::to_owned));
        let agreed = parse(&body(&[item(0, "NEUTRAL", &[0.2, 0.6, 0.2])]), 1, &mut labels).unwrap();
        assert!(agreed.classifications[0].classes.iter().all(|class| class.label.is_some()));
        // A model without names takes the configured ones, and only those.
        let unnamed = body(&[item(0, Value::Null, &[0.2, 0.6, 0.2])]);
        assert_eq!(&*parse(&unnamed, 1, &mut labels).unwrap().classifications[0].label, "NEUTRAL");
        let error = parse(&unnamed, 1, &mut Labels::default()).unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No));
        let swapped = body(&[item(0, "ENTAILMENT", &[0.6, 0.2, 0.2])]);
        let error = parse(&swapped, 1, &mut labels).unwrap_err();
        assert!(error.message.contains("class 0 is `ENTAILMENT`, not `CONTRADICTION`"), "{error}");
    }

    #[test]
    fn what_is_no_choice_of_one_class_is_an_error() {
        for probs in [&[][..], &[0.9, 0.9], &[-0.1, 1.1], &[0.0, 0.0], &[3.2, -1.0, 0.4]] {
            let error = parse(&body(&[item(0, "A", probs)]), 1, &mut Labels::default()).unwrap_err();
            assert_eq!(
                (error.cause, error.retry),
                (FailureCause::Server, RetryAdvice::Transient),
                "{probs:?}"
            );
        }
        let null = json!({"data": [{"index": 0, "label": "A", "probs": [null, 1.0]}]});
        assert!(parse(&null, 1, &mut Labels::default()).is_err());
    }

    proptest! {
        #[test]
        fn every_pair_gets_its_own_classes(
            weights in prop::collection::vec(prop::array::uniform3(1_u32..1000), 1..9), turn: prop::sample::Index
        ) {
            let probs: Vec<Vec<f64>> = weights
                .iter()
                .map(|three| three.iter().map(|weight| f64::from(*weight) / f64::from(three.iter().sum::<u32>())).collect())
                .collect();
            let likeliest = |three: &[f64]| (0..3).rev().max_by(|a, b| three[*a].total_cmp(&three[*b])).unwrap();
            let mut items: Vec<Value> = probs
                .iter()
                .enumerate()
                .map(|(index, three)| item(index, NLI[likeliest(three)], three))
                .collect();
            let turn = turn.index(items.len());
            items.rotate_left(turn);
            let reply = parse(&body(&items), probs.len(), &mut Labels::default()).unwrap();
            for (found, three) in reply.classifications.iter().zip(&probs) {
                prop_assert_eq!(&*found.label, NLI[likeliest(three)]);
                let got: Vec<f64> = found.classes.iter().map(|class| class.probability).collect();
                prop_assert_eq!(&got, three);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0..4_usize) {
            let _ = read::<WireReply>(&bytes, None).and_then(|reply| reply.read(count, &mut Labels::default()));
        }
    }
}
