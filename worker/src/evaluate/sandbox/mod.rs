//! Judging in child processes.
//!
//! Each slot is a thread of this process that owns one child, hands it one answer at a time and waits for the verdict
//! with a deadline. A child that dies, or that is killed for taking too long, costs its own answer one stage of
//! evaluation (see [`tasks::Stage`]) and is replaced; the other slots do not notice. An answer that was judged before
//! is not judged again (see `known.rs`).

use std::io::{self, BufReader, Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tasks::{Effort, EvaluationLimits, Limit, Stage, Verdict};
use tokio::sync::oneshot;

use super::known::KnownVerdicts;
use super::{Evaluator, EvaluatorError, Judgement};

pub mod child;
mod protocol;

use protocol::{Ready, Request, Response, Setup};

/// Judgements that may wait for a child, per child.
const WAITING_PER_CHILD: usize = 64;

/// Bytes of a reply's buffer that are kept for the next one.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Bytes of a dead child's last words that are looked at.
const LAST_WORDS_BYTES_MAX: u64 = 4096;

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

/// Limits on one evaluation process. They are part of the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Wall time of one judgement; beyond it the child is killed.
    pub wall: Duration,
    /// Processor time of one judgement, in whole seconds.
    pub cpu_seconds: u64,
    /// Address space of a child in bytes, loaded tasks and graphs included.
    pub memory_bytes: u64,
    /// Wall time from the start of a child until its tasks are loaded.
    pub start: Duration,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            // The query engine stops by itself after 10 s where it can; this is for where it cannot.
            wall: Duration::from_secs(12),
            cpu_seconds: 5,
            memory_bytes: 1 << 30,
            start: Duration::from_secs(120),
        }
    }
}

impl SandboxLimits {
    /// Limits that leave the published run's 120 s per query room.
    pub fn compat() -> Self {
        Self { wall: Duration::from_secs(125), cpu_seconds: 120, ..Self::default() }
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
    /// Children that died or were killed during a judgement.
    pub died: AtomicU64,
}

type Job = (Judgement, oneshot::Sender<Result<Verdict, EvaluatorError>>);

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

/// Owns one child and replaces it when it dies.
struct Slot {
    config: Arc<SandboxConfig>,
    stats: Arc<SandboxStats>,
    known: Option<Arc<KnownVerdicts>>,
    process: Option<Process>,
}

impl Slot {
    fn run(&mut self, queue: &async_channel::Receiver<Job>) {
        // Loading takes a moment, in which the first answers are on their way. What fails here fails again, and is
        // told, where a judgement needs it.
        let _ = self.process();
        while let Ok((judgement, reply)) = queue.recv_blocking() {
            if reply.is_closed() {
                continue; // The dialogue was given up while its answer waited.
            }
            // An equal answer may have been judged while this one waited.
            let verdict = match recall(self.known.as_deref(), &self.stats, &judgement) {
                Some(verdict) => Ok(verdict),
                None => {
                    let verdict = self.judge(&judgement);
                    self.stats.judged.fetch_add(1, Ordering::Relaxed);
                    verdict
                }
            };
            let _ = reply.send(verdict);
        }
    }

    /// Judges at the full stage and, whenever the child dies, at the next lower one.
    fn judge(&mut self, judgement: &Judgement) -> Result<Verdict, EvaluatorError> {
        let mut stage = Stage::Full;
        loop {
            let limit = match self.judge_at(judgement, stage)? {
                Ok(verdict) => return Ok(verdict),
                Err(limit) => limit,
            };
            self.stats.died.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                ?limit,
                ?stage,
                task = judgement.task,
                case = judgement.case,
                "evaluation ended by limit"
            );
            stage = match stage {
                Stage::Full => Stage::WithoutExecution(limit),
                Stage::WithoutExecution(limit) => Stage::WithoutParsing(limit),
                Stage::WithoutParsing(_) => return Err(EvaluatorError::Died(limit.message().into())),
            };
        }
    }

    /// The child, started if there is none.
    fn process(&mut self) -> Result<&mut Process, EvaluatorError> {
        match &mut self.process {
            Some(process) => Ok(process),
            empty => {
                self.stats.started.fetch_add(1, Ordering::Relaxed);
                Ok(empty.insert(Process::start(&self.config)?))
            }
        }
    }

