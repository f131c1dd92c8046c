//! The state of a call in flight, for code that must decide before the call ends, such as a circuit breaker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// The server has said nothing yet.
    Silent,
    /// The server has begun to answer, or has answered.
    Answered,
    /// The call failed; another one may follow.
    Failed,
}

/// The latest call of one dialogue. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Option<(Instant, CallStage)>>>);

impl Progress {
    /// When the latest call was sent, and its state. `None` before the first call, and while one waits for its rate
    /// budget.
    pub fn latest(&self) -> Option<(Instant, CallStage)> {
        *self.call()
    }

    /// A call waits for its rate budget.
    pub fn waits(&self) {
        *self.call() = None;
    }

    /// A call was sent.
    pub fn sent(&self) {
        *self.call() = Some((Instant::now(), CallStage::Silent));
    }

    /// The call has reached this state.
    pub fn met(&self, stage: CallStage) {
        if let Some((_, known)) = self.call().as_mut() {
            *known = stage;
        }
    }

    fn call(&self) -> MutexGuard<'_, Option<(Instant, CallStage)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
