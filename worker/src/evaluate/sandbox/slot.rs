//! A thread that owns one child, gives it one answer at a time, and replaces it when it dies.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tasks::{Effort, EvaluationStage};
use tokio::sync::oneshot;

use super::course::Course;
use super::death::ChildDeath;
use super::process::{NoVerdict, Process};
use super::protocol::{Judged, Request};
use super::{Beyond, Examined, SandboxConfig, SandboxStats, recall};
use crate::evaluate::known::KnownVerdicts;
use crate::evaluate::{EvaluatorError, Judgement};
use crate::metrics;

/// An answer to judge, and the channel for its verdict.
pub(super) struct Job {
    pub(super) judgement: Judgement,
    pub(super) beyond: Beyond,
    pub(super) reply: oneshot::Sender<Result<Examined, EvaluatorError>>,
    /// Since when it waits.
    pub(super) since: Instant,
}

/// The owner of a child. The kernel kills the child when the thread that started it ends, so both live on one thread.
pub(super) struct EvaluatorSlot {
    pub(super) config: Arc<SandboxConfig>,
    pub(super) stats: Arc<SandboxStats>,
    pub(super) known: Option<Arc<KnownVerdicts>>,
    pub(super) process: Option<Process>,
}

impl EvaluatorSlot {
    pub(super) fn run(&mut self, queue: &async_channel::Receiver<Job>) {
        // Loading takes a moment, during which the first answers arrive. An error here recurs and is reported when a
        // judgement needs the child.
        let _ = self.process();
        while let Ok(Job { judgement, beyond, reply, since }) = queue.recv_blocking() {
            metrics::evaluation_waited(since.elapsed());
            if reply.is_closed() {
                continue; // The dialogue was given up while its answer waited.
            }
            // An equal answer may have been judged while this one was queued.
            let known = self.known.as_deref().filter(|_| beyond == Beyond::default());
            let examined = match recall(known, &self.stats, &judgement) {
                Some(verdict) => Ok(verdict.into()),
                None => {
                    let examined = self.judge(&judgement, &beyond);
                    self.stats.judged.fetch_add(1, Ordering::Relaxed);
                    examined
                }
            };
            let _ = reply.send(examined);
        }
    }

    /// Judges with full effort, and with less only if the answer itself has killed a child.
    fn judge(&mut self, judgement: &Judgement, beyond: &Beyond) -> Result<Examined, EvaluatorError> {
        let mut course = Course::default();
        loop {
            let stage = course.stage;
            let began = Instant::now();
            let attempt = self.judge_at(judgement, beyond, stage);
            metrics::judged(stage, began.elapsed());
            let death = match attempt {
                Ok(examined) => return Ok(examined),
                Err(NoVerdict::Failed(error)) => return Err(error),
                Err(NoVerdict::Died(death)) => death,
            };
            self.stats.died.fetch_add(1, Ordering::Relaxed);
            metrics::evaluator_died(death.limit());
            let Judgement { task, case, .. } = judgement;
            tracing::warn!(?death, ?stage, task, case, "an evaluation process died");
            course.after(death)?;
        }
    }

    /// The child; starts one if there is none.
    fn process(&mut self) -> Result<&mut Process, NoVerdict> {
        match &mut self.process {
            Some(process) => Ok(process),
            empty => {
                self.stats.started.fetch_add(1, Ordering::Relaxed);
                metrics::evaluator_started();
                Ok(empty.insert(Process::start(&self.config)?))
            }
        }
    }

    /// One attempt.
    fn judge_at(
        &mut self,
        judgement: &Judgement,
        beyond: &Beyond,
        stage: EvaluationStage,
    ) -> Result<Examined, NoVerdict> {
        let request = Request {
            task: judgement.task,
            case: judgement.case,
            effort: Effort { limits: self.config.evaluation, stage },
            answer: judgement.answer.as_ref().into(),
            given: beyond.given.as_deref().map(Cow::Borrowed),
            compares: beyond.compares,
        };
        let limits = self.config.limits;
        match self.process()?.judge(&request, limits.starved_after) {
            Ok((Judged { refused: Some(why), .. }, ..)) => {
                Err(NoVerdict::Failed(EvaluatorError::Refused(why)))
            }
            Ok((Judged { verdict, compared, .. }, bytes, cpu)) => {
                // Whether an answer near the time limit passes depends on the machine at that moment, which must not
                // decide for all equal answers.
                let beyond_doubt =
                    stage == EvaluationStage::Full && cpu < self.config.evaluation.query_time / 2;
                let keeps = beyond_doubt && *beyond == Beyond::default();
                if let Some(known) = self.known.as_ref().filter(|_| keeps) {
                    known.keep(judgement, &verdict, bytes);
                }
                Ok(Examined { verdict, compared })
            }
            Err(trouble) => {
                let dead = self.process.take();
                let death =
                    dead.map(|process| process.post_mortem(trouble, Duration::from_secs(limits.cpu_seconds)));
                Err(NoVerdict::Died(death.unwrap_or_else(|| ChildDeath::Ours("it is gone".to_owned()))))
            }
        }
    }
}
