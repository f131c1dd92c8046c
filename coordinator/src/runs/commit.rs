//! The path of records: log, table, receipt.
//!
//! A worker may drop a record only after it is durable in the log, written by whoever leads, which the log's claim says. Records of
//! all workers are committed in common batches, several of them concurrently. The queue is not asked: records are taken in while it
//! takes no writes.

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
use results::Summary;
use results::log::{CommitError, CommitQueue, LogLine, envelope};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::errors::{Result, conflict, internal, invalid};
use crate::health::{Health, Uptime};
use crate::metrics;
use crate::options::{BYTES_IN_FLIGHT_MAX, DELIVERIES_PER_CALL_MAX};
use crate::plan::numbering::Slot;
use crate::queue::client::QueueClient;
use crate::records::events::{RunEvent, RunStateFile};
use crate::records::lag::Lag;
use crate::records::loaded::LoadedRuns;
use crate::records::log_handle::{Checked, WritableLog};
use crate::records::run::Run;
use crate::records::store::Store;

/// The unit in which space for records is counted.
const BYTES_PER_PERMIT: usize = 1024;

/// Maximum number of records in a batch.
const BATCH_MAX: usize = 512;

/// Maximum number of concurrent batches of a run: one is in the log, others come to it or return from it.
const BATCHES_UNDER_WAY_MAX: usize = 4;

/// Number of recently appended records whose ids are remembered: enough for longer than a worker takes to repeat a delivery.
const RECENT_RECORDS: usize = 32_768;

/// How far the generation of a record may exceed that of the run. Another coordinator may have rebuilt the queue; but an
/// arbitrary number would raise all later generations above it, until the queue cannot represent them any more.
const GENERATIONS_AHEAD: u64 = 1 << 41;

/// Recently appended records, so that a repeated delivery is not appended again.
#[derive(Debug, Default)]
struct RecentRecords {
    /// With a hash of the content, because equal ids do not prove equal content.
    contents: HashMap<RecordId, u64>,
    hasher: RandomState,
    order: VecDeque<RecordId>,
}

impl RecentRecords {
    fn has(&self, id: &RecordId, json: &str) -> bool {
        self.contents.get(id).is_some_and(|content| *content == self.hasher.hash_one(json))
    }

    fn insert(&mut self, id: &RecordId, json: &str) {
        let content = self.hasher.hash_one(json);
        if self.contents.insert(id.clone(), content).is_some() {
            return;
        }
        self.order.push_back(id.clone());
        if self.order.len() > RECENT_RECORDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.contents.remove(&oldest);
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

/// Combines waiting records into batches. While the maximum number of batches is running, more records accumulate, so
/// batches grow with the load. Ends with the open log.
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
            let is_late = result.is_ok() && run.phase().is_over();
            // Whoever changes the state may wait for the end of this log.
            drop((log, turn));
            if is_late {
                // What comes late counts, too. Who dies before the list says so has acknowledged nothing, and is sent it again. Where
                // the list cannot be written now, a later round does it.
                let _ = commits.list_end(&run).await;
            }
            for item in batch {
                // The caller may have gone away.
                let _ = item.receipt.send(result.clone().map(|()| Receipt::Stored));
            }
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
        let open = self.open(&run).await.inspect_err(|error| {
            if error.code == ErrorCode::NotFound {
                self.loaded.forget(run.id());
            }
        })?;
        open.checked
            .send(checked)
            .map_err(|_| ServiceError::new(ErrorCode::Unavailable, "the record log was closed"))?;
        Ok(received)
    }

    /// Takes the right to write a run, as long as it is loaded.
    ///
    /// # Errors
    /// A local process writes it; or, for a local process, a fleet does.
    pub(crate) async fn lock(&self, run: &Run) -> Result<()> {
        let mut log = run.log.lock().await;
        if log.lock.is_none() {
            log.lock = Some(self.store.lock(run.id())?);
        }
        Ok(())
    }

    /// The log of a run, opened for writing if it is not, or if it has ended.
    ///
    /// # Errors
    /// Another process writes the run; this one does not lead the fleet; the sink cannot be written.
    pub(crate) async fn open(self: &Arc<Self>, run: &Arc<Run>) -> Result<WritableLog> {
        let mut log = run.log.lock().await;
        if let Some(open) = log.writable() {
            return Ok(open.clone());
        }
        if log.is_retired {
            let message = format!("run {} is read anew", run.id());
            return Err(ServiceError::new(ErrorCode::Unavailable, message));
        }
        log.close().await;
        if log.lock.is_none() {
            log.lock = Some(self.store.lock(run.id())?);
        }
        // Whoever was followed does not take the log from who leads now.
        self.queue.expect_leading().await?;
        let opened = self.health.note_sink(self.store.open_log(&run.manifest).await)?;
        log.thread = Some(opened.thread);
        // Whoever wrote it before may have done so until it was opened here.
        self.loaded.read_on(run).await?;
        let (checked, waiting) = mpsc::unbounded_channel();
        let broken = Arc::new(AtomicBool::new(false));
        let open = WritableLog { epoch: opened.epoch, checked, queue: opened.queue, broken };
        let (queue, broken) = (open.queue.clone(), Arc::clone(&open.broken));
        tokio::spawn(gather(Arc::downgrade(self), Arc::downgrade(run), queue, waiting, broken));
        log.open = Some(open.clone());
        Ok(open)
    }

