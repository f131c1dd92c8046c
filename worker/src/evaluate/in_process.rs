//! Judges on threads of this process, or, in a simulation, in its turn.

use std::num::NonZeroUsize;
use std::sync::Arc;

use domain::machine;
use tasks::{Effort, Verdict};
use tokio::sync::oneshot;

use super::{Evaluator, EvaluatorError, Judgement, STACK_BYTES, TaskList};

/// Maximum number of queued judgements per thread.
const WAITING_PER_THREAD: usize = 64;

type Job = (Judgement, oneshot::Sender<Verdict>);

/// A fixed number of judging threads. They end when the evaluator is dropped.
pub struct InProcess {
    jobs: async_channel::Sender<Job>,
    /// What judges in a simulation, which has no threads.
    in_turn: Option<Judging>,
}

/// Tasks, and how much is done for a verdict.
#[derive(Clone)]
struct Judging {
    tasks: TaskList,
    effort: Effort,
}

impl Judging {
    fn judge(&self, judgement: &Judgement) -> Verdict {
        let case = &self.tasks[judgement.task].cases()[judgement.case];
        case.exercise().judge(&judgement.answer, &self.effort)
    }
}

impl InProcess {
    /// Prepares the tasks and starts the threads.
    ///
    /// # Errors
    /// A graph cannot be read, or a thread cannot be started.
    pub fn start(tasks: &TaskList, effort: Effort, threads: NonZeroUsize) -> std::io::Result<Self> {
        tasks.iter().try_for_each(|task| task.prepare()).map_err(std::io::Error::other)?;
        let (jobs, queue) = async_channel::bounded::<Job>(threads.get() * WAITING_PER_THREAD);
        let judging = Judging { tasks: Arc::clone(tasks), effort };
        if machine::simulated().is_some() {
            return Ok(Self { jobs, in_turn: Some(judging) });
        }
        for number in 0..threads.get() {
            let (judging, queue) = (judging.clone(), queue.clone());
            std::thread::Builder::new().name(format!("judge-{number}")).stack_size(STACK_BYTES).spawn(
                move || {
                    while let Ok((judgement, reply)) = queue.recv_blocking() {
                        // The caller may have gone away.
                        let _ = reply.send(judging.judge(&judgement));
                    }
                },
            )?;
        }
        Ok(Self { jobs, in_turn: None })
    }
}

#[async_trait::async_trait]
impl Evaluator for InProcess {
    async fn judge(&self, judgement: Judgement) -> Result<Verdict, EvaluatorError> {
        if let Some(judging) = &self.in_turn {
            return Ok(judging.judge(&judgement));
        }
        let (reply, verdict) = oneshot::channel();
        self.jobs.send((judgement, reply)).await.map_err(|_| EvaluatorError::Closed)?;
        verdict.await.map_err(|_| EvaluatorError::Died("a panic".into()))
    }
}
