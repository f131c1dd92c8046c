//! The path of records: ticket, log, queue, receipt.
//!
//! This order makes a record count exactly once. The ticket is drawn first, so that all readers of the log agree on the
//! order of records; the queue gets only records that are durable in the log; and the worker may drop a record only after
//! both. Records of all workers are committed in common batches, several of them concurrently.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::caller::Caller;
use domain::cut_text::ShortName;
use domain::exchange::{Delivery, Receipt};
use domain::record::limits::{UNREAD_BYTES_MAX, json_bytes};
use domain::{ErrorCode, Record, RecordId, ServiceError};
use queue::Commit;
use results::Summary;
use results::log::{CommitError, CommitQueue, envelope};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::errors::{Result, conflict, internal, invalid};
use crate::health::{Health, Uptime};
use crate::metrics;
use crate::options::{BYTES_IN_FLIGHT_MAX, DELIVERIES_PER_CALL_MAX};
use crate::plan::numbering::Slot;
use crate::queue::client::QueueClient;
use crate::records::lag::Lag;
use crate::records::loaded::LoadedRuns;
use crate::records::log_handle::{Checked, Committer, LogHandle};
use crate::records::run::{FoldedRecord, Run};
use crate::records::store::Store;

/// The unit in which space for records is counted.
const BYTES_PER_PERMIT: usize = 1024;

/// Maximum number of records in a batch, well below the queue's maximum per call.
const BATCH_MAX: usize = 512;

/// Maximum number of concurrent batches of a run: one draws tickets, one is in the log, one in the queue, one returns.
const BATCHES_UNDER_WAY_MAX: usize = 4;

/// Number of recently appended records whose ids are remembered: enough for longer than a worker takes to repeat a delivery.
const RECENT_RECORDS: usize = 32_768;

/// How far the generation of a record may exceed that of the run. Another coordinator may have rebuilt the queue; but an
/// arbitrary number would raise all later generations above it, until the queue cannot represent them any more.
const GENERATIONS_AHEAD: u64 = 1 << 41;

/// Tickets of recently appended records, so that a repeated delivery is not appended again.
#[derive(Debug, Default)]
struct RecentRecords {
    /// With a hash of the content, because equal ids do not prove equal content.
    tickets: HashMap<RecordId, (u64, u64)>,
    hasher: RandomState,
    order: VecDeque<RecordId>,
}

impl RecentRecords {
    fn get(&self, id: &RecordId, json: &str) -> Option<u64> {
        let (ticket, content) = self.tickets.get(id)?;
        (*content == self.hasher.hash_one(json)).then_some(*ticket)
    }

    fn insert(&mut self, id: &RecordId, json: &str, ticket: u64) {
        let content = self.hasher.hash_one(json);
        if self.tickets.insert(id.clone(), (ticket, content)).is_some() {
            return;
        }
        self.order.push_back(id.clone());
        if self.order.len() > RECENT_RECORDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tickets.remove(&oldest);
        }
    }
}

/// The commit paths of all runs.
pub(crate) struct RecordLogs {
    queue: Arc<QueueClient>,
    store: Arc<Store>,
    loaded: Arc<LoadedRuns>,
    health: Arc<Health>,
    clock: Uptime,
    /// Space for records on their way to the log, in units of [`BYTES_PER_PERMIT`].
    room: Arc<Semaphore>,
    recent: Mutex<RecentRecords>,
    lag: Lag,
}

/// Starts the commit path of a run's log.
fn start(commits: Weak<RecordLogs>, run: Weak<Run>, log: CommitQueue) -> Committer {
    let (checked, waiting) = mpsc::unbounded_channel();
    let broken = Arc::new(AtomicBool::new(false));
    tokio::spawn(gather(commits, run, log, waiting, Arc::clone(&broken)));
    Committer { checked, broken }
}

/// Combines waiting records into batches. While the maximum number of batches is running, more records accumulate, so
/// batches grow with the load. Ends with the run's committer.
async fn gather(
    commits: Weak<RecordLogs>,
    run: Weak<Run>,
    log: CommitQueue,
    mut waiting: mpsc::UnboundedReceiver<Checked>,
    broken: Arc<AtomicBool>,
) {
    let under_way = Arc::new(Semaphore::new(BATCHES_UNDER_WAY_MAX));
    loop {
        let Ok(turn) = Arc::clone(&under_way).acquire_owned().await else { return };
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        let (Some(commits), Some(run)) = (commits.upgrade(), run.upgrade()) else { return };
        let (log, broken) = (log.clone(), Arc::clone(&broken));
        tokio::spawn(async move {
            let result = commits.commit_batch(&run, &log, &batch, &broken).await;
            for item in batch {
                // The caller may have gone away.
                let _ = item.receipt.send(result.clone().map(|()| Receipt::Stored));
            }
            drop(turn);
        });
    }
}

