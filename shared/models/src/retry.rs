//! Retries calls that failed in transport, and only those.
//!
//! A call that returned an answer is never repeated, however bad the answer: that would be best-of-n. Every failed
//! attempt is returned for the record.

use std::time::Duration;

use domain::dialogue::FailedCall;
use domain::seed::dialogue_seed;
use domain::{Backoff, RetryAdvice};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest};
use crate::error::CallError;

/// How often a call is retried, and with which delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum attempts after a temporary fault (broken connection, stall, 5xx), including the first. Enough for a
    /// gateway whose server is gone for half a minute.
    pub attempts_max: u32,
    /// Maximum attempts while the server is full or limits the rate (503, 429), including the first. More than for
    /// faults, because this passes when other calls finish.
    pub busy_attempts_max: u32,
    /// Maximum attempts while the server is unreachable, including the first. As many as for a full server: a
    /// restarting server loads its model for minutes, and the dialogues of a run must not fail meanwhile.
    pub absent_attempts_max: u32,
    /// Delay after the first failure; doubles with each further one.
    pub delay_first: Duration,
    /// Maximum delay of the doubling.
    pub delay_max: Duration,
    /// Maximum delay accepted from a server's `Retry-After`; a longer one is shortened to this.
    pub retry_after_max: Duration,
    /// No attempt begins later than this after the first one.
    pub total_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 8,
            busy_attempts_max: 60,
            absent_attempts_max: 60,
            delay_first: Duration::from_millis(500),
            delay_max: Duration::from_secs(30),
            retry_after_max: Duration::from_secs(120),
            total_max: Duration::from_secs(1800),
        }
    }
}

/// Counts the attempts of one call and computes the delays between them. A plain state machine.
#[derive(Clone, Debug)]
pub struct RetryState<'a> {
    policy: &'a RetryPolicy,
    /// Delays where the server asks for none.
    doubling: Backoff,
    /// Added to a delay that the server asks for, because clients that were refused together must not return together.
    jitter: Backoff,
    faults: u32,
    refusals: u32,
    absences: u32,
}

impl<'a> RetryState<'a> {
    /// Equal seeds give equal delays.
    pub fn new(policy: &'a RetryPolicy, jitter_seed: u64) -> Self {
        let first = policy.delay_first;
        Self {
            policy,
            doubling: Backoff::seeded(first / 2, policy.delay_max, jitter_seed).at_least_half(),
            jitter: Backoff::seeded(first / 2, first, jitter_seed),
            faults: 0,
            refusals: 0,
            absences: 0,
        }
    }

    /// Records a failed attempt, `elapsed` after the first one began. Returns the delay before the next attempt, or
    /// `None` if there is none.
    pub fn after(&mut self, retry: RetryAdvice, elapsed: Duration) -> Option<Duration> {
        let (count, count_max, asked) = match retry {
            RetryAdvice::No => return None,
            RetryAdvice::Transient => (&mut self.faults, self.policy.attempts_max, None),
            RetryAdvice::Unreachable => (&mut self.absences, self.policy.absent_attempts_max, None),
            RetryAdvice::RateLimited { after } => (&mut self.refusals, self.policy.busy_attempts_max, after),
        };
        *count += 1;
        if *count >= count_max {
            return None;
        }
        // Every failure doubles, also those after which the server decides.
        let doubled = self.doubling.next_delay();
        let delay = match asked {
            Some(asked) => asked.min(self.policy.retry_after_max) + self.jitter.next_delay(),
            None => doubled,
        };
        (elapsed.saturating_add(delay) <= self.policy.total_max).then_some(delay)
    }
}

