//! A model that follows a script, for tests and demos.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::{FailureCause, RetryAdvice};

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::error::CallError;

/// A script as a function.
type Answerer = dyn Fn(&ChatRequest) -> Result<ChatReply, CallError> + Send + Sync;

enum Script {
    /// Replies in the order of the calls.
    List(Mutex<VecDeque<Result<ChatReply, CallError>>>),
    /// A function of the request.
    Function(Box<Answerer>),
}

/// A model with a script.
pub struct Scripted {
    script: Script,
    identity: ModelIdentity,
}

impl Scripted {
    /// Returns these replies and errors in the order of the calls; further calls fail.
    pub fn list(script: impl IntoIterator<Item = Result<ChatReply, CallError>>) -> Self {
        Self::new(Script::List(Mutex::new(script.into_iter().collect())))
    }

    /// Answers each request with `answer`. If it is pure, replies do not depend on the order of calls.
    pub fn function(
        answer: impl Fn(&ChatRequest) -> Result<ChatReply, CallError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Script::Function(Box::new(answer)))
    }

    /// Changes its name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.identity.requested = name.into();
        self
    }

    fn new(script: Script) -> Self {
        let identity =
            ModelIdentity { connector: "scripted", requested: "scripted".to_owned(), endpoint: None };
        Self { script, identity }
    }

    fn answer(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        match &self.script {
            Script::Function(answer) => answer(request),
            Script::List(list) => {
                list.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_else(|| {
                    let message = format!("the script has no further reply for {}", request.key);
                    Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
                })
            }
        }
    }
}

#[async_trait::async_trait]
impl ChatModel for Scripted {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        self.answer(&request)
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
    async fn a_list_is_given_in_order_and_ends() {
        let model = Scripted::list([Ok(ChatReply::text("a")), Ok(ChatReply::text("b"))]).named("list");
        assert_eq!(model.complete(request("?")).await.unwrap().answer.text, "a");
        assert_eq!(model.complete(request("?")).await.unwrap().answer.text, "b");
        let error = model.complete(request("?")).await.unwrap_err();
        assert!(error.message.contains("m/t/3"), "{error}");
        assert_eq!(model.identity().requested, "list");
    }

    #[tokio::test]
    async fn a_function_sees_the_request() {
        let model = Scripted::function(|request| Ok(ChatReply::text(request.messages[0].content.as_str())));
        assert_eq!(model.complete(request("echo")).await.unwrap().answer.text, "echo");
    }
}
