//! A pool of evaluation processes with tight limits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tasks::{EvaluationLimits, Limit, Task, Verdict};
use worker::evaluate::sandbox::{Sandbox, SandboxConfig, SandboxLimits};
use worker::{Evaluator, EvaluatorError, Judgement};

use crate::child;

/// The tight limits. The wall clock is left some room: it also runs while other tests have the processors.
pub const LIMITS: SandboxLimits = SandboxLimits {
    wall: Duration::from_secs(20),
    cpu_seconds: 1,
    memory_bytes: 512 << 20,
    // Processes start while all processors are busy with other tests.
    start: Duration::from_secs(120),
};

/// Judges in child processes of this program.
pub struct Pool {
    pub sandbox: Sandbox,
    labels: Vec<&'static str>,
    tasks: Vec<Arc<Task>>,
}

impl Pool {
    pub fn start(labels: &[&'static str], children: usize, limits: SandboxLimits) -> Self {
        let evaluation =
            EvaluationLimits { query_wall: Duration::from_millis(500), ..EvaluationLimits::default() };
        Self::start_with(labels, children, limits, evaluation)
    }

    pub fn start_with(
        labels: &[&'static str],
        children: usize,
        limits: SandboxLimits,
        evaluation: EvaluationLimits,
    ) -> Self {
        // These tests are about what judging does, so nothing may be answered from what was judged before.
        let start = Sandbox::start_without_recall;
        Self::of(labels, start(config(labels, children, limits, evaluation)).unwrap())
    }

    /// A pool that gives verdicts again, with one child.
    pub fn start_recalling(
        labels: &[&'static str],
        limits: SandboxLimits,
        evaluation: EvaluationLimits,
    ) -> Self {
        Self::of(labels, Sandbox::start(config(labels, 1, limits, evaluation)).unwrap())
    }

    fn of(labels: &[&'static str], sandbox: Sandbox) -> Self {
        Self { sandbox, labels: labels.to_vec(), tasks: child::load_to_ask(labels) }
    }

    /// Judges an answer to the first case of a task.
    pub async fn judge(&self, label: &str, answer: impl Into<Arc<str>>) -> Result<Verdict, EvaluatorError> {
        let task = self.index(label);
        self.sandbox.judge(Judgement { task, case: 0, answer: answer.into() }).await
    }

    /// Judges the reference answer of a task, which must have full marks.
    pub async fn judge_reference(&self, label: &str) {
        let case = &self.tasks[self.index(label)].cases()[0];
        let answer = case.data.reference_answer.clone().unwrap();
        let verdict = self.judge(label, answer).await.unwrap();
        let scores = verdict.scores.values().filter_map(serde_json::Value::as_f64);
        assert_eq!(scores.fold(0.0, f64::max), 1.0, "{label}: {:?}", verdict.infos);
    }

    fn index(&self, label: &str) -> usize {
        self.labels.iter().position(|known| *known == label).unwrap()
    }
}

fn config(
    labels: &[&'static str],
    children: usize,
    limits: SandboxLimits,
    evaluation: EvaluationLimits,
) -> SandboxConfig {
    SandboxConfig {
        program: std::env::current_exe().unwrap(),
        arguments: vec![child::EVALUATE.to_owned()],
        tasks: json!(labels),
        children: NonZeroUsize::new(children).unwrap(),
        evaluation,
        limits,
    }
}

/// The limits that a verdict names.
pub fn limits_named(verdict: &Verdict) -> Vec<Limit> {
    let infos = serde_json::to_string(&verdict.infos).unwrap();
    let all = [Limit::WallTime, Limit::CpuTime, Limit::Memory, Limit::Nesting, Limit::Size, Limit::Crash];
    all.into_iter().filter(|limit| infos.contains(limit.message())).collect()
}

/// Whether a verdict says that time or memory ran out, by the engine's own clock or by a limit from outside.
pub fn exhausted(verdict: &Verdict) -> bool {
    let outside = [Limit::WallTime, Limit::CpuTime, Limit::Memory];
    limits_named(verdict).iter().any(|limit| outside.contains(limit))
        || verdict.infos.get("EvaluationException").is_some_and(|message| message == "A time out occurred")
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
