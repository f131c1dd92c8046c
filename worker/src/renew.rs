//! A model whose key is read again when its server refuses it: keys of clouds end after an hour, and others are replaced.

use std::sync::{Arc, Mutex, PoisonError};

use domain::FailureCause;
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity, Secret};

/// The model with the key that stands now where the refused one did, if it is another. May block.
pub(crate) type Renew = Arc<dyn Fn(&Secret) -> Option<KeyedModel> + Send + Sync>;

/// A model with the key that it was made with.
#[derive(Clone)]
pub(crate) struct KeyedModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) key: Secret,
}

/// A model with its key, and what is needed to have it with another one.
pub(crate) struct RenewedKey {
    identity: ModelIdentity,
    current: Mutex<KeyedModel>,
    renew: Renew,
    /// One at a time reads the key, and the others wait for it.
    reading: tokio::sync::Mutex<()>,
}

impl RenewedKey {
    pub(crate) fn new(current: KeyedModel, renew: Renew) -> Self {
        let identity = current.model.identity().clone();
        Self { identity, current: Mutex::new(current), renew, reading: tokio::sync::Mutex::default() }
    }

    fn current(&self) -> KeyedModel {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model with another key than the refused one, if there is one.
    async fn renewed(&self, refused: Secret) -> Option<Arc<dyn ChatModel>> {
        let _reading = self.reading.lock().await;
        let current = self.current();
        if current.key != refused {
            return Some(current.model);
        }
        let renew = Arc::clone(&self.renew);
        let renewed = tokio::task::spawn_blocking(move || renew(&refused)).await.ok()??;
        tracing::info!(
            model = self.identity.requested,
            "the key was refused; another one was found in its place"
        );
        let model = Arc::clone(&renewed.model);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Some(model)
    }
}

#[async_trait::async_trait]
impl ChatModel for RenewedKey {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let KeyedModel { model, key } = self.current();
        match model.complete(request.clone()).await {
            Err(error) if error.cause == FailureCause::Unauthorized => match self.renewed(key).await {
                Some(model) => model.complete(request).await,
                None => Err(error),
            },
            answered => answered,
        }
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use harness::canned_server::{CannedAnswer, CannedServer};
    use models::{HttpClient, OpenAiCompatible, OpenAiConfig};

    use super::*;
    use crate::connect::tests::request;

    #[tokio::test]
    async fn a_refused_key_is_read_again_and_only_another_one_is_tried() {
        let yes = || {
            CannedAnswer::json(200, r#"{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}"#)
        };
        let no = || CannedAnswer::json(401, r#"{"error":"expired"}"#);
        let server = CannedServer::start(vec![no(), yes(), yes(), no(), no()]).await;
        let (url, http) = (server.url.clone(), HttpClient::new());
        let make = move |key: Secret| {
            let config = OpenAiConfig { key: Some(key.clone()), ..OpenAiConfig::new(&url, "m") };
            KeyedModel { model: Arc::new(OpenAiCompatible::with_client(config, &http).unwrap()), key }
        };
        let (first, second) = (Secret::new("first-key-of-two"), Secret::new("second-key-of-two"));
        let reads = Arc::new(AtomicU32::new(0));
        let (counted, current) = (Arc::clone(&reads), make(first));
        let renew = move |known: &Secret| {
            counted.fetch_add(1, Ordering::Relaxed);
            (*known != second).then(|| make(second.clone()))
        };
        let model = RenewedKey::new(current, Arc::new(renew));
        model.complete(request("?")).await.unwrap();
        model.complete(request("?")).await.unwrap();
        let refused = model.complete(request("?")).await.unwrap_err();
        assert_eq!((refused.cause, reads.load(Ordering::Relaxed)), (FailureCause::Unauthorized, 2));
        let keys: Vec<String> = server
            .asked()
            .iter()
            .filter_map(|asked| asked.header("authorization").map(str::to_owned))
            .collect();
        let (first, second) = ("Bearer first-key-of-two", "Bearer second-key-of-two");
        assert_eq!(keys, [first, second, second, second]);
    }
}