    /// One try: the verdict, or the limit that ended the child.
    fn judge_at(
        &mut self,
        judgement: &Judgement,
        stage: Stage,
    ) -> Result<Result<Verdict, Limit>, EvaluatorError> {
        let request = Request {
            task: judgement.task,
            case: judgement.case,
            effort: Effort { limits: self.config.evaluation, stage },
            answer: judgement.answer.as_ref().into(),
        };
        let wall = self.config.limits.wall;
        let process = self.process()?;
        let began = Instant::now();
        match process.exchange::<Response>(&request, wall) {
            Ok((verdict, bytes)) => {
                // Whether an answer near the limit of time passes depends on the load of the machine: one unlucky moment
                // must not decide for all its equals.
                let beyond_doubt =
                    stage == Stage::Full && began.elapsed() < self.config.evaluation.query_wall / 2;
                if let Some(known) = self.known.as_ref().filter(|_| beyond_doubt) {
                    known.keep(judgement, &verdict, bytes);
                }
                Ok(Ok(verdict))
            }
            Err(trouble) => {
                let limit = self.process.take().map_or(Limit::Crash, |process| process.post_mortem(trouble));
                Ok(Err(limit))
            }
        }
    }
}

/// Why an exchange with a child failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Its deadline passed.
    Late,
    /// It closed its pipes, which it only does by ending.
    Ended,
    /// It sent what no child sends.
    Garbage,
}

/// A running child with its pipes.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    buffer: Vec<u8>,
}

impl Process {
    fn start(config: &SandboxConfig) -> Result<Self, EvaluatorError> {
        let failed = |error: &dyn std::fmt::Display| EvaluatorError::Start(error.to_string());
        let mut child = Command::new(&config.program)
            .args(&config.arguments)
            // Keys and endpoints of the parent are nobody's business in there.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("{}: {error}", config.program.display())))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"no pipes"));
        };
        let output = BufReader::with_capacity(64 << 10, output);
        let mut process = Self { child, input, output, buffer: Vec::new() };
        let setup = Setup {
            tasks: config.tasks.clone(),
            memory_bytes_max: config.limits.memory_bytes,
            cpu_seconds_max: config.limits.cpu_seconds,
        };
        match process.exchange(&setup, config.limits.start) {
            Ok((Ready::Ready, _)) => Ok(process),
            Ok((Ready::Failed(message), _)) => Err(failed(&message)),
            Err(trouble) => {
                let limit = process.post_mortem(trouble);
                Err(failed(&format!("it died while loading its tasks ({})", limit.message())))
            }
        }
    }

    /// Sends one message and waits for its reply; the reply and its bytes.
    fn exchange<T: serde::de::DeserializeOwned>(
        &mut self,
        message: &impl serde::Serialize,
        wait: Duration,
    ) -> Result<(T, usize), Trouble> {
        let deadline = Instant::now() + wait;
        let mut frame = Vec::new();
        protocol::write(&mut frame, message).map_err(|_| Trouble::Garbage)?;
        // The child reads a whole request before it writes, so this cannot block on a full pipe for longer than
        // the child takes to read.
        self.input.write_all(&frame).map_err(|_| Trouble::Ended)?;
        let mut output = Deadlined { output: &mut self.output, deadline, late: false };
        let reply = match protocol::read(&mut output, &mut self.buffer) {
            Ok(Some(reply)) => Ok((reply, self.buffer.len())),
            _ if output.late => Err(Trouble::Late),
            Ok(None) => Err(Trouble::Ended),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Trouble::Ended),
            Err(_) => Err(Trouble::Garbage),
        };
        // One huge verdict must not be remembered in memory for the rest of the run.
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        reply
    }

    /// Ends the child, if it still runs, and tells which limit it hit.
    fn post_mortem(mut self, trouble: Trouble) -> Limit {
        // Why a child ended is settled before its pipes close, so this does not change the status of one that did.
        let _ = self.child.kill();
        let status = self.child.wait();
        if trouble == Trouble::Late {
            return Limit::WallTime;
        }
        let mut last_words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut last_words);
        }
        let last_words = String::from_utf8_lossy(&last_words);
        let signal = status.ok().and_then(|status| status.signal());
        let ended_by = |wanted: Signal| signal == Some(wanted.as_raw());
        if ended_by(Signal::XCPU) {
            Limit::CpuTime
        } else if last_words.contains("overflowed its stack") {
            Limit::Nesting
        } else if last_words.contains("memory allocation")
            || (ended_by(Signal::KILL) && trouble == Trouble::Ended)
        {
            // Nobody but the kernel, which is short of memory, kills a child without a word.
            Limit::Memory
        } else {
            tracing::warn!(?signal, last_words = %last_words.trim(), "an evaluation process died");
            Limit::Crash
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reaps the child in every path; one that already ended is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads from a pipe until a deadline.
struct Deadlined<'a> {
    output: &'a mut BufReader<ChildStdout>,
    deadline: Instant,
    late: bool,
}

impl Read for Deadlined<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.output.buffer().is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let timeout =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let mut descriptors = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) => {
                    self.late = true;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Err(io::ErrorKind::Interrupted.into()),
                Err(error) => return Err(error.into()),
            }
        }
        self.output.read(buffer)
    }
}
