//! Judges on threads of this process.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tasks::{Effort, Verdict};
use tokio::sync::oneshot;

use super::{Evaluator, EvaluatorError, Judgement, STACK_BYTES, TaskList};

/// Maximum number of queued judgements per thread.
const WAITING_PER_THREAD: usize = 64;

type Job = (Judgement, oneshot::Sender<Verdict>);

/// A fixed number of judging threads. They end when the evaluator is dropped.
pub struct InProcess {
    jobs: async_channel::Sender<Job>,
}

impl InProcess {
    /// Prepares the tasks and starts the threads.
    ///
    /// # Errors
    /// A graph cannot be read, or a thread cannot be started.
    pub fn start(tasks: &TaskList, effort: Effort, threads: NonZeroUsize) -> std::io::Result<Self> {
        tasks.iter().try_for_each(|task| task.prepare()).map_err(std::io::Error::other)?;
        let (jobs, queue) = async_channel::bounded::<Job>(threads.get() * WAITING_PER_THREAD);
        for number in 0..threads.get() {
            let (tasks, queue) = (Arc::clone(tasks), queue.clone());
            std::thread::Builder::new().name(format!("judge-{number}")).stack_size(STACK_BYTES).spawn(
                move || {
                    while let Ok((judgement, reply)) = queue.recv_blocking() {
                        let case = &tasks[judgement.task].cases()[judgement.case];
                        // The caller may have gone away.
                        let _ = reply.send(case.exercise().judge(&judgement.answer, &effort));
                    }
                },
            )?;
        }
        Ok(Self { jobs })
    }
}

#[async_trait::async_trait]
impl Evaluator for InProcess {
    async fn judge(&self, judgement: Judgement) -> Result<Verdict, EvaluatorError> {
        let (reply, verdict) = oneshot::channel();
        self.jobs.send((judgement, reply)).await.map_err(|_| EvaluatorError::Closed)?;
        verdict.await.map_err(|_| EvaluatorError::Died("a panic".into()))
    }
}
