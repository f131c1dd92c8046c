//! Limits calls to a budget that all workers share.

use std::sync::Arc;
use std::time::Duration;

use domain::ModelSpec;
use domain::exchange::{RateBudget, WorkExchange};
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};

use crate::connect::key_name;
use domain::Backoff;

/// Maximum wait before a budget is queried again, because it may have grown.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A model that is called within its rate budget. The dialogue's deadline bounds the wait. While no coordinator is
/// reachable there are no calls, because others may be using the same key.
pub struct WithinBudget {
    model: Arc<dyn ChatModel>,
    exchange: Arc<dyn WorkExchange>,
    budget: RateBudget,
}

impl WithinBudget {
    /// The model itself, if its description has no rate limit.
    pub fn wrap(
        model: Arc<dyn ChatModel>,
        spec: &ModelSpec,
        exchange: &Arc<dyn WorkExchange>,
    ) -> Arc<dyn ChatModel> {
        match spec.calls_per_minute {
            None => model,
            Some(per_minute) => {
                let budget = RateBudget { name: key_name(spec), per_minute: per_minute.max(1) };
                Arc::new(Self { model, exchange: Arc::clone(exchange), budget })
            }
        }
    }

    async fn permit(&self) {
        let mut backoff = Backoff::default();
        loop {
            let wait = match self.exchange.take_rate(&self.budget, 1).await {
                Ok(None) => return,
                Ok(Some(wait)) => wait.clamp(Duration::from_millis(1), WAIT_MAX),
                Err(error) => {
                    tracing::debug!(budget = self.budget.name, %error, "no permit can be had");
                    backoff.next_delay()
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

#[async_trait::async_trait]
impl ChatModel for WithinBudget {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        request.progress.waits();
        self.permit().await;
        request.progress.sent();
        self.model.complete(request).await
    }

    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}
