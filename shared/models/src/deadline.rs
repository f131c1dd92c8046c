//! Detects calls that take too long: no first token, no further token, or no end.
//!
//! A total limit alone is not enough. A vLLM stopped with SIGTERM leaves streams open without data and without an
//! end, and a server whose engine hangs still answers `/health`; only tokens show progress.

use std::time::Duration;

use domain::{FailureCause, RetryAdvice};
use tokio::time::Instant;

use crate::error::CallError;

/// How long a stream may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallLimits {
    /// From the request to the first token. A full server queues requests, so this is long.
    pub first_token: Duration,
    /// Between two tokens.
    pub next_token: Duration,
}

impl Default for StallLimits {
    fn default() -> Self {
        Self { first_token: Duration::from_secs(300), next_token: Duration::from_secs(60) }
    }
}

/// The deadlines of one call. A plain state machine that takes the time as an argument.
#[derive(Clone, Copy, Debug)]
pub struct CallClock {
    started: Instant,
    total: Duration,
    stall: Option<StallLimits>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl CallClock {
    /// A call that starts now and streams.
    pub fn streaming(now: Instant, total: Duration, stall: StallLimits) -> Self {
        Self { started: now, total, stall: Some(stall), first_token: None, last_token: None }
    }

    /// A call that starts now and does not stream: its progress is invisible.
    pub fn whole(now: Instant, total: Duration) -> Self {
        Self { started: now, total, stall: None, first_token: None, last_token: None }
    }

    /// A token arrived.
    pub fn token(&mut self, now: Instant) {
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
    }

    /// Time from the start to the first token, if there was one.
    pub fn first_token(&self) -> Option<Duration> {
        self.first_token.map(|first| first.duration_since(self.started))
    }

    /// When to give up, unless a token arrives before.
    pub fn limit(&self) -> Instant {
        // Without the cap, adding a far limit to the clock could overflow.
        let end = self.started + self.total.min(FOREVER);
        match (self.stall, self.last_token) {
            (None, _) => end,
            (Some(stall), None) => end.min(self.started + stall.first_token.min(FOREVER)),
            (Some(stall), Some(last)) => end.min(last + stall.next_token.min(FOREVER)),
        }
    }

    /// The error for a call that reached its [`CallClock::limit`].
    ///
    /// A stall is the server's fault and worth a retry. A model that was still writing when the total time was up
    /// would do so again.
    pub fn timeout(&self) -> CallError {
        let end = self.started + self.total.min(FOREVER);
        let total = self.total.as_secs_f64();
        let (retry, message) = match (self.stall, self.last_token) {
            (Some(_), Some(_)) if self.limit() == end => {
                (RetryAdvice::No, format!("the answer was not complete after {total} s"))
            }
            (Some(stall), Some(_)) => (
                RetryAdvice::Transient,
                format!("the stream stalled: no token for {} s", stall.next_token.as_secs_f64()),
            ),
            (Some(stall), None) if self.limit() < end => (
                RetryAdvice::Transient,
                format!("no token within {} s of the request", stall.first_token.as_secs_f64()),
            ),
            _ => (RetryAdvice::Transient, format!("no answer within {total} s")),
        };
        CallError::new(FailureCause::Timeout, retry, message)
    }

    /// Runs `work` until the limit.
    ///
    /// # Errors
    /// [`CallClock::timeout`] if the limit comes first.
    pub async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, CallError> {
        tokio::time::timeout_at(self.limit(), work).await.map_err(|_| self.timeout())
    }
}

/// A hundred years: stands for "no limit".
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: StallLimits =
        StallLimits { first_token: Duration::from_secs(30), next_token: Duration::from_secs(5) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_token_moves_the_limit_until_the_whole_time_is_up() {
        let start = Instant::now();
        let mut clock = CallClock::streaming(start, secs(60), STALL);
        assert_eq!(clock.limit(), start + secs(30));
        assert!(clock.timeout().message.contains("no token within 30 s"));
        clock.token(start + secs(29));
        assert_eq!(clock.limit(), start + secs(34));
        assert!(clock.timeout().message.contains("stalled"));
        assert_eq!(clock.timeout().retry, RetryAdvice::Transient);
        clock.token(start + secs(58));
        assert_eq!(clock.limit(), start + secs(60));
        assert_eq!(clock.timeout().retry, RetryAdvice::No);
    }

    #[test]
    fn without_a_stream_only_the_whole_time_counts() {
        let start = Instant::now();
        let clock = CallClock::whole(start, secs(60));
        assert_eq!(clock.limit(), start + secs(60));
        assert_eq!(clock.timeout().retry, RetryAdvice::Transient);
        assert_eq!(clock.timeout().cause, FailureCause::Timeout);
        // Does not overflow.
        let _ = CallClock::whole(start, Duration::MAX).limit();
    }
}
