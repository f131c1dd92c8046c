//! The state of a call in flight, for code that must decide before the call ends, such as a circuit breaker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::machine;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::error::CallError;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// The server has said nothing yet.
    Silent,
    /// The server has begun to answer, or has answered. Its headers may come long before its first token.
    Answered,
    /// The call failed; another one may follow.
    Failed,
}

/// Why a call is made again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingCall {
    /// The last failure in a few words, none of them the server's.
    pub why: String,
    /// The same in all its words.
    pub said: String,
    /// When it failed so for the first time.
    pub since: Timestamp,
    /// Attempts that have failed.
    pub attempts: u32,
}

impl std::fmt::Display for FailingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} times since {})", self.said, self.attempts, self.since.strftime("%H:%M:%S UTC"))
    }
}

/// The latest call of one dialogue. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    /// When the latest call was sent, and its state.
    latest: Option<(Instant, CallStage)>,
    /// The latest call has neither ended nor brought a token.
    awaits_token: bool,
    /// When the quota is renewed that the latest call has met.
    renewed_at: Option<Instant>,
    /// A call was answered to its end, by the right model.
    was_answered: bool,
    /// Set from the first failure of the latest call until a token of it comes.
    failing: Option<FailingCall>,
}

impl Progress {
    /// When the latest call was sent, and its state. `None` before the first call, and while one waits for its rate
    /// budget.
    pub fn latest(&self) -> Option<(Instant, CallStage)> {
        self.calls().latest
    }

    /// When the latest call was sent, if it is under way and no token of it has come.
    pub fn silent_since(&self) -> Option<Instant> {
        let calls = self.calls();
        calls.latest.filter(|_| calls.awaits_token).map(|(sent, _)| sent)
    }

    /// A call waits for its rate budget.
    pub fn waits(&self) {
        let mut calls = self.calls();
        (calls.latest, calls.awaits_token) = (None, false);
    }

    /// A call was sent.
    pub fn sent(&self) {
        let mut calls = self.calls();
        (calls.latest, calls.awaits_token) = (Some((Instant::now(), CallStage::Silent)), true);
    }

    /// The call has failed; it may be made again.
    pub fn failed(&self, error: &CallError) {
        self.met(CallStage::Failed);
        let (why, said) = (error.brief(), error.to_string());
        let mut calls = self.calls();
        calls.renewed_at = error.renewed_in.and_then(|wait| Instant::now().checked_add(wait));
        let before = calls.failing.take();
        let attempts = before.as_ref().map_or(0, |failing| failing.attempts).saturating_add(1);
        let since = before.filter(|failing| failing.why == why).map(|failing| failing.since);
        calls.failing = Some(FailingCall { why, said, since: since.unwrap_or_else(machine::now), attempts });
    }

    /// Why the latest call is made again; `None` if it has not failed, or is answered now.
    pub fn failing(&self) -> Option<FailingCall> {
        self.calls().failing.clone()
    }

    /// The call has reached this state.
    pub fn met(&self, stage: CallStage) {
        let mut calls = self.calls();
        if let Some((_, known)) = calls.latest.as_mut() {
            *known = stage;
        }
        calls.awaits_token &= stage != CallStage::Failed;
    }

    /// A token of the call has come. Only connectors that stream know.
    pub fn token(&self) {
        let mut calls = self.calls();
        let Calls { latest: Some((_, stage)), awaits_token, failing, .. } = &mut *calls else { return };
        if std::mem::take(awaits_token) {
            (*stage, *failing) = (CallStage::Answered, None);
        }
    }

    /// The call was answered to its end.
    pub fn answered(&self) {
        self.met(CallStage::Answered);
        let mut calls = self.calls();
        (calls.awaits_token, calls.was_answered, calls.failing) = (false, true, None);
    }

    /// Whether a call of the dialogue was answered to its end.
    pub fn was_answered(&self) -> bool {
        self.calls().was_answered
    }

    /// When the quota is renewed that the latest call has met, as far as its server says so.
    pub fn renewed_at(&self) -> Option<Instant> {
        self.calls().renewed_at
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use domain::{FailureCause, RetryAdvice};

    use super::*;

    #[test]
    fn a_call_is_silent_until_its_first_token_or_its_end() {
        let progress = Progress::default();
        assert_eq!(progress.silent_since(), None);
        progress.sent();
        let sent = progress.latest().map(|(sent, _)| sent);
        // The headers of a stream come before its first token.
        progress.met(CallStage::Answered);
        assert_eq!(progress.silent_since(), sent);
        progress.token();
        assert_eq!(progress.silent_since(), None);
        progress.sent();
        progress.failed(&CallError::new(FailureCause::Connection, RetryAdvice::No, "broken"));
        progress.token();
        assert_eq!(progress.silent_since(), None);
        assert!(matches!(progress.latest(), Some((_, CallStage::Failed))), "that was another call");
        progress.sent();
        progress.answered();
        assert_eq!(progress.silent_since(), None, "no stream");
    }

    #[test]
    fn a_call_fails_until_a_token_comes_and_says_since_when_it_fails_so() {
        let progress = Progress::default();
        let refused =
            CallError::new(FailureCause::Connection, RetryAdvice::Unreachable, "a: Refused (os error 1)");
        for _ in 0..2 {
            progress.sent();
            progress.failed(&refused);
        }
        let failing = progress.failing().unwrap();
        assert_eq!((failing.why.as_str(), failing.attempts), ("refused", 2));
        let busy = CallError::new(FailureCause::RateLimited, RetryAdvice::No, "their words").with_status(429);
        progress.sent();
        progress.failed(&busy);
        let failing = progress.failing().unwrap();
        assert_eq!((failing.why.as_str(), failing.attempts), ("rate-limited (HTTP 429)", 3));
        progress.sent();
        assert!(progress.failing().is_some(), "nothing has come yet");
        progress.token();
        assert_eq!(progress.failing(), None);
        assert!(!progress.was_answered());
        progress.answered();
        assert_eq!((progress.failing(), progress.was_answered()), (None, true));
    }
}
