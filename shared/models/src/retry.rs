//! Repeats calls that failed for a reason of transport, and only those.
//!
//! A model's answer is never asked for again, however bad: that would be best-of-n. Every failed attempt is
//! handed back for the record.

use std::time::Duration;

use domain::dialogue::FailedCall;
use domain::seed::dialogue_seed;
use domain::{Backoff, RetryAdvice};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest};
use crate::classify::{ClassifyModel, ClassifyReply, ClassifyRequest};
use crate::embed::{EmbedModel, EmbedReply, EmbedRequest};
use crate::error::CallError;

/// How often, and after which delays, a call is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most attempts that may fail for a passing fault (broken connection, stall, 5xx), the first included.
    pub attempts_max: u32,
    /// Most attempts that a server may turn away because it is full or limits the rate (503, 429), the first
    /// included. More than of the other kind: being full is no fault and passes when others finish.
    pub busy_attempts_max: u32,
    /// Most attempts that may find nobody, the first included. As many as of a full server: one that restarts has a
    /// model to load, which takes minutes, and a run must not burn its dialogues in the meantime.
    pub absent_attempts_max: u32,
    /// Delay after the first failure; doubles with each further one.
    pub delay_first: Duration,
    /// The longest delay of the doubling.
    pub delay_max: Duration,
    /// The longest delay that a server's `Retry-After` may ask for; one that asks for more is asked again
    /// after this much.
    pub retry_after_max: Duration,
    /// No attempt begins later than this after the first one.
    pub total_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            busy_attempts_max: 60,
            absent_attempts_max: 60,
            delay_first: Duration::from_millis(500),
            delay_max: Duration::from_secs(30),
            retry_after_max: Duration::from_secs(120),
            total_max: Duration::from_secs(1800),
        }
    }
}

impl RetryPolicy {
    /// One attempt, no more.
    pub fn none() -> Self {
        Self { attempts_max: 1, busy_attempts_max: 1, absent_attempts_max: 1, ..Self::default() }
    }
}

/// What is left of one call's attempts. Takes times as arguments and waits for nothing.
#[derive(Clone, Debug)]
pub struct AttemptBudget<'a> {
    policy: &'a RetryPolicy,
    /// The delays where the server names none.
    doubling: Backoff,
    /// What is added to a delay that the server asks for: clients that were turned away together must not return together.
    jitter: Backoff,
    faults: u32,
    refusals: u32,
    absences: u32,
}

impl<'a> AttemptBudget<'a> {
    /// No attempt yet. Equal seeds give equal delays.
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

