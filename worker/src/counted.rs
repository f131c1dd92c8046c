//! Counts calls of a model that fail, when they fail: a dialogue that repeats its calls may end an hour later.

use std::sync::Arc;

use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};

use crate::metrics;

/// A model whose failed calls are counted.
pub struct CountedModel(Arc<dyn ChatModel>);

impl CountedModel {
    pub fn wrap(model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(Self(model))
    }
}

#[async_trait::async_trait]
impl ChatModel for CountedModel {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let model = request.key.model.clone();
        let reply = self.0.complete(request).await;
        if let Err(error) = &reply {
            metrics::call_failed(model.as_str(), error.cause);
        }
        reply
    }

    fn identity(&self) -> &ModelIdentity {
        self.0.identity()
    }
}
