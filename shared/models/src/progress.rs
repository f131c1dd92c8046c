//! What a call in flight has met so far, for whoever must decide before it has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// What a call has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// The server has said nothing yet.
    Silent,
    /// The server has begun to answer, or has answered.
    Answered,
    /// There is no answer; there may be another call.
    Failed,
}

/// The latest call of one dialogue. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Option<(Instant, CallStage)>>>);

impl Progress {
    /// When the latest call was sent, and what it has met; `None` before the first, and while one waits for its turn.
    pub fn latest(&self) -> Option<(Instant, CallStage)> {
        *self.call()
    }

    /// A call waits for its turn: its budget is used up for the moment.
    pub fn waits(&self) {
        *self.call() = None;
    }

    /// A call is sent.
    pub fn sent(&self) {
        *self.call() = Some((Instant::now(), CallStage::Silent));
    }

    /// The call has met this.
    pub fn met(&self, stage: CallStage) {
        if let Some((_, known)) = self.call().as_mut() {
            *known = stage;
        }
    }

    fn call(&self) -> MutexGuard<'_, Option<(Instant, CallStage)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
