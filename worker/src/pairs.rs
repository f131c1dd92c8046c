//! Embedders and classifiers as models that are asked about a pair of texts.
//!
//! A dialogue with one of them has a prompt and an answer like any other: the prompt is a JSON list of two texts, the
//! answer a JSON object with the cosine of their vectors or with their likeliest class. So deadlines, repeated calls,
//! budgets, breakers and records are the same for all models. The vectors themselves are not stored.

use std::sync::Arc;

use domain::{FailureCause, RetryAdvice, Usage};
use models::{
    CallError, ChatModel, ChatReply, ChatRequest, Class, ClassifyModel, ClassifyRequest, EmbedModel,
    EmbedReply, EmbedRequest, ModelIdentity,
};
use serde_json::{Value, json};

use crate::vectors::KnownVectors;

/// An embedder; answers with the cosine of the two vectors. Texts whose vectors are known are not sent again. A record counts the tokens
/// of both of its texts all the same: which dialogue comes first is chance, and no part of what a record says.
pub struct Similarity<M> {
    pub model: M,
    pub known: Arc<KnownVectors>,
}

/// A classifier; answers with the likeliest class.
pub struct PairClass<M>(pub M);

/// The two texts of a prompt.
fn pair(request: &ChatRequest) -> Result<[String; 2], CallError> {
    let prompt = request.messages.last().map_or("", |message| message.content.as_str());
    serde_json::from_str(prompt).map_err(|error| {
        let message =
            format!("this model is asked about a JSON list of two texts, and the prompt is none: {error}");
        CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
    })
}

/// The tokens of both; unknown if they are of one.
fn sum(left: &Usage, right: &Usage) -> Usage {
    let of = |tokens: fn(&Usage) -> Option<u64>| Some(tokens(left)?.saturating_add(tokens(right)?));
    Usage {
        prompt_tokens: of(|usage| usage.prompt_tokens),
        completion_tokens: of(|usage| usage.completion_tokens),
        cached_tokens: of(|usage| usage.cached_tokens),
        reasoning_tokens: of(|usage| usage.reasoning_tokens),
    }
}

/// Wraps a value as the reply of a chat model.
fn said(answer: &Value, usage: Usage, reported_model: Option<String>) -> ChatReply {
    let mut reply = ChatReply { reported_model, ..ChatReply::text(answer.to_string()) };
    reply.answer.usage = usage;
    reply
}

impl<M: EmbedModel> Similarity<M> {
    async fn vector(&self, text: String, request: &ChatRequest) -> Result<EmbedReply, CallError> {
        let ModelIdentity { requested, endpoint, .. } = self.model.identity();
        let embedder = format!("{} {requested}", endpoint.as_deref().unwrap_or_default());
        let (deadline, key) = (request.deadline, request.key.clone());
        let asked = EmbedRequest { text: text.clone(), deadline, key };
        self.known.of(&embedder, &text, self.model.embed(asked)).await
    }
}

#[async_trait::async_trait]
impl<M: EmbedModel> ChatModel for Similarity<M> {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let [left, right] = pair(&request)?;
        let both = async {
            let left = self.vector(left, &request).await?;
            Ok((left, self.vector(right, &request).await?))
        };
        // Whoever else asks for the same text may take long over it; then it is asked for here, with the same deadline.
        let both = tokio::time::timeout(request.deadline.saturating_mul(2), both).await;
        let (left, right) = both.unwrap_or_else(|_| {
            let message = format!("no vectors within twice {} s", request.deadline.as_secs());
            Err(CallError::new(FailureCause::Timeout, RetryAdvice::Transient, message))
        })?;
        let cosine = left.embedding.cosine(&right.embedding);
        let cosine = cosine.ok_or_else(|| {
            let message = "the reply has no vectors of one length";
            CallError::new(FailureCause::Server, RetryAdvice::No, message)
        })?;
        let usage = sum(&left.usage, &right.usage);
        Ok(said(&json!({ "cosine": cosine }), usage, right.reported_model.or(left.reported_model)))
    }

    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}

