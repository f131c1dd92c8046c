//! Counts calls of a model that fail, when they fail: a dialogue that repeats its calls may end an hour later.

use std::sync::Arc;

use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};

use crate::metrics;

/// A model at a server whose failed calls are counted.
pub struct CountedModel {
    model: Arc<dyn ChatModel>,
    server: Arc<str>,
}

impl CountedModel {
    pub fn wrap(model: Arc<dyn ChatModel>, server: Arc<str>) -> Arc<dyn ChatModel> {
        Arc::new(Self { model, server })
    }
}

#[async_trait::async_trait]
impl ChatModel for CountedModel {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let model = request.key.model.clone();
        metrics::call_began(model.as_str(), &self.server);
        let reply = self.model.complete(request).await;
        if let Err(error) = &reply {
            metrics::call_failed(model.as_str(), &self.server, error.cause);
        }
        reply
    }

    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}