impl RecordLogs {
    pub(crate) fn new(
        queue: Arc<QueueClient>,
        store: Arc<Store>,
        loaded: Arc<LoadedRuns>,
        health: Arc<Health>,
        clock: Uptime,
    ) -> Self {
        let room = Arc::new(Semaphore::new(BYTES_IN_FLIGHT_MAX / BYTES_PER_PERMIT));
        let (recent, lag) = (Mutex::default(), Lag::default());
        Self { queue, store, loaded, health, clock, room, recent, lag }
    }

    /// Bytes of records on their way to the log.
    pub(crate) fn bytes_in_flight(&self) -> usize {
        BYTES_IN_FLIGHT_MAX.saturating_sub(self.room.available_permits() * BYTES_PER_PERMIT)
    }

    /// Age of the oldest record on its way to the log.
    pub(crate) fn lag(&self) -> Duration {
        self.lag.oldest(self.clock.now())
    }

    /// Stores records; returns the receipt of each, in order.
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        deliveries: Vec<Delivery>,
        caller: &Caller,
    ) -> Result<Vec<Receipt>> {
        if deliveries.len() > DELIVERIES_PER_CALL_MAX {
            let (most, given) = (DELIVERIES_PER_CALL_MAX, deliveries.len());
            return Err(invalid(format!("at most {most} records may be delivered at once, not {given}")));
        }
        let mut accepted = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            accepted.push(self.accept(delivery, caller).await);
        }
        let mut outcomes = Vec::with_capacity(accepted.len());
        for accepted in accepted {
            let ended = || ServiceError::new(ErrorCode::Unavailable, "the coordinator is ending");
            outcomes.push(match accepted {
                Ok(receipt) => receipt.await.unwrap_or_else(|_| Err(ended())),
                Err(error) => Err(error),
            });
        }
        receipts(outcomes)
    }

    /// Checks a record and sends it on its way.
    async fn accept(
        self: &Arc<Self>,
        delivery: Delivery,
        caller: &Caller,
    ) -> Result<oneshot::Receiver<Result<Receipt>>> {
        let (receipt, received) = oneshot::channel();
        let run = match self.loaded.known(&delivery.run).await {
            Ok(run) if run.is_attended() || run.phase().is_over() => run,
            Ok(run) => return Err(conflict(format!("run {} is not run by this fleet", run.id()))),
            Err(error)
                if error.code == ErrorCode::NotFound && self.store.sink.is_removed(&delivery.run).await? =>
            {
                let reason = format!("run {} was removed", delivery.run);
                let _ = receipt.send(Ok(Receipt::Refused { reason }));
                return Ok(received);
            }
            Err(error) => return Err(error),
        };
        // What is longer than any record is refused below, and takes all the room until then.
        let permits = delivery.json.len().min(BYTES_IN_FLIGHT_MAX).div_ceil(BYTES_PER_PERMIT).max(1);
        let room = Arc::clone(&self.room).acquire_many_owned(permits as u32).await.map_err(internal)?;
        if run.layout.slot_of(&delivery.key).is_none() {
            // Not planned here; perhaps it is since the run was extended.
            self.loaded.expect_newest(&run).await?;
        }
        let generation = self.queue.at(&run).await?.generation;
        let (slot, summary, json) = match check(&run, generation, &delivery, caller) {
            Ok(checked) => checked,
            Err(reason) => {
                // Both say what the delivery says, at any length.
                let [key, reason] = [delivery.key.to_string(), reason].map(|text| ShortName::from(&*text).0);
                tracing::warn!(run = %run.id(), key, reason, "a record was refused");
                let _ = receipt.send(Ok(Receipt::Refused { reason }));
                return Ok(received);
            }
        };
        let checked =
            Checked { slot, summary, json, receipt, room, waiting: self.lag.begin(self.clock.now()) };
        let committer = self.committer(&run).await.inspect_err(|error| {
            if error.code == ErrorCode::NotFound {
                self.loaded.forget(run.id());
            }
        })?;
        committer
            .send(checked)
            .map_err(|_| ServiceError::new(ErrorCode::Unavailable, "the record log was closed"))?;
        Ok(received)
    }

    /// Takes the lock for writing a run, as long as it is loaded.
    ///
    /// # Errors
    /// A local process writes it; or, for a local process, a fleet does.
    pub(crate) async fn lock(&self, run: &Run) -> Result<()> {
        self.take_lock(run, &mut *run.log.lock().await)
    }

    fn take_lock(&self, run: &Run, log: &mut LogHandle) -> Result<()> {
        if log.lock.is_none() {
            log.lock = Some(self.store.lock(run.id())?);
        }
        Ok(())
    }

    /// The commit path of a run's log, opened with the first record and reopened if it has ended.
    pub(crate) async fn committer(
        self: &Arc<Self>,
        run: &Arc<Run>,
    ) -> Result<mpsc::UnboundedSender<Checked>> {
        let mut log = run.log.lock().await;
        let open = |committer: &&Committer| !committer.broken.load(Ordering::Acquire);
        if let Some(committer) = log.committer.as_ref().filter(open) {
            return Ok(committer.checked.clone());
        }
        self.take_lock(run, &mut log)?;
        log.committer = None;
        let writer = if log.reopened { self.store.new_writer() } else { run.writer };
        let open = self.health.note_sink(self.store.open_log(&run.manifest, writer).await)?;
        log.reopened = true;
        log.thread = Some(open.thread);
        // Now that the log is open: nobody may write what was asked for a run of before into it.
        self.loaded.expect_same(run).await?;
        let committer = start(Arc::downgrade(self), Arc::downgrade(run), open.queue);
        let sender = committer.checked.clone();
        log.committer = Some(committer);
        Ok(sender)
    }

    /// Closes the logs of all runs, after the records on their way. A later record opens its log again.
    pub(crate) async fn close_logs(&self) {
        for run in self.loaded.loaded() {
            let thread = {
                let mut log = run.log.lock().await;
                log.committer = None;
                log.thread.take()
            };
            if let Some(thread) = thread {
                // A panic of the thread was reported when it happened.
                let _ = service_kit::aside::run(|| thread.join()).await;
            }
        }
    }

    /// Ticket, log, queue.
    async fn commit_batch(
        &self,
        run: &Arc<Run>,
        log: &CommitQueue,
        batch: &[Checked],
        broken: &AtomicBool,
    ) -> Result<()> {
        let begun = tokio::time::Instant::now();
        let mut tickets: Vec<Option<u64>> = {
            let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            batch.iter().map(|item| recent.get(&item.summary.attempt.id, &item.json)).collect()
        };
        let fresh = tickets.iter().filter(|ticket| ticket.is_none()).count() as u32;
        if fresh > 0 {
            let mut drawn =
                self.queue.call(run, |queue, at| async move { queue.tickets(&at, fresh).await }).await?;
            let mut lines = Vec::with_capacity(fresh as usize);
            let mut found = Vec::with_capacity(fresh as usize);
            let mut slots = Vec::with_capacity(fresh as usize);
            for (ticket, item) in tickets.iter_mut().zip(batch) {
                if ticket.is_none() {
                    *ticket = drawn.next();
                    let ticket = ticket.unwrap_or_default();
                    lines.push((ticket, Arc::clone(&item.json)));
                    found.push(FoldedRecord { ticket, summary: item.summary.clone() });
                    slots.push(item.slot);
                }
            }
            let appending = tokio::time::Instant::now();
            let appended = log.commit_batch(lines).await;
            metrics::appended(appending.elapsed(), appended.is_ok());
            let appended = appended.map_err(|error| {
                if !error.is_disk_full() {
                    broken.store(true, Ordering::Release);
                }
                of_log(&error)
            });
            let place = self.health.note_sink(appended)?;
            // Durable from here on: the table shows the content of the log, even if the queue cannot be updated now.
            let again: Vec<Slot> =
                run.table(|table| slots.into_iter().filter(|slot| table.get(*slot).is_some()).collect());
            let mut superseded = 0;
            run.fold(place, found, Some(self.clock.now()), |slot, row, summary| {
                superseded += u64::from(again.contains(&slot));
                let (model, task, _) = run.layout.place(slot);
                let (model, task) = (&run.models[model].label, &run.plan.tasks[task].label);
                metrics::dialogue(model, task, row.outcome.err(), summary.completion_tokens());
            });
            metrics::repeated(superseded, (again.len() as u64).saturating_sub(superseded));
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            for (ticket, item) in tickets.iter().zip(batch) {
                recent.insert(&item.summary.attempt.id, &item.json, ticket.unwrap_or_default());
            }
        }
        // The queue gets the record that counts, which may not be the delivered one: late records change nothing.
        let commits = batch.iter().filter_map(|item| {
            let row = run.table(|table| table.get(item.slot))?;
            Some(run.commit(item.slot, row))
        });
        let commits: Vec<Commit> = commits.collect();
        let commits: &[Commit] = &commits;
        self.queue.call(run, |queue, at| async move { queue.commit(&at, commits).await }).await?;
        metrics::committed(batch.len(), begun.elapsed());
        for item in batch {
            tracing::debug!(run = %run.id(), dialogue = %run.layout.key(item.slot), "a record is stored");
        }
        Ok(())
    }
}

