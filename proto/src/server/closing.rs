//! How a server ends: first it takes nothing new, then it lets go of what it has.

use domain::{ErrorCode, ServiceError};
use tokio::sync::watch;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Not begun.
    Open,
    /// What is in hand is finished.
    Draining,
    /// What is in hand is given up.
    Cut,
}

/// Hears how far the end has come.
#[derive(Clone, Debug)]
pub(super) struct Closing(watch::Receiver<Phase>);

/// An end that has not begun.
pub(super) fn channel() -> (watch::Sender<Phase>, Closing) {
    let (sender, receiver) = watch::channel(Phase::Open);
    (sender, Closing(receiver))
}

impl Closing {
    /// Waits until nothing new is to be taken.
    pub(super) async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Waits until everything is to be given up.
    pub(super) async fn cut(&self) {
        self.reached(Phase::Cut).await;
    }

    async fn reached(&self, phase: Phase) {
        // The sender is gone when the server was dropped: that is its end too.
        let _ = self.0.clone().wait_for(|reached| *reached >= phase).await;
    }
}

/// What callers hear at the end.
pub(super) fn leaving() -> ServiceError {
    ServiceError::new(ErrorCode::Unavailable, "the coordinator is shutting down; ask again")
}
