//! Detects calls that take too long: no first token, no further token, or no end.
//!
//! A total limit alone is not enough. A vLLM stopped with SIGTERM leaves streams open without data and without an
//! end, and a server whose engine hangs still answers `/health`; only tokens show progress.

use std::time::Duration;

use domain::{FailureCause, HumanDuration, ModelLabel, RetryAdvice, TimeLimits};
use tokio::time::Instant;

use crate::error::CallError;

/// The deadlines of one call. A plain state machine that takes the time as an argument.
#[derive(Clone, Debug)]
pub struct CallClock {
    started: Instant,
    total: Duration,
    of_model: Option<OfModel>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

/// The limits of a model, and what is left of them.
#[derive(Clone, Debug)]
struct OfModel {
    limits: TimeLimits,
    label: ModelLabel,
    streams: bool,
}

impl CallClock {
    /// A call of a model that starts now, with the limits of the model and what is left of its dialogue's time. Of an answer
    /// that is not streamed, progress is invisible.
    pub fn of_model(
        now: Instant,
        limits: TimeLimits,
        label: &ModelLabel,
        left: Duration,
        streams: bool,
    ) -> Self {
        let of_model = Some(OfModel { limits, label: label.clone(), streams });
        Self { of_model, ..Self::whole(now, limits.call().min(left)) }
    }

    /// A call that starts now, and asks no model anything.
    pub fn whole(now: Instant, total: Duration) -> Self {
        // Without the cap, adding a far limit to the clock could overflow.
        Self { started: now, total: total.min(FOREVER), of_model: None, first_token: None, last_token: None }
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
        let silence = match (&self.of_model, self.last_token) {
            (Some(OfModel { limits, streams: true, .. }), None) => Some(self.started + limits.first_token()),
            (Some(OfModel { limits, streams: true, .. }), Some(last)) => Some(last + limits.between_tokens()),
            _ => None,
        };
        let end = self.started + self.total;
        silence.map_or(end, |silence| silence.min(end))
    }

    /// The error for a call that reached its [`CallClock::limit`].
    ///
    /// A stall is the server's fault and worth a retry. A model that was still writing when the total time was up
    /// would do so again.
    pub fn timeout(&self) -> CallError {
        let is_end = self.limit() == self.started + self.total;
        let (retry, what, limit, name) = match (&self.of_model, self.last_token) {
            (Some(model), Some(_)) if !is_end => (
                RetryAdvice::Transient,
                "the stream stalled: no token for",
                model.limits.between_tokens(),
                "between_tokens",
            ),
            (Some(model), None) if !is_end => {
                (RetryAdvice::Transient, "no first token within", model.limits.first_token(), "first_token")
            }
            (_, Some(_)) => (RetryAdvice::No, "the answer was not complete after", self.total, "call"),
            (_, None) => (RetryAdvice::Transient, "no answer within", self.total, "call"),
        };
        let named = match &self.of_model {
            None => String::new(),
            Some(OfModel { limits, .. }) if is_end && self.total < limits.call() => {
                ", which was left of the dialogue's time".to_owned()
            }
            Some(OfModel { label, .. }) => format!(" (`time_limits.{name}` of model {label})"),
        };
        CallError::new(FailureCause::Timeout, retry, format!("{what} {}{named}", HumanDuration(limit)))
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

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn limits() -> TimeLimits {
        serde_json::from_str(r#"{"first_token": "30s", "between_tokens": "5s", "call": "1m"}"#).unwrap()
    }

    fn clock(now: Instant, left: Duration, streams: bool) -> CallClock {
        CallClock::of_model(now, limits(), &"m".into(), left, streams)
    }

    #[test]
    fn each_token_moves_the_limit_until_the_whole_time_is_up() {
        let start = Instant::now();
        let mut clock = clock(start, Duration::MAX, true);
        assert_eq!(clock.limit(), start + secs(30));
        assert_eq!(
            clock.timeout().message,
            "no first token within 30s (`time_limits.first_token` of model m)"
        );
        clock.token(start + secs(29));
        assert_eq!(clock.limit(), start + secs(34));
        let stalled = clock.timeout();
        assert!(stalled.message.contains("no token for 5s (`time_limits.between_tokens`"), "{stalled}");
        assert_eq!(stalled.retry, RetryAdvice::Transient);
        clock.token(start + secs(58));
        assert_eq!(clock.limit(), start + secs(60));
        let ended = clock.timeout();
        assert_eq!(ended.message, "the answer was not complete after 1m (`time_limits.call` of model m)");
        assert_eq!(ended.retry, RetryAdvice::No);
    }

    #[test]
    fn without_a_stream_only_the_whole_time_counts() {
        let start = Instant::now();
        let whole = clock(start, Duration::MAX, false);
        assert_eq!(whole.limit(), start + secs(60));
        assert_eq!(
            (whole.timeout().cause, whole.timeout().retry),
            (FailureCause::Timeout, RetryAdvice::Transient)
        );
        assert_eq!(whole.timeout().message, "no answer within 1m (`time_limits.call` of model m)");
        let short = clock(start, secs(20), true);
        assert_eq!(short.timeout().message, "no answer within 20s, which was left of the dialogue's time");
        assert_eq!(CallClock::whole(start, secs(10)).timeout().message, "no answer within 10s");
        // Does not overflow.
        let _ = CallClock::whole(start, Duration::MAX).limit();
    }
}