/// The receipts for a worker. An error affects only the records of its run, which the worker keeps. A transient error
/// shared by all records becomes the error of the call, which the worker soon retries.
fn receipts(outcomes: Vec<Result<Receipt>>) -> Result<Vec<Receipt>> {
    let passes = |outcome: &Result<Receipt>| outcome.as_ref().is_err_and(|error| error.code.is_transient());
    if outcomes.iter().all(passes)
        && let Some(Err(error)) = outcomes.first()
    {
        return Err(error.clone());
    }
    let kept = |error: ServiceError| Receipt::Later { reason: error.message };
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(kept)).collect())
}

/// Checks whether a record may be written to the log of a run, and finds its slot. It is parsed completely: otherwise a
/// text that only begins like a record would be noticed by readers of the log, when it counts already. Also returns the JSON
/// to store.
fn check(
    run: &Run,
    known: u64,
    delivery: &Delivery,
    caller: &Caller,
) -> std::result::Result<(Slot, Summary, Arc<str>), String> {
    envelope::check_raw(&delivery.json).map_err(|error| error.to_string())?;
    let record: Record = serde_json::from_str(&delivery.json)
        .map_err(|error| format!("the record of {} cannot be read: {error}", delivery.key))?;
    let head = Summary::of(&record);
    if head.key != delivery.key {
        return Err(format!("the record is of {}, it was delivered as one of {}", head.key, delivery.key));
    }
    if head.outcome.failure() != delivery.failure {
        return Err(format!("the record of {} ends otherwise than it was delivered", head.key));
    }
    let worker = &record.attempt.worker;
    if !caller.may_be(worker) {
        return Err(format!(
            "the record of {} is of worker `{worker}`, as which `{}` may not act",
            head.key,
            caller.name()
        ));
    }
    let generation = head.attempt.generation;
    if generation <= run.after && run.after > 0 {
        return Err(format!("the record of {} belongs to a run of this name that was removed", head.key));
    }
    if generation > known.saturating_add(GENERATIONS_AHEAD) {
        return Err(format!(
            "the record of {} is of generation {generation}; the run's is {known}",
            head.key
        ));
    }
    let slot = run.layout.slot_of(&head.key);
    let slot = slot.ok_or_else(|| format!("{} is not planned in run {}", head.key, run.id()))?;
    Ok((slot, head, stored(&delivery.json, &record)?))
}

