//! Judging in child processes.
//!
//! Each slot is a thread of this process that owns one child, hands it one answer at a time and waits for the verdict
//! (`slot.rs`, `process.rs`). A child that dies is replaced, and the other slots do not notice. What its death means is
//! told by `death.rs`: a limit that the answer hit costs it one stage of evaluation (see [`tasks::Stage`]); a trouble
//! of ours costs it nothing, and the answer is judged again (`course.rs`). Time is processor time, which the kernel
//! counts and limits; the wall clock only finds children that do not get on. An answer that was judged before is not
//! judged again (see `known.rs`).

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tasks::{EvaluationLimits, Verdict};
use tokio::sync::oneshot;

use super::known::KnownVerdicts;
use super::{Evaluator, EvaluatorError, Judgement};

pub mod child;
pub mod confine;
mod course;
mod death;
mod process;
mod protocol;
mod slot;

#[cfg(feature = "test-support")]
pub use protocol::read_as_anything;
use slot::{Job, Slot};

/// Judgements that may wait for a child, per child.
const WAITING_PER_CHILD: usize = 64;

/// Processor time of a judgement beyond that of its query, in whole seconds: for parsing and comparing.
const BESIDE_QUERY_SECONDS: u64 = 2;

/// How to start and limit evaluation processes.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The program; normally this very binary.
    pub program: PathBuf,
    /// Its arguments; they must lead to [`child::serve`].
    pub arguments: Vec<String>,
    /// Passed to the child's loader.
    pub tasks: serde_json::Value,
    /// Number of children.
    pub children: NonZeroUsize,
    /// Limits that a parser or query engine observes by itself.
    pub evaluation: EvaluationLimits,
    /// Limits that end a child.
    pub limits: SandboxLimits,
}

/// Limits on one evaluation process. Those that an answer can hit are part of the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SandboxLimits {
    /// Processor time of one judgement, in whole seconds.
    pub cpu_seconds: u64,
    /// Address space of a child in bytes, loaded tasks and graphs included.
    pub memory_bytes: u64,
    /// Wall time in which a child that loads or judges must get some processor time; one that does not was stopped or
    /// starves, and is replaced.
    #[serde(skip)]
    pub starved_after: Duration,
    /// Wall time from the start of a child until its tasks are loaded.
    #[serde(skip)]
    pub start: Duration,
}

impl SandboxLimits {
    /// Limits that leave room for what a pack allows one evaluation: they end what does not listen to its own.
    pub fn of(evaluation: &EvaluationLimits) -> Self {
        let query = evaluation.query_time;
        let begun_second = u64::from(query.subsec_nanos() > 0);
        Self {
            cpu_seconds: query.as_secs().saturating_add(begun_second).saturating_add(BESIDE_QUERY_SECONDS),
            memory_bytes: 1 << 30,
            starved_after: Duration::from_secs(10),
            start: Duration::from_secs(120),
        }
    }
}

/// What happened so far, for metrics.
#[derive(Debug, Default)]
pub struct SandboxStats {
    /// Judgements done by a child.
    pub judged: AtomicU64,
    /// Verdicts given again, because an equal answer to the same case was judged before.
    pub recalled: AtomicU64,
    /// Children started, the first ones included.
    pub started: AtomicU64,
    /// Children that died or were given up during a judgement.
    pub died: AtomicU64,
}

/// The pool of evaluation processes. Children end when it is dropped.
pub struct Sandbox {
    jobs: async_channel::Sender<Job>,
    stats: Arc<SandboxStats>,
    known: Option<Arc<KnownVerdicts>>,
}

impl Sandbox {
    /// Starts the slots and their children, without waiting until these have loaded their tasks. A child that cannot
    /// be started is an error of every judgement that would need it, not of this function.
    pub fn start(config: SandboxConfig) -> io::Result<Self> {
        Self::start_with(config, Some(Arc::default()))
    }

    /// As [`start`](Self::start), for those who want every answer judged, also one that was judged before.
    pub fn start_without_recall(config: SandboxConfig) -> io::Result<Self> {
        Self::start_with(config, None)
    }

    fn start_with(config: SandboxConfig, known: Option<Arc<KnownVerdicts>>) -> io::Result<Self> {
        let (jobs, queue) = async_channel::bounded(config.children.get() * WAITING_PER_CHILD);
        let stats = Arc::new(SandboxStats::default());
        let config = Arc::new(config);
        for number in 0..config.children.get() {
            let mut slot = Slot {
                config: Arc::clone(&config),
                stats: Arc::clone(&stats),
                known: known.clone(),
                process: None,
            };
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("sandbox-{number}")).spawn(move || slot.run(&queue))?;
        }
        Ok(Self { jobs, stats, known })
    }

    /// Counters.
    pub fn stats(&self) -> &SandboxStats {
        &self.stats
    }
}

impl Evaluator for Sandbox {
    fn judge(&self, judgement: Judgement) -> BoxFuture<'_, Result<Verdict, EvaluatorError>> {
        async move {
            if let Some(verdict) = recall(self.known.as_deref(), &self.stats, &judgement) {
                return Ok(verdict);
            }
            let (reply, verdict) = oneshot::channel();
            self.jobs.send((judgement, reply)).await.map_err(|_| EvaluatorError::Closed)?;
            verdict.await.map_err(|_| EvaluatorError::Closed)?
        }
        .boxed()
    }
}

fn recall(known: Option<&KnownVerdicts>, stats: &SandboxStats, judgement: &Judgement) -> Option<Verdict> {
    let verdict = known?.recall(judgement)?;
    stats.recalled.fetch_add(1, Ordering::Relaxed);
    Some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_process_leave_the_pack_its_own() {
        let seconds = |query_time| {
            SandboxLimits::of(&EvaluationLimits { query_time, ..EvaluationLimits::default() }).cpu_seconds
        };
        assert_eq!(SandboxLimits::of(&EvaluationLimits::default()).cpu_seconds, 12);
        assert_eq!(SandboxLimits::of(&EvaluationLimits::compat()).cpu_seconds, 122);
        // One that differs from the published run's by nothing but its rows is not cut at a tenth of its time.
        let almost = EvaluationLimits { rows_max: 10, ..EvaluationLimits::compat() };
        assert_eq!(SandboxLimits::of(&almost), SandboxLimits::of(&EvaluationLimits::compat()));
        assert_eq!(seconds(Duration::from_millis(1_500)), 4);
        assert_eq!(seconds(Duration::MAX), u64::MAX);
    }
}
