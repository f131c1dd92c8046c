//! A model that gives recorded answers again, so that they are judged anew without asking anybody: the connector `replay`. The
//! caller reads the recording; nothing here does IO.

use std::collections::HashMap;

use domain::{Answer, Connector, DialogueKey, FailureCause, RetryAdvice};

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::error::CallError;

/// The recorded answers of one model. They are looked up by dialogue and round; the prompt is ignored.
#[derive(Clone, Debug)]
pub struct Replay {
    answers: HashMap<DialogueKey, Vec<Answer>>,
    identity: ModelIdentity,
}

impl Replay {
    /// `model` is the name of the model that gave the answers.
    pub fn new(model: impl Into<String>, answers: HashMap<DialogueKey, Vec<Answer>>) -> Self {
        let connector = Connector::Replay.as_str();
        let identity = ModelIdentity { connector, requested: model.into(), endpoint: None };
        Self { answers, identity }
    }
}

#[async_trait::async_trait]
impl ChatModel for Replay {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let ChatRequest { key, round, .. } = request;
        let answers = self.answers.get(&key).map_or(&[][..], Vec::as_slice);
        let answer = answers.get(round as usize).cloned().ok_or_else(|| {
            let recorded = answers.len();
            let message = format!(
                "no answer is recorded for round {round} of {key}, which has {recorded} recorded rounds"
            );
            CallError::new(FailureCause::BadRequest, RetryAdvice::No, message)
        })?;
        let reported_model = Some(self.identity.requested.clone());
        Ok(ChatReply { answer, reported_model, ..ChatReply::text("") })
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::tests::request;

    #[tokio::test]
    async fn answers_come_by_dialogue_and_round() {
        let mut asked = request("?");
        let answers = HashMap::from([(asked.key.clone(), vec![Answer::text("one"), Answer::text("two")])]);
        let model = Replay::new("old-model", answers);
        assert_eq!(model.complete(asked.clone()).await.unwrap().answer.text, "one");
        asked.round = 1;
        assert_eq!(model.complete(asked.clone()).await.unwrap().answer.text, "two");
        asked.round = 2;
        let error = model.complete(asked.clone()).await.unwrap_err();
        assert_eq!(error.cause, FailureCause::BadRequest);
        assert_eq!(error.retry, RetryAdvice::No);
        assert!(error.message.contains("round 2 of m/t/3, which has 2 recorded rounds"), "{error}");
        asked.key.iteration = 9;
        let error = model.complete(asked).await.unwrap_err();
        assert!(error.message.contains("has 0 recorded rounds"), "{error}");
    }
}