    /// An attempt failed, `elapsed` after the first one began: how long to wait before the next one, or none
    /// if this was the last.
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

/// What repeated attempts came to: a reply or the last error, and every failed attempt, oldest first, so that on an
/// error the last one is the error itself.
pub type Attempts<T> = (Result<T, CallError>, Vec<FailedCall>);

/// Asks until there is an answer, the error allows no repetition, or the policy is exhausted. `now` gives the
/// wall-clock times of the failed attempts.
///
/// Dropping the future ends the attempts.
pub async fn complete_with_retry(
    model: &dyn ChatModel,
    request: ChatRequest,
    policy: &RetryPolicy,
    now: impl Fn() -> Timestamp,
) -> Attempts<ChatReply> {
    let attempt = || model.complete(request.clone());
    repeat(attempt, policy, || dialogue_seed(u64::from(request.round), &request.key), now).await
}

/// As [`complete_with_retry`], for vectors.
pub async fn embed_with_retry(
    model: &dyn EmbedModel,
    request: EmbedRequest,
    policy: &RetryPolicy,
    now: impl Fn() -> Timestamp,
) -> Attempts<EmbedReply> {
    let attempt = || model.embed(request.clone());
    repeat(attempt, policy, || dialogue_seed(u64::from(request.round), &request.key), now).await
}

/// As [`complete_with_retry`], for classes.
pub async fn classify_with_retry(
    model: &dyn ClassifyModel,
    request: ClassifyRequest,
    policy: &RetryPolicy,
    now: impl Fn() -> Timestamp,
) -> Attempts<ClassifyReply> {
    let attempt = || model.classify(request.clone());
    repeat(attempt, policy, || dialogue_seed(u64::from(request.round), &request.key), now).await
}

/// The loop behind all of them.
async fn repeat<T, F: Future<Output = Result<T, CallError>>>(
    attempt: impl Fn() -> F,
    policy: &RetryPolicy,
    jitter_seed: impl Fn() -> u64,
    now: impl Fn() -> Timestamp,
) -> Attempts<T> {
    let started = Instant::now();
    let mut failed = Vec::new();
    // Made on the first failure only: the hash is dearer than everything else here.
    let mut budget = None;
    loop {
        let error = match attempt().await {
            Ok(reply) => return (Ok(reply), failed),
            Err(error) => error,
        };
        failed.push(error.to_failed_call(now()));
        let budget = budget.get_or_insert_with(|| AttemptBudget::new(policy, jitter_seed()));
        match budget.after(error.retry, started.elapsed()) {
            Some(delay) => tokio::time::sleep(delay).await,
            None => return (Err(error), failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::FailureCause;
    use proptest::prelude::*;

    use super::*;
    use crate::chat::tests::request;
    use crate::scripted::Scripted;

    fn quick() -> RetryPolicy {
        RetryPolicy { delay_first: Duration::from_micros(10), ..RetryPolicy::default() }
    }

    fn fault(cause: FailureCause) -> Result<ChatReply, CallError> {
        Err(CallError::new(cause, RetryAdvice::Transient, cause.as_str()))
    }

    async fn ask(
        script: Vec<Result<ChatReply, CallError>>,
    ) -> (Result<ChatReply, CallError>, Vec<FailedCall>) {
        let model = Scripted::list(script);
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
        assert_eq!(failed.len(), 4);
    }

    #[test]
    fn a_server_that_takes_a_quarter_of_an_hour_to_return_is_waited_for() {
        let policy = RetryPolicy::default();
        let mut budget = AttemptBudget::new(&policy, 1);
        // It dies with the call, which costs a fault of the few; then nobody listens.
        let mut elapsed = budget.after(RetryAdvice::Transient, Duration::ZERO).unwrap();
        while elapsed < Duration::from_secs(15 * 60) {
            elapsed += budget.after(RetryAdvice::Unreachable, elapsed).unwrap();
        }
        assert!(budget.after(RetryAdvice::Transient, elapsed).is_some());
    }

    #[test]
    fn the_server_decides_the_delay_within_bounds() {
        let policy = RetryPolicy::default();
        let mut budget = AttemptBudget::new(&policy, 1);
        let mut wait = |seconds| {
            let after = Some(Duration::from_secs(seconds));
            budget.after(RetryAdvice::RateLimited { after }, Duration::ZERO).unwrap()
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
            let mut budget = AttemptBudget::new(&policy, 1);
            1 + (0..1000).take_while(|_| budget.after(retry, Duration::ZERO).is_some()).count()
        };
        assert_eq!(attempts(RetryAdvice::Transient), 4);
        assert_eq!(attempts(RetryAdvice::RateLimited { after: None }), 60);
        assert_eq!(attempts(RetryAdvice::Unreachable), 60);
        assert_eq!(attempts(RetryAdvice::No), 1);
    }

    proptest! {
        #[test]
        fn delays_are_repeatable_bounded_and_never_pass_the_total(
            seed: u64, failures in proptest::collection::vec((0_u8..4, 0_u64..5_000), 1..80)
        ) {
            let policy = RetryPolicy::default();
            let (mut one, mut two) = (AttemptBudget::new(&policy, seed), AttemptBudget::new(&policy, seed));
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
