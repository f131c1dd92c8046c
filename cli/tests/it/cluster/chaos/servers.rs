//! What the model servers of a cluster under faults answer, and what is wrong with them.

use vllm_sim::{AnswerConfig, FaultKind, FaultPlan, FaultRule, FaultWhen, ModelConfig, Profile, SimConfig};

use crate::harness::server::MODEL;

/// The model under test of judged benchmarks, and its judges.
pub const EXTRACTS: &str = "facts";
pub const JUDGES: [&str; 2] = ["grader", "reviewer"];

/// How long a server takes to answer, in milliseconds.
const ROUND_MS: f64 = 200.0;

/// Length of an answer of [`EXTRACTS`] in tokens: no two are equal, so that each is a question to a judge.
const TOKENS: u32 = 12;

/// A server with these faults, for a file.
pub fn config(rules: &[FaultRule]) -> String {
    let says = |text: &str| AnswerConfig::Scripted { answers: vec![text.to_owned()] };
    let model = |name: &str, answers| ModelConfig {
        answers,
        profile: Profile::Fixed { round_ms: ROUND_MS },
        ..ModelConfig::new(name)
    };
    let models = vec![
        model(MODEL, says("http://example.org/people/person-00000003")),
        model(EXTRACTS, AnswerConfig::Garbage { tokens: TOKENS }),
        // What the one calls partly correct is put before the other.
        model(JUDGES[0], says("PARTLY")),
        model(JUDGES[1], says("ACCEPTABLE")),
    ];
    let faults = FaultPlan { seed: 0, rules: rules.to_vec() };
    serde_json::to_string(&SimConfig { faults, ..SimConfig::new(models) }).unwrap()
}

pub fn throttling() -> Vec<FaultRule> {
    let status = |code, retry_after_s| FaultKind::Status { code, retry_after_s };
    vec![
        FaultRule::new(FaultWhen::Probability(0.3), status(429, Some(1))),
        FaultRule::new(FaultWhen::Probability(0.3), status(503, None)),
    ]
}

pub fn lying() -> Vec<FaultRule> {
    vec![
        FaultRule::new(FaultWhen::Probability(0.2), FaultKind::Garbage),
        FaultRule::new(FaultWhen::Probability(0.2), FaultKind::Reset),
        FaultRule::new(FaultWhen::Probability(0.2), FaultKind::CutStream { after_tokens: 3 }),
        FaultRule::new(FaultWhen::Probability(0.2), FaultKind::Abort),
    ]
}

/// Some calls are refused for good: their dialogues fail, and are there for retries.
pub fn refusing() -> Vec<FaultRule> {
    let refusal = FaultKind::Status { code: 400, retry_after_s: None };
    vec![FaultRule::new(FaultWhen::Probability(0.15), refusal)]
}