#[async_trait::async_trait]
impl<M: ClassifyModel> ChatModel for PairClass<M> {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let [premise, hypothesis] = pair(&request)?;
        let ChatRequest { deadline, key, .. } = request;
        let found = self.0.classify(ClassifyRequest { premise, hypothesis, deadline, key }).await?;
        let of_class =
            |class: &Class| json!({ "label": class.label.as_deref(), "probability": class.probability });
        let answer = json!({
            "label": &*found.label,
            "probability": found.probability,
            "classes": found.classes.iter().map(of_class).collect::<Vec<_>>(),
        });
        Ok(said(&answer, found.usage, found.reported_model))
    }

    fn identity(&self) -> &ModelIdentity {
        self.0.identity()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{DialogueKey, Message, Sampling};
    use models::{Classification, Embedding};

    use super::*;

    struct Fixed(ModelIdentity);

    fn fixed() -> Fixed {
        Fixed(ModelIdentity { connector: "test", requested: "m".to_owned(), endpoint: None })
    }

    #[async_trait::async_trait]
    impl EmbedModel for Fixed {
        async fn embed(&self, request: EmbedRequest) -> Result<EmbedReply, CallError> {
            let embedding = Embedding::new(vec![request.text.len() as f32, 1.0]).unwrap();
            Ok(EmbedReply { embedding, usage: Usage::default(), reported_model: Some("m-1".to_owned()) })
        }

        fn identity(&self) -> &ModelIdentity {
            &self.0
        }
    }

    /// Notes the texts that it is sent.
    struct Noting<'s>(&'s std::sync::Mutex<Vec<String>>, ModelIdentity);

    #[async_trait::async_trait]
    impl EmbedModel for Noting<'_> {
        async fn embed(&self, request: EmbedRequest) -> Result<EmbedReply, CallError> {
            self.0.lock().unwrap().push(request.text.clone());
            fixed().embed(request).await
        }

        fn identity(&self) -> &ModelIdentity {
            &self.1
        }
    }

    #[async_trait::async_trait]
    impl ClassifyModel for Fixed {
        async fn classify(&self, request: ClassifyRequest) -> Result<Classification, CallError> {
            assert_eq!((&*request.premise, &*request.hypothesis), ("the \"premise\"", "h"));
            let class =
                |label: Option<&str>, probability| Class { label: label.map(Into::into), probability };
            Ok(Classification {
                label: "NEUTRAL".into(),
                probability: 0.75,
                classes: vec![class(None, 0.25), class(Some("NEUTRAL"), 0.75)],
                usage: Usage::default(),
                reported_model: None,
            })
        }

        fn identity(&self) -> &ModelIdentity {
            &self.0
        }
    }

    fn similarity<M>(model: M) -> Similarity<M> {
        Similarity { model, known: Arc::default() }
    }

    fn request(prompt: &str) -> ChatRequest {
        ChatRequest {
            messages: Arc::from([Message::user(prompt)]),
            sampling: Sampling::default(),
            seed: None,
            deadline: Duration::from_secs(1),
            key: DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
            round: 0,
            progress: models::Progress::default(),
        }
    }

    #[tokio::test]
    async fn a_pair_is_answered_with_what_the_verdict_needs() {
        let reply = similarity(fixed()).complete(request(r#"["a", "bbb"]"#)).await.unwrap();
        let said: Value = serde_json::from_str(&reply.answer.text).unwrap();
        assert!((said["cosine"].as_f64().unwrap() - 4.0 / 20_f64.sqrt()).abs() < 1e-9, "{said}");
        assert_eq!(reply.reported_model.as_deref(), Some("m-1"));
        let reply = PairClass(fixed()).complete(request(r#"["the \"premise\"", "h"]"#)).await.unwrap();
        let said: Value = serde_json::from_str(&reply.answer.text).unwrap();
        assert_eq!((said["label"].as_str(), said["probability"].as_f64()), (Some("NEUTRAL"), Some(0.75)));
        assert_eq!(said["classes"][0], json!({"label": null, "probability": 0.25}));
    }

    #[tokio::test]
    async fn no_text_is_embedded_twice() {
        let sent = std::sync::Mutex::new(Vec::new());
        let known = Arc::new(KnownVectors::default());
        for (left, right) in [("description", "one"), ("description", "two"), ("two", "two")] {
            // A connector for each run: they share what is known.
            let model = Similarity { model: Noting(&sent, fixed().0), known: Arc::clone(&known) };
            model.complete(request(&json!([left, right]).to_string())).await.unwrap();
        }
        assert_eq!(*sent.lock().unwrap(), ["description", "one", "two"]);
    }

    #[tokio::test]
    async fn a_prompt_that_is_no_pair_is_refused_before_anything_is_sent() {
        for prompt in ["", "two texts", r#"["one"]"#, r#"["a", "b", "c"]"#] {
            let error = similarity(fixed()).complete(request(prompt)).await.unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No), "{prompt}");
            assert!(error.message.contains("two texts"), "{error}");
        }
    }
}
