//! The models of a simulation: what they say depends on what they are asked, and how long they take on chance.

use std::sync::Arc;
use std::time::Duration;

use domain::{Ask, FailureCause, ModelSpec, RetryAdvice};
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};
use worker::{Connect, ConnectError, Connected, FoundServer};

use crate::world::World;

/// Connects to the models.
pub struct Models(pub Arc<World>);

impl Connect for Models {
    fn connect(&self, _: Ask, spec: &ModelSpec, _: Option<&FoundServer>) -> Result<Connected, ConnectError> {
        let identity =
            ModelIdentity { connector: "simulated", requested: spec.label.to_string(), endpoint: None };
        Ok(Connected::opaque(Arc::new(Simulated { world: Arc::clone(&self.0), identity })))
    }
}

struct Simulated {
    world: Arc<World>,
    identity: ModelIdentity,
}

/// The model that refuses some of what it is asked, until it is asked again.
const REFUSING: &str = "b";

#[async_trait::async_trait]
impl ChatModel for Simulated {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let slowness = self.world.below(100);
        tokio::time::sleep(Duration::from_millis(20 + slowness * slowness / 10)).await;
        let model = request.key.model.as_str();
        let text = match model {
            "grader" => ["CORRECT", "PARTLY", "INCORRECT"][request.key.iteration as usize % 3].to_owned(),
            "reviewer" => "ACCEPTABLE".to_owned(),
            REFUSING if request.seed.unwrap_or_default().is_multiple_of(3) => {
                let cause = FailureCause::ContextExceeded;
                return Err(CallError::new(cause, RetryAdvice::No, "too long"));
            }
            _ => format!("answer {} of {model}", request.key.iteration % 3),
        };
        Ok(ChatReply::text(text))
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}
