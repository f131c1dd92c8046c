//! Judges in child processes.
//!
//! Each slot is a thread of this process that owns one child, gives it one answer at a time and waits for the verdict
//! (`slot.rs`, `process.rs`). A dead child is replaced without affecting other slots. `death.rs` interprets its
//! death: a limit that the answer hit lowers the effort by one stage (see [`tasks::EvaluationStage`]); after an external cause
//! the answer is judged again unchanged (`course.rs`). Time is CPU time, which the kernel counts and limits;
//! wall-clock time only detects children that make no progress. Equal answers are judged once (`known.rs`).

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tasks::{ComparedPart, EvaluationLimits, GivenExercise, Verdict};
use tokio::sync::oneshot;

use super::known::KnownVerdicts;
use super::{Evaluator, EvaluatorError, Judgement};
use crate::metrics;

pub mod child;
pub mod confine;
mod course;
mod death;
pub mod host;
mod process;
mod protocol;
mod slot;

#[cfg(feature = "test-support")]
pub use protocol::read_as_anything;
use slot::{EvaluatorSlot, Job};

/// Maximum number of queued judgements per child.
const WAITING_PER_CHILD: usize = 64;

/// CPU time of a judgement beyond that of its query, in whole seconds, for parsing and comparing.
const BESIDE_QUERY_SECONDS: u64 = 2;

/// Configuration of evaluation processes.
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
    /// Limits that parsers and query engine enforce themselves.
    pub evaluation: EvaluationLimits,
    /// Limits that kill a child.
    pub limits: SandboxLimits,
}

/// Limits on one evaluation process. Those that an answer can hit are part of the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SandboxLimits {
    /// CPU time of one judgement, in whole seconds.
    pub cpu_seconds: u64,
    /// Address space of a child in bytes, including tasks and graphs.
    pub memory_bytes: u64,
    /// Wall-clock time within which a busy child must get some CPU time; otherwise it was stopped or starves, and is
    /// replaced.
    #[serde(skip)]
    pub starved_after: Duration,
    /// Maximum wall-clock time for a child to load its tasks.
    #[serde(skip)]
    pub start: Duration,
}

impl SandboxLimits {
    /// Limits with room for the pack's own evaluation limits: they catch whatever ignores those.
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

/// What a caller may want beyond the verdict on an answer to a loaded case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Judge by this instead of the case that the judgement names.
    pub given: Option<Arc<GivenExercise>>,
    /// Tell also what is expected and what was extracted.
    pub compares: bool,
}

/// A verdict, and what was asked beyond it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examined {
    pub verdict: Verdict,
    /// What was expected and extracted; empty unless it was asked for.
    pub compared: Vec<ComparedPart>,
}

impl From<Verdict> for Examined {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, compared: Vec::new() }
    }
}

/// Counters, for metrics.
#[derive(Debug, Default)]
pub struct SandboxStats {
    /// Judgements done by a child.
    pub judged: AtomicU64,
    /// Verdicts taken from the cache.
    pub recalled: AtomicU64,
    /// Children started, including the first ones.
    pub started: AtomicU64,
    /// Children that died or were killed during a judgement.
    pub died: AtomicU64,
}

/// The pool of evaluation processes. Children end when it is dropped.
pub struct Sandbox {
    jobs: async_channel::Sender<Job>,
    stats: Arc<SandboxStats>,
    known: Option<Arc<KnownVerdicts>>,
}

impl Sandbox {
    /// Starts the slots and their children, without waiting for them to load. If a child cannot be started, the
    /// judgements that need it fail, not this function.
    pub fn start(config: SandboxConfig) -> io::Result<Self> {
        Self::start_with(config, Some(Arc::default()))
    }

    /// As [`start`](Self::start), but without the verdict cache.
    pub fn start_without_recall(config: SandboxConfig) -> io::Result<Self> {
        Self::start_with(config, None)
    }

    fn start_with(config: SandboxConfig, known: Option<Arc<KnownVerdicts>>) -> io::Result<Self> {
        let (jobs, queue) = async_channel::bounded(config.children.get() * WAITING_PER_CHILD);
        let stats = Arc::new(SandboxStats::default());
        let config = Arc::new(config);
        for number in 0..config.children.get() {
            let mut slot = EvaluatorSlot {
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

    /// Judges an answer, and tells what `beyond` asks.
    ///
    /// # Errors
    /// As those of [`Evaluator::judge`]; also if what was given cannot be used.
    pub async fn examine(&self, judgement: Judgement, beyond: Beyond) -> Result<Examined, EvaluatorError> {
        let ((reply, examined), since) = (oneshot::channel(), Instant::now());
        let job = Job { judgement, beyond, reply, since };
        self.jobs.send(job).await.map_err(|_| EvaluatorError::Closed)?;
        examined.await.map_err(|_| EvaluatorError::Closed)?
    }

    /// Counters.
    pub fn stats(&self) -> &SandboxStats {
        &self.stats
    }
}

#[async_trait::async_trait]
impl Evaluator for Sandbox {
    async fn judge(&self, judgement: Judgement) -> Result<Verdict, EvaluatorError> {
        if let Some(verdict) = recall(self.known.as_deref(), &self.stats, &judgement) {
            return Ok(verdict);
        }
        Ok(self.examine(judgement, Beyond::default()).await?.verdict)
    }
}

fn recall(known: Option<&KnownVerdicts>, stats: &SandboxStats, judgement: &Judgement) -> Option<Verdict> {
    let verdict = known?.recall(judgement)?;
    stats.recalled.fetch_add(1, Ordering::Relaxed);
    metrics::verdict_recalled();
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
