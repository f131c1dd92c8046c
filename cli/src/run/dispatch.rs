//! Holding the pending dialogues of all models at once, each model within its own limit, until every one of them has a
//! durable record or somebody says stop.
//!
//! A dialogue gives its place to the next one as soon as its record is handed to the log: the model does not wait for
//! the disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coordinator::plan::{Plan, Unit};
use domain::{Attempt, DialogueKey, FailureCause, Iteration, Record, RecordId, WorkerId};
use futures::stream::{FuturesUnordered, StreamExt};
use results::log::{CommitError, CommitQueue, LogEntry};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use worker::{DialogueContext, DialogueJob, Limiter, LimiterBounds, hold};

use super::stop::{Stop, StopReceiver, StopSender};
use super::summary::Digest;

/// Durable records on their way to the summary.
const NEWS_WAITING_MAX: usize = 1024;

/// Records of one model on their way to the disk; with more, no dialogue is begun until some are durable.
const COMMITTING_MAX: usize = 1024;

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
    let mut running: JoinSet<(Digest, Record)> = JoinSet::new();
    let mut committing = FuturesUnordered::new();
    loop {
        while *stop.borrow() == Stop::No
            && running.len() < limiter.limit()
            && committing.len() < COMMITTING_MAX
        {
            let Some(job) = next_job(&plan, &mut pending) else { break };
            let context = Arc::clone(&lane.context);
            let class = context.tasks[job.task].class;
            running.spawn(async move {
                let record = hold(&context, job).await;
                (Digest::of(&record, class), record)
            });
        }
        if running.is_empty() && committing.is_empty() {
            return;
        }
        tokio::select! {
            biased;
            () = aborted(&mut stop) => {
                running.shutdown().await;
                return;
            }
            Some(durable) = committing.next() => {
                if news.send(durable).await.is_err() {
                    return;
                }
            }
            Some(ended) = running.join_next() => match ended {
                Ok((digest, record)) => {
                    limiter.ended(was_refused(&record), running.len());
                    let commit = committer.commit(record);
                    committing.push(async move { commit.await.map(|()| digest) });
                }
                // A panic in a dialogue is a bug of ours; its key stays without a record and is asked again on resume.
                Err(panic) => tracing::error!(%panic, "a dialogue ended by a panic"),
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
