//! Embedders and classifiers as models that are asked about a pair of texts.
//!
//! A dialogue with one of them has a prompt and an answer like any other: the prompt is a JSON list of two texts, the
//! answer a JSON object with the cosine of their vectors or with their likeliest class. So deadlines, repeated calls,
//! budgets, breakers and records are the same for all models. The vectors themselves are not stored.

use std::sync::Arc;

use domain::{FailureCause, RetryAdvice, Usage};
use models::{
    CallError, ChatModel, ChatReply, ChatRequest, Class, ClassifyModel, ClassifyRequest, EmbedModel,
    EmbedRequest, ModelIdentity, TextPair,
};
use serde_json::{Value, json};

/// An embedder; answers with the cosine of the two vectors.
pub struct Similarity<M>(pub M);

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

/// The error for a reply in which something is missing.
fn incomplete(what: &str) -> CallError {
    CallError::new(FailureCause::Server, RetryAdvice::No, format!("the reply has no {what}"))
}

/// Wraps a value as the reply of a chat model.
fn said(answer: &Value, usage: Usage, reported_model: Option<String>) -> ChatReply {
    let mut reply = ChatReply { reported_model, ..ChatReply::text(answer.to_string()) };
    reply.answer.usage = usage;
    reply
}

#[async_trait::async_trait]
impl<M: EmbedModel> ChatModel for Similarity<M> {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let texts: Arc<[String]> = Arc::new(pair(&request)?);
        let ChatRequest { deadline, key, round, .. } = request;
        let reply = self.0.embed(EmbedRequest { texts, deadline, key, round }).await?;
        let [left, right] = &reply.embeddings[..] else { return Err(incomplete("two vectors")) };
        let cosine = left.cosine(right).ok_or_else(|| incomplete("vectors of one length"))?;
        Ok(said(&json!({ "cosine": cosine }), reply.usage, reply.reported_model))
    }

    fn identity(&self) -> &ModelIdentity {
        self.0.identity()
    }
}

#[async_trait::async_trait]
impl<M: ClassifyModel> ChatModel for PairClass<M> {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let [premise, hypothesis] = pair(&request)?;
        let pairs = [TextPair { premise: premise.into(), hypothesis: hypothesis.into() }];
        let ChatRequest { deadline, key, round, .. } = request;
        let reply = self.0.classify(ClassifyRequest { pairs: Arc::new(pairs), deadline, key, round }).await?;
        let found = reply.classifications.first().ok_or_else(|| incomplete("class"))?;
        let of_class =
            |class: &Class| json!({ "label": class.label.as_deref(), "probability": class.probability });
        let answer = json!({
            "label": &*found.label,
            "probability": found.probability,
            "classes": found.classes.iter().map(of_class).collect::<Vec<_>>(),
        });
        Ok(said(&answer, reply.usage, reply.reported_model))
    }

    fn identity(&self) -> &ModelIdentity {
        self.0.identity()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{DialogueKey, Message, Sampling};
    use models::{Classification, ClassifyReply, EmbedReply, Embedding};

    use super::*;

    struct Fixed(ModelIdentity);

    fn fixed() -> Fixed {
        Fixed(ModelIdentity { connector: "test", requested: "m".to_owned(), endpoint: None })
    }

    #[async_trait::async_trait]
    impl EmbedModel for Fixed {
        async fn embed(&self, request: EmbedRequest) -> Result<EmbedReply, CallError> {
            let vector = |text: &String| Embedding::new(vec![text.len() as f32, 1.0]).unwrap();
            let embeddings = request.texts.iter().map(vector).collect();
            let reply =
                EmbedReply { embeddings, usage: Usage::default(), reported_model: Some("m-1".to_owned()) };
            Ok(reply)
        }

        fn identity(&self) -> &ModelIdentity {
            &self.0
        }
    }

    #[async_trait::async_trait]
    impl ClassifyModel for Fixed {
        async fn classify(&self, request: ClassifyRequest) -> Result<ClassifyReply, CallError> {
            assert_eq!((&*request.pairs[0].premise, &*request.pairs[0].hypothesis), ("the \"premise\"", "h"));
            let class =
                |label: Option<&str>, probability| Class { label: label.map(Into::into), probability };
            let said = Classification {
                label: "NEUTRAL".into(),
                probability: 0.75,
                classes: vec![class(None, 0.25), class(Some("NEUTRAL"), 0.75)],
            };
            let reply =
                ClassifyReply { classifications: vec![said], usage: Usage::default(), reported_model: None };
            Ok(reply)
        }

        fn identity(&self) -> &ModelIdentity {
            &self.0
        }
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
            traceparent: None,
        }
    }

    #[tokio::test]
    async fn a_pair_is_answered_with_what_the_verdict_needs() {
        let reply = Similarity(fixed()).complete(request(r#"["a", "bbb"]"#)).await.unwrap();
        let said: Value = serde_json::from_str(&reply.answer.text).unwrap();
        assert!((said["cosine"].as_f64().unwrap() - 4.0 / 20_f64.sqrt()).abs() < 1e-9, "{said}");
        assert_eq!(reply.reported_model.as_deref(), Some("m-1"));
        let reply = PairClass(fixed()).complete(request(r#"["the \"premise\"", "h"]"#)).await.unwrap();
        let said: Value = serde_json::from_str(&reply.answer.text).unwrap();
        assert_eq!((said["label"].as_str(), said["probability"].as_f64()), (Some("NEUTRAL"), Some(0.75)));
        assert_eq!(said["classes"][0], json!({"label": null, "probability": 0.25}));
    }

    #[tokio::test]
    async fn a_prompt_that_is_no_pair_is_refused_before_anything_is_sent() {
        for prompt in ["", "two texts", r#"["one"]"#, r#"["a", "b", "c"]"#] {
            let error = Similarity(fixed()).complete(request(prompt)).await.unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No), "{prompt}");
            assert!(error.message.contains("two texts"), "{error}");
        }
    }
}
