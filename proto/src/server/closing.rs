//! Shutdown of a server: first it accepts nothing new, then it aborts calls in progress. [`serve`](super::serve) moves
//! from stage to stage; calls and streams only wait for a stage.

use domain::{ErrorCode, ServiceError};
use tokio::sync::watch;

/// The stage of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerPhase {
    /// Not stopping.
    Open,
    /// Calls in progress may finish.
    Draining,
    /// Calls in progress are aborted.
    Cut,
}

/// Observes the shutdown.
#[derive(Clone, Debug)]
pub(super) struct Closing(watch::Receiver<ServerPhase>);

/// Creates both halves.
pub(super) fn channel() -> (watch::Sender<ServerPhase>, Closing) {
    let (sender, receiver) = watch::channel(ServerPhase::Open);
    (sender, Closing(receiver))
}

impl Closing {
    /// Waits until nothing new may be accepted.
    pub(super) async fn draining(&self) {
        self.reached(ServerPhase::Draining).await;
    }

    /// Waits until calls in progress are aborted.
    pub(super) async fn cut(&self) {
        self.reached(ServerPhase::Cut).await;
    }

    async fn reached(&self, phase: ServerPhase) {
        // The sender is gone when the server was dropped, which also ends it.
        let _ = self.0.clone().wait_for(|reached| *reached >= phase).await;
    }
}

/// The error for callers during a shutdown.
pub(super) fn leaving() -> ServiceError {
    ServiceError::new(ErrorCode::Unavailable, "the coordinator is shutting down; ask again")
}