/// What is stored of a record. Nobody reads more than this version does, but for a later version's fields; a record with far
/// more than that is stored as it was read, because its answers count all the same.
fn stored(json: &Arc<str>, record: &Record) -> std::result::Result<Arc<str>, String> {
    if json.len() <= UNREAD_BYTES_MAX || json.len() - UNREAD_BYTES_MAX <= json_bytes(record) {
        return Ok(Arc::clone(json));
    }
    let read =
        serde_json::to_string(record).map_err(|error| format!("the record cannot be written: {error}"))?;
    let (bytes, kept) = (json.len(), read.len());
    tracing::warn!(key = %record.key, bytes, kept, "a record has more than is read of it; that was left out");
    Ok(read.into())
}

fn of_log(error: &CommitError) -> ServiceError {
    if error.is_disk_full() {
        let message = format!("{error}: make room for records, workers keep theirs until then");
        return ServiceError::new(ErrorCode::Full, message);
    }
    ServiceError::new(ErrorCode::Unavailable, format!("records cannot be stored: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_records_are_remembered_up_to_a_bound() {
        let mut recent = RecentRecords::default();
        let id = |n: usize| RecordId::new(n.to_string());
        for n in 0..=RECENT_RECORDS {
            recent.insert(&id(n), "{}", n as u64);
            recent.insert(&id(n), "{}", n as u64);
        }
        assert_eq!(recent.get(&id(0), "{}"), None);
        assert_eq!(recent.get(&id(1), "{}"), Some(1));
        assert_eq!(recent.get(&id(1), "{ }"), None, "another record under the same id");
        assert_eq!((recent.tickets.len(), recent.order.len()), (RECENT_RECORDS, RECENT_RECORDS));
    }
}
