//! Injected faults: a list of rules; the first that applies to a request decides.
//!
//! Rules that count conversations or draw by chance depend on the content of requests, never on time or on other
//! requests, so the same requests meet the same faults at any concurrency. A repeated request is a new chance: its
//! attempt number belongs to the draw, or no retry would ever succeed.

mod attempts;

use serde::{Deserialize, Serialize};

use crate::answers::SimAsk;
use crate::bounds::ConfigError;
use crate::identity::Draw;

use attempts::SeenAttempts;

/// The faults of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    /// Seed of the rules with a probability; 0 by default.
    pub seed: u64,
    /// The rules in order of precedence.
    pub rules: Vec<FaultRule>,
}

/// A fault and the requests that it affects. Only requests to models are affected (texts, vectors, classes); other
/// paths always work, so that the server looks healthy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    pub when: FaultWhen,
    pub fault: FaultKind,
    /// Only requests for this served model; all by default.
    #[serde(default)]
    pub model: Option<String>,
    /// Only requests whose first prompt contains this text; all by default. Selects single conversations.
    #[serde(default)]
    pub prompt_contains: Option<String>,
}

impl FaultRule {
    /// A rule for all models and prompts.
    pub fn new(when: FaultWhen, fault: FaultKind) -> Self {
        Self { when, fault, model: None, prompt_contains: None }
    }
}

/// Which requests a fault affects, among those that match `model` and `prompt_contains`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultWhen {
    /// All.
    Always,
    /// The n-th that the server receives for any model, from 1. The one trigger that depends on the order of arrival.
    Request(u64),
    /// The n-th of each conversation, from 1, retries and follow-ups alike. A conversation is a model, a seed and a first
    /// prompt; the server remembers the latest 100 000 of them.
    NthOfConversation(u32),
    /// Each with this probability, 0 to 1, drawn from the plan's seed, the request's content and how often the same
    /// request came before.
    Probability(f64),
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// An error reply with the body that vLLM, or a gateway before it, sends with this status.
    Status {
        /// HTTP status, 400 to 599.
        code: u16,
        /// Seconds of the header `Retry-After`; none by default.
        #[serde(default)]
        retry_after_s: Option<u32>,
    },
    /// No reply at all while `/health` says all is well. The request counts as running.
    Hang,
    /// This many tokens of a stream, then the connection is closed. Without streaming the body ends halfway.
    CutStream {
        /// Tokens sent.
        after_tokens: u32,
    },
    /// The connection is closed without any reply.
    Reset,
    /// A valid answer that names another model.
    WrongModel {
        /// The name reported.
        name: String,
    },
    /// Status 200 and a body of bytes that are neither JSON nor UTF-8.
    Garbage,
    /// Half an answer with the finish reason `abort`, as when vLLM's engine is stopped. No effect on vectors and classes.
    Abort,
}

impl FaultPlan {
    pub(crate) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        for (index, rule) in self.rules.iter().enumerate() {
            let key = format!("{key}.rules[{index}]");
            match rule.when {
                FaultWhen::Always => {}
                FaultWhen::Request(n) => {
                    ConfigError::in_range(format!("{key}.when.request"), n, 1, u64::MAX)?;
                }
                FaultWhen::NthOfConversation(n) => {
                    ConfigError::in_range(format!("{key}.when.nth_of_conversation"), n, 1, u32::MAX)?;
                }
                FaultWhen::Probability(p) => {
                    ConfigError::in_range(format!("{key}.when.probability"), p, 0.0, 1.0)?;
                }
            }
            if let FaultKind::Status { code, .. } = rule.fault {
                ConfigError::in_range(format!("{key}.fault.status.code"), code, 400, 599)?;
            }
        }
        Ok(())
    }
}

/// An active fault plan.
#[derive(Debug)]
pub(crate) struct Faults {
    plan: FaultPlan,
    attempts: SeenAttempts,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { plan, attempts: SeenAttempts::default() }
    }

    /// The fault for the `arrival`-th request (from 1). Call it once per request, because it counts attempts.
    pub(crate) fn decide(&self, arrival: u64, ask: &SimAsk<'_>) -> Option<&FaultKind> {
        if self.plan.rules.is_empty() {
            return None;
        }
        let attempt = self.attempts.count(ask.identity);
        let applies = |(index, rule): &(usize, &FaultRule)| {
            rule.model.as_deref().is_none_or(|model| model == ask.model)
                && rule.prompt_contains.as_deref().is_none_or(|text| ask.first_prompt().contains(text))
                && match rule.when {
                    FaultWhen::Always => true,
                    FaultWhen::Request(n) => n == arrival,
                    FaultWhen::NthOfConversation(n) => n == attempt.of_conversation,
                    FaultWhen::Probability(p) => {
                        let keys =
                            [self.plan.seed, *index as u64, ask.identity.request, attempt.of_request.into()];
                        Draw::new(&keys).unit() < p
                    }
                }
        };
        self.plan.rules.iter().enumerate().find(applies).map(|(_, rule)| &rule.fault)
    }
}

#[cfg(test)]
mod tests {
    use domain::Message;

    use super::*;

    fn faults(rules: Vec<FaultRule>) -> Faults {
        Faults::new(FaultPlan { seed: 1, rules })
    }

    #[test]
    fn the_nth_request_of_a_conversation_is_met_in_any_order() {
        let plan = faults(vec![FaultRule::new(FaultWhen::NthOfConversation(2), FaultKind::Hang)]);
        let prompts = [[Message::user("a")], [Message::user("b")]];
        let hit = |at: usize| plan.decide(1, &SimAsk::new("m", &prompts[at], 0)).is_some();
        assert_eq!([hit(0), hit(1), hit(1), hit(0), hit(0)], [false, false, true, true, false]);
    }

    #[test]
    fn chance_is_a_function_of_request_and_attempt() {
        let draw = || {
            let plan = faults(vec![FaultRule::new(FaultWhen::Probability(0.3), FaultKind::Hang)]);
            move |seed: i64| plan.decide(1, &SimAsk::new("m", &[Message::user("p")], seed)).is_some()
        };
        let (forward, backward) = (draw(), draw());
        let first: Vec<bool> = (0..2000).map(&forward).collect();
        let mut second: Vec<bool> = (0..2000).rev().map(&backward).collect();
        second.reverse();
        assert_eq!(first, second);
        let share = first.iter().filter(|&&hit| hit).count() as f64 / 2000.0;
        assert!((share - 0.3).abs() < 0.05, "{share}");
        // Whoever was hit gets through after some retries.
        assert!((0..2000).all(|seed| (0..30).any(|_| !forward(seed))));
    }

    #[test]
    fn filters_and_precedence_hold() {
        let rule = |model: Option<&str>, text: Option<&str>, fault| FaultRule {
            model: model.map(Into::into),
            prompt_contains: text.map(Into::into),
            ..FaultRule::new(FaultWhen::Always, fault)
        };
        let plan = faults(vec![
            rule(Some("m"), Some("seven"), FaultKind::Reset),
            rule(None, Some("seven"), FaultKind::Hang),
            FaultRule::new(FaultWhen::Request(9), FaultKind::Garbage),
        ]);
        let decide =
            |model, prompt, arrival| plan.decide(arrival, &SimAsk::new(model, &[Message::user(prompt)], 0));
        assert_eq!(decide("m", "case seven", 1), Some(&FaultKind::Reset));
        assert_eq!(decide("n", "case seven", 1), Some(&FaultKind::Hang));
        assert_eq!(decide("m", "case eight", 9), Some(&FaultKind::Garbage));
        assert_eq!(decide("m", "case eight", 8), None);
    }
}