    /// Appends an event to the log of a run, and takes it in. Returns the number of a retry.
    pub(crate) async fn append(self: &Arc<Self>, run: &Arc<Run>, event: RunEvent) -> Result<Option<u64>> {
        let open = self.open(run).await?;
        let json = serde_json::to_string(&event).map_err(internal)?;
        let (logs, run) = (Arc::clone(self), Arc::clone(run));
        // A task of its own: what is in the log is taken in, also where the caller goes away meanwhile.
        let appended = tokio::spawn(async move {
            let appended = open.queue.commit_batch(vec![LogLine::Event(json.into())]).await;
            let places = logs.health.note_sink(appended.map_err(|error| of_log(&error, &open.broken)))?;
            Ok(places.first().and_then(|place| run.fold_event(*place, event)))
        });
        appended.await.map_err(internal)?
    }

    /// Closes the logs of all runs, after the records on their way. A later record opens its log again.
    pub(crate) async fn close_logs(&self) {
        for run in self.loaded.loaded() {
            run.log.lock().await.close().await;
        }
    }

    /// Tells the sink's list how a run has ended by its log. Only who writes the log knows that nobody else goes on: where it ended,
    /// a later round opens it and does this.
    pub(crate) async fn list_end(&self, run: &Arc<Run>) -> Result<()> {
        let _one = run.changing.lock().await;
        run.set_listed(false);
        let epoch = run.log.lock().await.writable().map(|open| open.epoch);
        let (Some(epoch), Some(state)) = (epoch, run.known_state()) else { return Ok(()) };
        let listed = RunStateFile { epoch, ..run.summed_up(state) };
        run.set_listed(true);
        let put = self.health.note_sink(self.store.put_state(run.id(), &listed).await);
        put.inspect_err(|_| run.set_listed(false))
    }

    /// Log, then table.
    async fn commit_batch(
        &self,
        run: &Arc<Run>,
        log: &CommitQueue,
        batch: &[Checked],
        broken: &AtomicBool,
    ) -> Result<()> {
        let begun = tokio::time::Instant::now();
        let fresh: Vec<&Checked> = {
            let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            batch.iter().filter(|item| !recent.has(&item.summary.attempt.id, &item.json)).collect()
        };
        if !fresh.is_empty() {
            let lines = fresh.iter().map(|item| LogLine::Record(Arc::clone(&item.json))).collect();
            let appending = tokio::time::Instant::now();
            let appended = log.commit_batch(lines).await;
            metrics::appended(appending.elapsed(), appended.is_ok());
            let places = self.health.note_sink(appended.map_err(|error| of_log(&error, broken)))?;
            let found = fresh.iter().zip(places).map(|(item, location)| (location, &item.summary));
            let again: Vec<Slot> = run.table(|table| {
                fresh.iter().map(|item| item.slot).filter(|slot| table.get(*slot).is_some()).collect()
            });
            let mut superseded = 0;
            run.fold(found, Some(self.clock.now()), |slot, row, summary| {
                superseded += u64::from(again.contains(&slot));
                let (model, task, _) = run.layout.place(slot);
                let (model, task) = (&run.models[model].label, &run.plan.tasks[task].label);
                metrics::dialogue(model, task, row.outcome.err(), summary.completion_tokens());
            });
            metrics::repeated(superseded, (again.len() as u64).saturating_sub(superseded));
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            for item in fresh {
                recent.insert(&item.summary.attempt.id, &item.json);
            }
        }
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
    let record = Record::from_json(&delivery.json)
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

/// What a caller hears. After any error but a full disk the log has ended.
fn of_log(error: &CommitError, broken: &AtomicBool) -> ServiceError {
    if error.is_disk_full() {
        let message = format!("{error}: make room for records, workers keep theirs until then");
        return ServiceError::new(ErrorCode::Full, message);
    }
    broken.store(true, Ordering::Release);
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
            recent.insert(&id(n), "{}");
            recent.insert(&id(n), "{}");
        }
        assert!(!recent.has(&id(0), "{}") && recent.has(&id(1), "{}"));
        assert!(!recent.has(&id(1), "{ }"), "another record under the same id");
        assert_eq!((recent.contents.len(), recent.order.len()), (RECENT_RECORDS, RECENT_RECORDS));
    }
}
