//! Limits calls and tokens to budgets that all workers share, and counts the calls that fail.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::exchange::{RateBudget, WorkExchange};
use domain::{FailureCause, ModelSpec, Usage};
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity};

use crate::connect::key_name;
use crate::metrics;
use domain::Backoff;

/// Maximum wait before a budget is queried again, because it may have grown.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Bytes per token of a prompt, estimated low, so that a budget is rather kept than met.
const BYTES_PER_TOKEN: usize = 3;

/// What an answer is thought to take before the first one came, in tokens.
const ANSWER_TOKENS_FIRST: u64 = 512;

/// A model at a server that is called within its rate budgets. The dialogue's deadline bounds the wait. While no coordinator is
/// reachable there are no calls, because others may be using the same key. Calls that fail are counted when they fail: a dialogue
/// that repeats its calls may end an hour later.
pub struct WithinBudget {
    model: Arc<dyn ChatModel>,
    server: Arc<str>,
    exchange: Arc<dyn WorkExchange>,
    calls: Option<RateBudget>,
    tokens: Option<RateBudget>,
    estimate: Mutex<TokenEstimate>,
}

impl WithinBudget {
    /// The model of this description; `server` is the name of its server in metrics.
    pub fn wrap(
        model: Arc<dyn ChatModel>,
        spec: &ModelSpec,
        server: Arc<str>,
        exchange: &Arc<dyn WorkExchange>,
    ) -> Arc<dyn ChatModel> {
        let budget = |limit: Option<u32>, of: &str| {
            let name = || format!("{}{of}", key_name(spec));
            limit.map(|per_minute| RateBudget { name: name(), per_minute: per_minute.max(1) })
        };
        let (calls, tokens) =
            (budget(spec.calls_per_minute, ""), budget(spec.tokens_per_minute, " in tokens"));
        let estimate = Mutex::new(TokenEstimate { answer: ANSWER_TOKENS_FIRST, owed: 0 });
        Arc::new(Self { model, server, exchange: Arc::clone(exchange), calls, tokens, estimate })
    }

    fn estimate(&self) -> MutexGuard<'_, TokenEstimate> {
        self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the budgets allow a call; what was expected of it, in tokens.
    async fn permit(&self, request: &ChatRequest) -> i64 {
        if let Some(calls) = &self.calls {
            self.take(calls, 1).await;
        }
        let Some(tokens) = &self.tokens else { return 0 };
        let bytes: usize = request.messages.iter().map(|message| message.content.len()).sum();
        let (expected, permits) = self.estimate().ask(bytes, tokens.per_minute);
        self.take(tokens, permits).await;
        expected
    }

    async fn take(&self, budget: &RateBudget, permits: u32) {
        let mut backoff = Backoff::default();
        loop {
            let wait = match self.exchange.take_rate(budget, permits).await {
                Ok(None) => return,
                Ok(Some(wait)) => wait.clamp(Duration::from_millis(1), WAIT_MAX),
                Err(error) => {
                    tracing::debug!(budget = budget.name, %error, "no permit can be had");
                    backoff.next_delay()
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

/// What calls take in tokens, as far as can be known before they are made.
struct TokenEstimate {
    /// Mean tokens of an answer, of which the late ones count most.
    answer: u64,
    /// Tokens that calls have used beyond what was taken for them; below 0 if they used less. The next call settles it.
    owed: i64,
}

impl TokenEstimate {
    /// What a call with so many bytes of texts will take, and the permits to take for it now. One that takes more than a
    /// minute's share waits for a whole one, and the next ones for the rest.
    fn ask(&mut self, bytes: usize, per_minute: u32) -> (i64, u32) {
        let expected =
            i64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(i64::MAX).saturating_add_unsigned(self.answer);
        let wanted = expected.saturating_add(self.owed);
        let permits = wanted.clamp(1, i64::from(per_minute));
        self.owe(wanted.saturating_sub(permits), per_minute);
        (expected, u32::try_from(permits).unwrap_or(per_minute))
    }

    /// A call has used these tokens, as far as its server counts them.
    fn settle(&mut self, expected: i64, usage: &Usage, per_minute: u32) {
        let Usage { prompt_tokens: Some(prompt), completion_tokens: Some(completion), .. } = *usage else {
            return;
        };
        self.answer = (self.answer.saturating_mul(7).saturating_add(completion)) / 8;
        let used = i64::try_from(prompt.saturating_add(completion)).unwrap_or(i64::MAX);
        self.owe(self.owed.saturating_add(used.saturating_sub(expected)), per_minute);
    }

    fn owe(&mut self, tokens: i64, per_minute: u32) {
        // A server may count anything.
        self.owed = tokens.clamp(-i64::from(per_minute), i64::from(per_minute));
    }
}

#[async_trait::async_trait]
impl ChatModel for WithinBudget {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let model = request.key.model.clone();
        // The counter of answers by another model begins with 0, so that its first increase is seen.
        metrics::failed_calls(model.as_str(), &self.server, FailureCause::WrongModel, 0);
        let mut expected = 0;
        if self.calls.is_some() || self.tokens.is_some() {
            request.progress.waits();
            expected = self.permit(&request).await;
            request.progress.sent();
        }
        let reply = self.model.complete(request).await;
        if let Err(error) = &reply {
            metrics::failed_calls(model.as_str(), &self.server, error.cause, 1);
        }
        let usage = match &reply {
            Ok(reply) => Some(&reply.answer.usage),
            Err(error) => error.bought.as_ref().map(|bought| &bought.usage),
        };
        if let Some((usage, tokens)) = usage.zip(self.tokens.as_ref()) {
            self.estimate().settle(expected, usage, tokens.per_minute);
        }
        reply
    }

    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes permits for a call of 300 bytes that then uses so many tokens; what was taken.
    fn call(estimate: &mut TokenEstimate, used: u64) -> u32 {
        let (expected, permits) = estimate.ask(300, 1_000);
        let usage =
            Usage { prompt_tokens: Some(used / 2), completion_tokens: Some(used / 2), ..Usage::default() };
        estimate.settle(expected, &usage, 1_000);
        permits
    }

    #[test]
    fn what_calls_use_is_taken_in_the_end_however_it_was_estimated() {
        for used in [10, 200, 900] {
            let mut estimate = TokenEstimate { answer: ANSWER_TOKENS_FIRST, owed: 0 };
            let taken: u64 = (0..200).map(|_| u64::from(call(&mut estimate, used))).sum();
            // The last calls are settled by those that follow.
            assert!(taken.abs_diff(200 * used) <= 1_000, "{taken} of {}", 200 * used);
        }
    }

    #[test]
    fn what_nobody_counts_corrects_nothing_and_no_count_blocks_the_model() {
        let mut estimate = TokenEstimate { answer: 100, owed: 0 };
        estimate.settle(200, &Usage::default(), 1_000);
        assert_eq!(estimate.ask(300, 1_000), (200, 200));
        call(&mut estimate, u64::MAX);
        assert_eq!(estimate.ask(0, 1_000).1, 1_000, "a whole minute at most");
        assert_eq!(estimate.owed, 1_000);
    }
}
