//! The state of a call in flight, for code that must decide before the call ends, such as a circuit breaker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

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

/// The latest call of one dialogue. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Observed>);

#[derive(Debug, Default)]
struct Observed {
    calls: Mutex<Calls>,
    /// Told when the first token of the latest call has come.
    begun: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    /// When the latest call was sent, and its state.
    latest: Option<(Instant, CallStage)>,
    /// The latest call has neither ended nor brought a token.
    awaits_token: bool,
    /// How long each call took to its first token, of those that had one.
    first_tokens: Vec<Duration>,
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
        {
            let mut calls = self.calls();
            let Calls { latest, awaits_token, first_tokens } = &mut *calls;
            let (Some((sent, stage)), true) = (latest.as_mut(), *awaits_token) else { return };
            (*stage, *awaits_token) = (CallStage::Answered, false);
            first_tokens.push(sent.elapsed());
        }
        self.0.begun.notify_one();
    }

    /// The call was answered to its end.
    pub fn answered(&self) {
        self.met(CallStage::Answered);
        self.calls().awaits_token = false;
    }

    /// Waits until the first token of the latest call has come. One at a time may wait.
    pub async fn begun(&self) {
        loop {
            let told = self.0.begun.notified();
            if self.has_begun() {
                return;
            }
            told.await;
        }
    }

    /// How long calls took to their first tokens, of those that were streamed, since this was last asked.
    pub fn take_first_tokens(&self) -> Vec<Duration> {
        std::mem::take(&mut self.calls().first_tokens)
    }

    fn has_begun(&self) -> bool {
        let calls = self.calls();
        matches!(calls.latest, Some((_, CallStage::Answered))) && !calls.awaits_token
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_silent_until_its_first_token_or_its_end() {
        let progress = Progress::default();
        assert_eq!(progress.silent_since(), None);
        progress.sent();
        let sent = progress.latest().map(|(sent, _)| sent);
        // The headers of a stream come before its first token.
        progress.met(CallStage::Answered);
        assert_eq!((progress.silent_since(), progress.has_begun()), (sent, false));
        progress.token();
        progress.token();
        assert_eq!((progress.silent_since(), progress.has_begun()), (None, true));
        assert_eq!((progress.take_first_tokens().len(), progress.take_first_tokens().len()), (1, 0));
        progress.sent();
        assert!(!progress.has_begun(), "that was another call");
        progress.met(CallStage::Failed);
        progress.token();
        assert_eq!((progress.silent_since(), progress.has_begun()), (None, false));
        progress.sent();
        progress.answered();
        assert_eq!((progress.silent_since(), progress.take_first_tokens()), (None, Vec::new()), "no stream");
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_the_first_token_of_the_latest_call_only() {
        let progress = Progress::default();
        progress.sent();
        progress.token();
        progress.begun().await;
        progress.sent();
        let (seen, ()) = tokio::join!(
            async {
                progress.begun().await;
                progress.silent_since()
            },
            async {
                tokio::task::yield_now().await;
                assert!(progress.silent_since().is_some(), "the token before is forgotten");
                progress.token();
            }
        );
        assert_eq!(seen, None);
    }
}
