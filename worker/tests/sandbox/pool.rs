//! A pool of evaluation processes with tight limits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use serde_json::json;
use tasks::{EvaluationLimits, Limit, Task, Verdict};
use worker::evaluate::sandbox::{Sandbox, SandboxConfig, SandboxLimits};
use worker::{Evaluator, EvaluatorError, Judgement};

use crate::child;

/// The tight limits.
pub const LIMITS: SandboxLimits = SandboxLimits {
    cpu_seconds: 1,
    memory_bytes: 512 << 20,
    starved_after: Duration::from_secs(20),
    // Processes start while all processors are busy with other tests.
    start: Duration::from_secs(120),
};

/// Judges in child processes of this program.
pub struct Pool {
    pub sandbox: Sandbox,
    labels: Vec<&'static str>,
    tasks: Vec<Arc<Task>>,
    name: String,
}

impl Pool {
    pub fn start(labels: &[&'static str], children: usize, limits: SandboxLimits) -> Self {
        let evaluation =
            EvaluationLimits { query_time: Duration::from_millis(500), ..EvaluationLimits::default() };
        Self::start_with(labels, children, limits, evaluation)
    }

    pub fn start_with(
        labels: &[&'static str],
        children: usize,
        limits: SandboxLimits,
        evaluation: EvaluationLimits,
    ) -> Self {
        // These tests are about what judging does, so nothing may be answered from what was judged before.
        Self::of(labels, children, limits, evaluation, Sandbox::start_without_recall)
    }

    /// A pool that gives verdicts again, with one child.
    pub fn start_recalling(
        labels: &[&'static str],
        limits: SandboxLimits,
        evaluation: EvaluationLimits,
    ) -> Self {
        Self::of(labels, 1, limits, evaluation, Sandbox::start)
    }

    fn of(
        labels: &[&'static str],
        children: usize,
        limits: SandboxLimits,
        evaluation: EvaluationLimits,
        start: fn(SandboxConfig) -> std::io::Result<Sandbox>,
    ) -> Self {
        static POOLS: AtomicU32 = AtomicU32::new(0);
        let name = format!("pool-{}-{}", std::process::id(), POOLS.fetch_add(1, Ordering::Relaxed));
        let config = SandboxConfig {
            program: std::env::current_exe().unwrap(),
            arguments: vec![child::EVALUATE.to_owned(), name.clone()],
            tasks: json!(labels),
            children: NonZeroUsize::new(children).unwrap(),
            evaluation,
            limits,
        };
        let (labels, tasks) = (labels.to_vec(), child::load_to_ask(labels));
        Self { sandbox: start(config).unwrap(), labels, tasks, name }
    }

    /// Children that died during a judgement.
    pub fn died(&self) -> u64 {
        self.sandbox.stats().died.load(Ordering::Relaxed)
    }

    /// The children that live.
    pub fn children(&self) -> Vec<Pid> {
        let is_one = |pid: &i32| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.split(|&byte| byte == 0).any(|argument| argument == self.name.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_one).filter_map(Pid::from_raw).collect()
    }

    /// Sends a signal to every child; how many there were.
    pub fn signal(&self, signal: Signal) -> usize {
        self.children().into_iter().filter(|child| kill_process(*child, signal).is_ok()).count()
    }

    /// Sends its one child a signal that ends it, and waits until it has: one thread of a child may judge on while another
    /// takes the signal.
    pub fn end(&self, signal: Signal) {
        let &[child] = self.children().as_slice() else { panic!("one child") };
        let ended = pidfd_open(child, PidfdFlags::empty()).unwrap();
        kill_process(child, signal).unwrap();
        poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).unwrap();
    }

    /// Stops its one child, and waits until all of it has.
    pub fn stop(&self) {
        let &[child] = self.children().as_slice() else { panic!("one child") };
        kill_process(child, Signal::STOP).unwrap();
        waitid(WaitId::Pid(child), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
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

/// The limits that a verdict names.
pub fn limits_named(verdict: &Verdict) -> Vec<Limit> {
    let infos = serde_json::to_string(&verdict.infos).unwrap();
    let all = [Limit::CpuTime, Limit::Memory, Limit::Nesting, Limit::Size, Limit::Crash];
    all.into_iter().filter(|limit| infos.contains(limit.message())).collect()
}

/// Whether a verdict says that time or memory ran out, by the engine's own clock or by a limit from outside.
pub fn exhausted(verdict: &Verdict) -> bool {
    let outside = [Limit::CpuTime, Limit::Memory];
    limits_named(verdict).iter().any(|limit| outside.contains(limit))
        || verdict.infos.get("EvaluationException").is_some_and(|message| message == "A time out occurred")
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
