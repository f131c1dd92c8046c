//! A model whose key is read again when its server refuses it: keys of clouds end after an hour, and others are replaced.

use std::sync::{Arc, Mutex, PoisonError};

use domain::FailureCause;
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity, Secret, SetupError};

/// Reads the key from where it is. May block.
pub(crate) type ReadKey = Box<dyn Fn() -> Option<Secret> + Send + Sync>;

/// Makes the model with another key.
pub(crate) type MakeModel = Box<dyn Fn(Secret) -> Result<Arc<dyn ChatModel>, SetupError> + Send + Sync>;

/// A model with its key, and what is needed to have it with another one.
pub(crate) struct RenewedKey {
    identity: ModelIdentity,
    current: Mutex<Current>,
    how: Arc<(ReadKey, MakeModel)>,
    /// One at a time reads the key, and the others wait for it.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Current {
    model: Arc<dyn ChatModel>,
    key: Secret,
}

impl RenewedKey {
    pub(crate) fn new(model: Arc<dyn ChatModel>, key: Secret, read: ReadKey, make: MakeModel) -> Self {
        Self {
            identity: model.identity().clone(),
            current: Mutex::new(Current { model, key }),
            how: Arc::new((read, make)),
            reading: tokio::sync::Mutex::default(),
        }
    }

    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model with another key than the refused one, if there is one.
    async fn renewed(&self, refused: &Secret) -> Option<Arc<dyn ChatModel>> {
        let _reading = self.reading.lock().await;
        let current = self.current();
        if current.key != *refused {
            return Some(current.model);
        }
        let (how, known) = (Arc::clone(&self.how), refused.clone());
        let make = move || {
            let (read, make) = &*how;
            let key = read().filter(|key| *key != known)?;
            Some(Current { model: make(key.clone()).ok()?, key })
        };
        let renewed = tokio::task::spawn_blocking(make).await.ok()??;
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
        let Current { model, key } = self.current();
        match model.complete(request.clone()).await {
            Err(error) if error.cause == FailureCause::Unauthorized => match self.renewed(&key).await {
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

    fn asked() -> ChatRequest {
        ChatRequest {
            messages: Arc::from([domain::Message::user("?")]),
            sampling: domain::Sampling::default(),
            seed: None,
            deadline: std::time::Duration::from_secs(60),
            key: domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
            round: 0,
            progress: models::Progress::default(),
        }
    }

    #[tokio::test]
    async fn a_refused_key_is_read_again_and_only_another_one_is_tried() {
        let yes = || {
            CannedAnswer::json(200, r#"{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}"#)
        };
        let no = || CannedAnswer::json(401, r#"{"error":"expired"}"#);
        let server = CannedServer::start(vec![no(), yes(), yes(), no(), no()]).await;
        let (url, http) = (server.url.clone(), HttpClient::new());
        let make = move |key: Secret| -> Result<Arc<dyn ChatModel>, SetupError> {
            let config = OpenAiConfig { key: Some(key), ..OpenAiConfig::new(&url, "m") };
            Ok(Arc::new(OpenAiCompatible::with_client(config, &http)?))
        };
        let (first, second) = (Secret::new("first-key-of-two"), Secret::new("second-key-of-two"));
        let reads = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&reads);
        let read = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Some(second.clone())
        };
        let model = RenewedKey::new(make(first.clone()).unwrap(), first, Box::new(read), Box::new(make));
        model.complete(asked()).await.unwrap();
        model.complete(asked()).await.unwrap();
        let refused = model.complete(asked()).await.unwrap_err();
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
