//! A model in this process whose answers wait until the test releases them. One behind a socket is in
//! [`sim_server`](crate::sim_server).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::{Ask, FailureCause, ModelSpec, RetryAdvice};
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};
use tokio::sync::{Semaphore, watch};
use worker::{Connect, ConnectError, Connected, FoundServer};

/// What the model does when it may answer.
type Answer = dyn Fn(&ChatRequest) -> Result<ChatReply, CallError> + Send + Sync;

/// The model, and its connector.
#[derive(Clone)]
pub struct GatedModel {
    permits: Arc<Semaphore>,
    answer: Arc<Answer>,
    calls: Arc<AtomicUsize>,
    in_flight: Arc<watch::Sender<usize>>,
    identity: Arc<ModelIdentity>,
}

impl GatedModel {
    /// Answers what the function says, once it may.
    pub fn new(
        answer: impl Fn(&ChatRequest) -> Result<ChatReply, CallError> + Send + Sync + 'static,
    ) -> Self {
        let identity = ModelIdentity { connector: "test", requested: "m".to_owned(), endpoint: None };
        Self {
            permits: Arc::new(Semaphore::new(0)),
            answer: Arc::new(answer),
            calls: Arc::default(),
            in_flight: Arc::new(watch::channel(0).0),
            identity: Arc::new(identity),
        }
    }

    /// Answers anything.
    pub fn answering() -> Self {
        Self::new(|request| Ok(ChatReply::text(format!("answer to {}", request.key))))
    }

    /// Lets so many calls be answered.
    pub fn answer(&self, calls: usize) {
        self.permits.add_permits(calls);
    }

    /// Lets all calls be answered.
    pub fn open(self) -> Self {
        self.answer(Semaphore::MAX_PERMITS / 2);
        self
    }

    /// Calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Waits until so many calls are under way.
    pub async fn in_flight(&self, calls: usize) {
        let mut in_flight = self.in_flight.subscribe();
        let wait = in_flight.wait_for(|now| *now == calls);
        // Not a bound on speed: a test that hangs is to say where.
        let reached = tokio::time::timeout(Duration::from_secs(60), wait).await.is_ok();
        assert!(reached, "{} calls are under way, not {calls}", *self.in_flight.borrow());
    }
}

/// A failure that is not repeated.
pub fn failure(cause: FailureCause) -> CallError {
    CallError::new(cause, RetryAdvice::No, cause.as_str())
}

struct Counted<'a>(&'a watch::Sender<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

#[async_trait::async_trait]
impl ChatModel for GatedModel {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.in_flight.send_modify(|calls| *calls += 1);
        let _counted = Counted(&self.in_flight);
        self.permits.acquire().await.unwrap().forget();
        (self.answer)(&request)
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

impl Connect for GatedModel {
    fn connect(
        &self,
        _ask: Ask,
        _spec: &ModelSpec,
        _server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError> {
        Ok(Connected::opaque(Arc::new(self.clone())))
    }
}
