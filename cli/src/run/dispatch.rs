//! Holding the pending dialogues of all models at once, each model within its own limit, until every one of them has a
//! durable record or somebody says stop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coordinator::plan::{Plan, Unit};
use domain::{Attempt, DialogueKey, FailureCause, Iteration, Record, RecordId, WorkerId};
use results::log::{CommitError, CommitQueue, LogEntry};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use worker::{DialogueContext, DialogueJob, Limiter, LimiterBounds, hold};

use super::stop::{Stop, StopReceiver, StopSender};
use super::summary::Digest;

/// Durable records on their way to the summary.
const NEWS_WAITING_MAX: usize = 1024;

/// One model with its work.
pub struct Lane {
    /// What its dialogues share.
    pub context: Arc<DialogueContext>,
    /// How many at once.
    pub bounds: LimiterBounds,
    /// Its units, in order.
    pub units: Vec<Unit>,
}

/// Puts records into the log, in an order that all readers agree on.
#[derive(Clone)]
pub struct Committer {
    /// The log.
    pub log: CommitQueue,
    /// The ticket of the next record.
    pub ticket: Arc<AtomicU64>,
}

impl Committer {
    /// Returns when the record is durable.
    async fn commit(&self, record: Record) -> Result<(), CommitError> {
        let ticket = self.ticket.fetch_add(1, Ordering::Relaxed);
        self.log.commit(LogEntry { ticket, record }).await
    }
}

/// Runs all lanes; `each` hears of every record once it is durable.
///
/// # Errors
/// The log refuses: nothing new is started, what was acknowledged is safe.
pub async fn run(
    plan: Arc<Plan>,
    lanes: Vec<Lane>,
    committer: Committer,
    stop: StopReceiver,
    stopper: StopSender,
    mut each: impl FnMut(Digest),
) -> Result<(), CommitError> {
    let (news, mut records) = mpsc::channel(NEWS_WAITING_MAX);
    let mut running = JoinSet::new();
    for lane in lanes {
        let (plan, committer, stop, news) =
            (Arc::clone(&plan), committer.clone(), stop.clone(), news.clone());
        running.spawn(run_lane(plan, lane, committer, stop, news));
    }
    drop((news, committer));
    let mut failure = None;
    while let Some(durable) = records.recv().await {
        match durable {
            Ok(digest) => each(digest),
            Err(error) => {
                // The others may still be working for nothing; what they asked for is not lost, only not kept.
                stopper.at_least(Stop::Abort);
                failure.get_or_insert(error);
            }
        }
    }
    while running.join_next().await.is_some() {}
    failure.map_or(Ok(()), Err)
}

type News = mpsc::Sender<Result<Digest, CommitError>>;

async fn run_lane(plan: Arc<Plan>, lane: Lane, committer: Committer, mut stop: StopReceiver, news: News) {
    let mut limiter = Limiter::new(lane.bounds);
    let mut pending: VecDeque<Unit> = lane.units.into();
    let mut running: JoinSet<(Result<Digest, CommitError>, bool)> = JoinSet::new();
    loop {
        while *stop.borrow() == Stop::No && running.len() < limiter.limit() {
            let Some(job) = next_job(&plan, &mut pending) else { break };
            let (context, committer) = (Arc::clone(&lane.context), committer.clone());
            let class = context.tasks[job.task].class;
            running.spawn(async move {
                let record = hold(&context, job).await;
                let refused = was_refused(&record);
                let digest = Digest::of(&record, class);
                (committer.commit(record).await.map(|()| digest), refused)
            });
        }
        tokio::select! {
            biased;
            () = aborted(&mut stop) => {
                running.shutdown().await;
                return;
            }
            ended = running.join_next() => match ended {
                None => return,
                Some(Ok((durable, refused))) => {
                    limiter.ended(refused, running.len());
                    if news.send(durable).await.is_err() {
                        return;
                    }
                }
                // A panic in a dialogue is a bug of ours; its key stays without a record and is asked again on resume.
                Some(Err(panic)) => tracing::error!(%panic, "a dialogue ended by a panic"),
            },
        }
    }
}

/// Returns when everything is to be dropped.
async fn aborted(stop: &mut StopReceiver) {
    if stop.wait_for(|stop| *stop == Stop::Abort).await.is_err() {
        std::future::pending::<()>().await; // Nobody is left who could say it.
    }
}

/// The next dialogue of the first unit that has one.
fn next_job(plan: &Plan, pending: &mut VecDeque<Unit>) -> Option<DialogueJob> {
    let unit = pending.front_mut()?;
    let iteration: Iteration = unit.iterations.remove(0);
    let job = DialogueJob {
        key: DialogueKey {
            model: plan.models[unit.model].label.clone(),
            task: plan.tasks[unit.task].label.clone(),
            iteration,
        },
        task: unit.task,
        attempt: Attempt { id: RecordId::random(), generation: 1, number: 1, worker: WorkerId::new("local") },
    };
    if unit.iterations.is_empty() {
        pending.pop_front();
    }
    Some(job)
}

/// Whether the server said during this dialogue that it was asked too much.
fn was_refused(record: &Record) -> bool {
    let calls = record.rounds.iter().flat_map(|round| &round.failed_calls).chain(&record.failed_calls);
    calls.into_iter().any(|call| matches!(call.cause, FailureCause::Overloaded | FailureCause::RateLimited))
}