/// Retries until there is an answer, the error allows no retry, or the policy is exhausted. `now` gives the
/// wall-clock times of failed attempts.
///
/// Returns a reply or the last error, and every failed attempt, oldest first, so that on an error the last one is the error
/// itself.
///
/// Dropping the future ends the attempts.
pub async fn complete_with_retry(
    model: &dyn ChatModel,
    request: ChatRequest,
    policy: &RetryPolicy,
    now: impl Fn() -> Timestamp,
) -> (Result<ChatReply, CallError>, Vec<FailedCall>) {
    let started = Instant::now();
    let mut failed = Vec::new();
    // Computed on the first failure only, because the hash is the most expensive step here.
    let mut backoff = None;
    let mut bought = None;
    loop {
        request.progress.sent();
        let error = match model.complete(request.clone()).await {
            Ok(reply) => {
                request.progress.answered();
                return (Ok(reply), failed);
            }
            Err(error) => error,
        };
        request.progress.failed(&error);
        failed.push(error.to_failed_call(now()));
        // Whoever sends the same twice sends it a third time, and has it paid.
        let digest = error.bought.as_ref().and_then(|bought| bought.digest);
        let is_shown = digest.is_some() && digest == bought;
        if is_shown && error.retry == RetryAdvice::Transient {
            return (Err(error), failed);
        }
        bought = digest;
        let jitter_seed = || dialogue_seed(u64::from(request.round), &request.key);
        let backoff = backoff.get_or_insert_with(|| RetryState::new(policy, jitter_seed()));
        match backoff.after(error.retry, started.elapsed()) {
            Some(delay) => tokio::time::sleep(delay).await,
            None => return (Err(error), failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use domain::{FailureCause, Usage};
    use proptest::prelude::*;

    use super::*;
    use crate::chat::ModelIdentity;
    use crate::chat::tests::request;

    /// A model that returns these replies and errors in the order of the calls.
    struct Scripted(Mutex<VecDeque<Result<ChatReply, CallError>>>, ModelIdentity);

    #[async_trait::async_trait]
    impl ChatModel for Scripted {
        async fn complete(&self, _: ChatRequest) -> Result<ChatReply, CallError> {
            self.0.lock().unwrap().pop_front().expect("the script goes on")
        }

        fn identity(&self) -> &ModelIdentity {
            &self.1
        }
    }

    fn quick() -> RetryPolicy {
        RetryPolicy { delay_first: Duration::from_micros(10), ..RetryPolicy::default() }
    }

    fn fault(cause: FailureCause) -> Result<ChatReply, CallError> {
        Err(CallError::new(cause, RetryAdvice::Transient, cause.as_str()))
    }

    async fn ask(
        script: Vec<Result<ChatReply, CallError>>,
    ) -> (Result<ChatReply, CallError>, Vec<FailedCall>) {
        let identity = ModelIdentity { connector: "scripted", requested: "m".to_owned(), endpoint: None };
        let model = Scripted(Mutex::new(script.into()), identity);
        complete_with_retry(&model, request("?"), &quick(), || Timestamp::UNIX_EPOCH).await
    }

    #[tokio::test]
    async fn faults_of_transport_are_repeated_and_kept() {
        let (reply, failed) = ask(vec![
            fault(FailureCause::Connection),
            fault(FailureCause::Aborted),
            Ok(ChatReply::text("yes")),
        ])
        .await;
        assert_eq!(reply.unwrap().answer.text, "yes");
        let causes: Vec<_> = failed.iter().map(|call| call.cause).collect();
        assert_eq!(causes, [FailureCause::Connection, FailureCause::Aborted]);
    }

    #[tokio::test]
    async fn other_errors_are_final() {
        let refusal = CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, "too long");
        let (reply, failed) = ask(vec![Err(refusal.clone()), Ok(ChatReply::text("never asked"))]).await;
        assert_eq!(reply.unwrap_err(), refusal);
        assert_eq!(failed.len(), 1);
    }

    #[tokio::test]
    async fn an_empty_answer_is_an_answer() {
        let (reply, failed) = ask(vec![Ok(ChatReply::text("")), Ok(ChatReply::text("better"))]).await;
        assert_eq!(reply.unwrap().answer.text, "");
        assert!(failed.is_empty());
    }

    #[tokio::test]
    async fn attempts_are_bounded() {
        let (reply, failed) = ask((0..10).map(|_| fault(FailureCause::Server)).collect()).await;
        assert!(reply.is_err());
        assert_eq!(failed.len(), 8);
    }

    #[tokio::test]
    async fn what_came_twice_in_the_same_words_is_not_bought_a_third_time() {
        let bought = |digest: u64, retry| {
            let error = CallError::new(FailureCause::Server, retry, "the answer has no choices");
            Err(error.for_nothing(digest, Usage::default()))
        };
        let again = RetryAdvice::Transient;
        let (reply, failed) = ask([1, 2, 2, 3].map(|digest| bought(digest, again)).into()).await;
        assert!(reply.is_err());
        assert_eq!(failed.len(), 3);
        let busy = RetryAdvice::RateLimited { after: None };
        let mut script: Vec<_> = (0..9).map(|_| bought(1, busy)).collect();
        script.push(Ok(ChatReply::text("yes")));
        assert_eq!(
            ask(script).await.0.unwrap().answer.text,
            "yes",
            "a full server says the same as long as it is full"
        );
    }

    #[test]
    fn a_server_that_takes_a_quarter_of_an_hour_to_return_is_waited_for() {
        let policy = RetryPolicy::default();
        let mut backoff = RetryState::new(&policy, 1);
        // It dies with the call, which costs a fault of the few; then nobody listens.
        let mut elapsed = backoff.after(RetryAdvice::Transient, Duration::ZERO).unwrap();
        while elapsed < Duration::from_secs(15 * 60) {
            elapsed += backoff.after(RetryAdvice::Unreachable, elapsed).unwrap();
        }
        assert!(backoff.after(RetryAdvice::Transient, elapsed).is_some());
    }

    #[test]
    fn the_server_decides_the_delay_within_bounds() {
        let policy = RetryPolicy::default();
        let mut backoff = RetryState::new(&policy, 1);
        let mut wait = |seconds| {
            let after = Some(Duration::from_secs(seconds));
            backoff.after(RetryAdvice::RateLimited { after }, Duration::ZERO).unwrap()
        };
        let asked = wait(7);
        assert!(asked >= Duration::from_secs(7) && asked <= Duration::from_millis(7_500), "{asked:?}");
        let capped = wait(100_000);
        assert!(capped >= policy.retry_after_max && capped <= policy.retry_after_max + policy.delay_first);
    }

    #[test]
    fn a_full_or_absent_server_is_asked_more_often_than_a_faulty_one() {
        let policy = RetryPolicy { total_max: Duration::MAX, ..RetryPolicy::default() };
        let attempts = |retry| {
            let mut backoff = RetryState::new(&policy, 1);
            1 + (0..1000).take_while(|_| backoff.after(retry, Duration::ZERO).is_some()).count()
        };
        assert_eq!(attempts(RetryAdvice::Transient), 8);
        assert_eq!(attempts(RetryAdvice::RateLimited { after: None }), 60);
        assert_eq!(attempts(RetryAdvice::Unreachable), 60);
        assert_eq!(attempts(RetryAdvice::No), 1);
    }

    proptest! {
        #[test]
        fn faults_of_half_a_minute_are_outlived(seed: u64) {
            let policy = RetryPolicy::default();
            let mut backoff = RetryState::new(&policy, seed);
            let mut elapsed = Duration::ZERO;
            while elapsed < Duration::from_secs(30) {
                elapsed += backoff.after(RetryAdvice::Transient, elapsed).expect("one more attempt");
            }
        }

        #[test]
        fn delays_are_repeatable_bounded_and_never_pass_the_total(
            seed: u64, failures in proptest::collection::vec((0_u8..4, 0_u64..5_000), 1..80)
        ) {
            let policy = RetryPolicy::default();
            let (mut one, mut two) = (RetryState::new(&policy, seed), RetryState::new(&policy, seed));
            for (kind, elapsed) in failures {
                let retry = match kind {
                    0 => RetryAdvice::Transient,
                    1 => RetryAdvice::RateLimited { after: None },
                    2 => RetryAdvice::Unreachable,
                    _ => RetryAdvice::RateLimited { after: Some(Duration::from_secs(elapsed)) },
                };
                let elapsed = Duration::from_secs(elapsed);
                let delay = one.after(retry, elapsed);
                prop_assert_eq!(delay, two.after(retry, elapsed));
                if let Some(delay) = delay {
                    prop_assert!(delay <= policy.retry_after_max + policy.delay_first);
                    prop_assert!(elapsed + delay <= policy.total_max);
                }
            }
        }
    }
}
