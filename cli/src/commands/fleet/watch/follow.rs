//! A run as its coordinator tells it, again and again, through restarts of the coordinator.

use std::time::Duration;

use domain::control::{Control, Feed, RunView};
use domain::{RunId, ServiceError};
use futures::StreamExt;
use tokio::time::Instant;

/// Calls that may fail in a row: a coordinator that is restarted, or moved, is back by then.
const RECONNECTS_MAX: u32 = 600;

/// Between two of them.
const RECONNECT_EVERY: Duration = Duration::from_secs(1);

/// The views of a run.
pub struct Views<'a> {
    control: &'a dyn Control,
    run: &'a RunId,
    feed: Option<Feed<'a, RunView>>,
    failures: u32,
    not_before: Option<Instant>,
}

impl<'a> Views<'a> {
    pub fn of(control: &'a dyn Control, run: &'a RunId) -> Self {
        Self { control, run, feed: None, failures: 0, not_before: None }
    }

    /// The next view. A coordinator that goes away is waited for: the run goes on without a listener. May be dropped and
    /// called again at any time.
    ///
    /// # Errors
    /// One that repetition does not mend, or [`RECONNECTS_MAX`] in a row.
    pub async fn next(&mut self) -> Result<RunView, ServiceError> {
        loop {
            if let Some(not_before) = self.not_before {
                tokio::time::sleep_until(not_before).await;
                self.not_before = None;
            }
            let (control, run) = (self.control, self.run);
            let feed = self.feed.get_or_insert_with(|| control.watch(run));
            match feed.next().await {
                Some(Ok(view)) => {
                    self.failures = 0;
                    return Ok(view);
                }
                Some(Err(error)) if error.code.is_transient() && self.failures < RECONNECTS_MAX => {
                    tracing::info!(%error, "the coordinator does not answer");
                }
                Some(Err(error)) => return Err(error),
                // A feed ends with its run, or with its coordinator.
                None => {}
            }
            self.failures += 1;
            self.feed = None;
            self.not_before = Some(Instant::now() + RECONNECT_EVERY);
        }
    }
}
