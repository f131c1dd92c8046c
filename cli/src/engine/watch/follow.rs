//! Follows a run at its coordinator, through restarts of the coordinator.

use std::time::Duration;

use domain::control::{BenchmarkView, Control, Feed};
use domain::{ErrorCode, RunId, ServiceError};
use futures::StreamExt;
use tokio::time::Instant;

/// Calls that may fail in a row: by then, a coordinator that restarts or moves is back.
const RECONNECTS_MAX: u32 = 600;

/// Time between two calls.
const RECONNECT_EVERY: Duration = Duration::from_secs(1);

/// Refusals in a row of a caller that was let in before: by then, a token that is being replaced is in its file, too.
const REFUSALS_MAX: u32 = 30;

/// The views of a run.
pub struct ViewFeed<'a> {
    control: &'a dyn Control,
    run: &'a RunId,
    feed: Option<Feed<'a, BenchmarkView>>,
    failures: u32,
    /// Refusals since a view came; none may come before the first view.
    refusals: Option<u32>,
    not_before: Option<Instant>,
}

impl<'a> ViewFeed<'a> {
    pub fn of(control: &'a dyn Control, run: &'a RunId) -> Self {
        Self { control, run, feed: None, failures: 0, refusals: None, not_before: None }
    }

    /// The next view. If the coordinator goes away, waits until it is back, because the run continues without a
    /// listener. Cancel safe.
    ///
    /// # Errors
    /// An error that a retry cannot fix, or [`RECONNECTS_MAX`] in a row.
    pub async fn next(&mut self) -> Result<BenchmarkView, ServiceError> {
        loop {
            if let Some(not_before) = self.not_before {
                tokio::time::sleep_until(not_before).await;
                self.not_before = None;
            }
            let (control, run) = (self.control, self.run);
            let feed = self.feed.get_or_insert_with(|| control.watch(run));
            match feed.next().await {
                Some(Ok(view)) => {
                    (self.failures, self.refusals) = (0, Some(0));
                    return Ok(view);
                }
                Some(Err(error)) if error.code.is_transient() && self.failures < RECONNECTS_MAX => {
                    tracing::info!(%error, "the coordinator does not answer");
                }
                Some(Err(error)) if error.code == ErrorCode::Denied && self.may_be_renewed() => {
                    tracing::info!(%error, "waiting for a token that replaces this one");
                }
                Some(Err(error)) => return Err(error),
                // A feed ends with its run, or when its coordinator stops.
                None => {}
            }
            self.failures += 1;
            self.feed = None;
            self.not_before = Some(Instant::now() + RECONNECT_EVERY);
        }
    }
    /// Whether a refusal may be that of a token that is being replaced.
    fn may_be_renewed(&mut self) -> bool {
        self.refusals = self.refusals.map(|refusals| refusals + 1);
        self.refusals.is_some_and(|refusals| refusals <= REFUSALS_MAX)
    }
}
