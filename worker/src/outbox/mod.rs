//! Keeps records until a coordinator acknowledges them.
//!
//! A record is written to the [`spool`], if there is one, as soon as it arrives, and only its position is kept in memory: the
//! system's cache has what was just written. [`queue`] decides the order of delivery.
//!
//! Records of a run that the coordinator does not know, or cannot load, are kept, because an unmounted folder or a
//! damaged manifest is repaired sooner or later. They are deleted only if a coordinator refuses them for good, or by
//! hand with `kgfleet fleet workers spool drop`.
//!
//! Records of protected runs never touch the disk: their texts may be stored only encrypted, and a key that the
//! worker could read after a restart would be stored beside them. They are kept in memory, within its limit; if the
//! worker dies, their dialogues are held again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{ErrorCode, RunId, ServiceError};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

#[cfg(debug_assertions)]
mod noted;
mod outgoing;
pub mod queue;
mod segment;
pub mod spool;
pub mod spools;

use crate::metrics;
use crate::slots::Tag;
pub use outgoing::Outgoing;
use queue::{Batch, Body, Queue, QueuedRecord};
use spool::{Recovered, Spool, SpoolLocation};

/// Bytes of records kept only in memory at which no new dialogues start.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of batches of acknowledged records queued for the work loop.
const ACKNOWLEDGED_WAITING_MAX: usize = 64;

/// A record that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The dialogue, if this process held it.
    pub tag: Option<Tag>,
    /// `None` if the record is stored; otherwise why it never will be: the dialogue is given back.
    pub refused: Option<String>,
}

/// The handle of the outbox; see the module.
pub struct Outbox {
    records: mpsc::UnboundedSender<Incoming>,
    load: Arc<Load>,
    sender: JoinHandle<()>,
}

/// Messages to the sender.
enum Incoming {
    Record(Outgoing),
    /// The run is known again: offer its stranded records.
    Offer(RunId),
}

/// Pending records, for admission control.
#[derive(Default)]
struct Load {
    records: AtomicU64,
    /// Of these, records of an earlier process that were not offered yet.
    recovered: AtomicU64,
    /// Records of runs that the coordinator does not know or cannot load.
    stranded: AtomicU64,
    /// Bytes being stored.
    arriving_bytes: AtomicU64,
    /// Bytes kept only in memory.
    memory_bytes: AtomicU64,
    /// Bytes on disk, and their limit.
    spool_bytes: AtomicU64,
    spool_bytes_max: u64,
    trouble: Mutex<Option<String>>,
}

impl Load {
    /// Whether there is room for more records, with this many bytes in flight.
    fn has_space(&self, arriving: u64) -> bool {
        arriving + self.memory_bytes.load(Ordering::Relaxed) < MEMORY_BYTES_MAX
            && arriving + self.spool_bytes.load(Ordering::Relaxed) < self.spool_bytes_max
    }

    fn note_pending(&self, queue: &Queue) {
        let pending = queue.pending();
        self.stranded.store(pending.stranded, Ordering::Relaxed);
        self.recovered.store(pending.recovered, Ordering::Relaxed);
    }

    fn note_spool(&self, spool: &Spool) {
        metrics::spool_bytes(spool.bytes());
        self.spool_bytes.store(spool.waiting_bytes(), Ordering::Relaxed);
    }
}

/// A spool with its recovered records and its size limit.
pub struct OpenSpool {
    /// The folder.
    pub spool: Spool,
    /// Records of an earlier process.
    pub recovered: Recovered,
    /// Size at which no new dialogues start.
    pub bytes_max: u64,
}

impl Outbox {
    /// Starts sending, recovered records first.
    pub fn start(
        exchange: Arc<dyn WorkExchange>,
        spool: Option<OpenSpool>,
    ) -> (Self, mpsc::Receiver<Vec<Acknowledged>>) {
        // Bounded by admission control: no dialogue starts without room, so at most the records of dialogues in
        // flight come on top.
        let (records, incoming) = mpsc::unbounded_channel();
        let (acknowledged, received) = mpsc::channel(ACKNOWLEDGED_WAITING_MAX);
        let spool_bytes_max = spool.as_ref().map_or(u64::MAX, |spool| spool.bytes_max);
        if let Some(spool) = &spool {
            metrics::spool_limit(spool.bytes_max);
        }
        let load = Arc::new(Load { spool_bytes_max, ..Load::default() });
        let mut queue = Queue::default();
        let spool = spool.map(|OpenSpool { spool, recovered, .. }| {
            let since = Instant::now();
            load.records.store(recovered.records.len() as u64, Ordering::Relaxed);
            load.note_spool(&spool);
            for (run, location) in recovered.records {
                let (body, bytes) = (Body::Disk(location), location.bytes());
                queue.push(QueuedRecord { run, tag: None, body, bytes, since });
            }
            load.note_pending(&queue);
            Arc::new(Mutex::new(spool))
        });
        let sender = Sender {
            exchange,
            spool,
            queue,
            incoming,
            acknowledged,
            load: Arc::clone(&load),
            in_flight: FuturesUnordered::new(),
        };
        (Self { records, load, sender: tokio::spawn(sender.run()) }, received)
    }

    /// Submits a record.
    pub fn submit(&self, record: Outgoing) {
        self.load.records.fetch_add(1, Ordering::Relaxed);
        self.load.arriving_bytes.fetch_add(record.delivery.json.len() as u64, Ordering::Relaxed);
        // The sender outlives this handle.
        let _ = self.records.send(Incoming::Record(record));
    }

    /// The coordinator has granted work of this run, so it will accept records that it would not accept before.
    pub fn offer(&self, run: &RunId) {
        if self.stranded() > 0 {
            let _ = self.records.send(Incoming::Offer(run.clone()));
        }
    }

    /// Whether dialogues may start: there is room for their records, and recovered records were delivered, so that no
    /// dialogue is held whose record is here. Records of unknown runs do not block, because the coordinator grants no
    /// work of these runs.
    pub fn has_room(&self) -> bool {
        let load = &self.load;
        // The order of reading ensures that no record in transit is missed.
        let arriving = load.arriving_bytes.load(Ordering::Acquire);
        load.recovered.load(Ordering::Relaxed) == 0 && load.has_space(arriving)
    }

    /// Unacknowledged records.
    pub fn unacknowledged(&self) -> u64 {
        self.load.records.load(Ordering::Relaxed)
    }

    /// Of these, records of runs that the coordinator does not know or cannot load.
    pub fn stranded(&self) -> u64 {
        self.load.stranded.load(Ordering::Relaxed)
    }

    /// What blocks delivery, or new records.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.load.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.or_else(|| {
            let stranded = self.stranded();
            (stranded > 0 && !self.load.has_space(0)).then(|| {
                format!(
                    "no room for records: {stranded} wait for runs that the coordinator does not know or cannot load; see \
                     `kgfleet fleet workers spool list`"
                )
            })
        })
    }

    /// Stops sending. The worker's next process sends the records in the spool.
    pub async fn close(self) {
        drop(self.records);
        self.sender.abort();
        let _ = self.sender.await;
    }
}

type Landed = (Batch, Result<Vec<Option<Receipt>>, ServiceError>);

struct Sender {
    exchange: Arc<dyn WorkExchange>,
    spool: Option<Arc<Mutex<Spool>>>,
    queue: Queue,
    incoming: mpsc::UnboundedReceiver<Incoming>,
    acknowledged: mpsc::Sender<Vec<Acknowledged>>,
    load: Arc<Load>,
    in_flight: FuturesUnordered<BoxFuture<'static, Landed>>,
}

impl Sender {
    async fn run(mut self) {
        let mut incoming = Vec::new();
        loop {
            while let Some(batch) = self.queue.next(Instant::now()) {
                self.in_flight.push(Box::pin(send(batch, Arc::clone(&self.exchange), self.spool.clone())));
            }
            let wake_at = self.queue.wake_at();
            tokio::select! {
                // What has landed was sent before, so there is an end of it.
                biased;
                Some((batch, receipts)) = self.in_flight.next() => {
                    if self.landed(batch, receipts).await.is_break() {
                        return;
                    }
                }
                taken = self.incoming.recv_many(&mut incoming, queue::BATCH_RECORDS_MAX) => {
                    if taken == 0 {
                        return;
                    }
                    let mut records = Vec::with_capacity(taken);
                    for message in incoming.drain(..) {
                        match message {
                            Incoming::Record(record) => records.push(record),
                            Incoming::Offer(run) => self.queue.offer(&run, Instant::now()),
                        }
                    }
                    self.take(records).await;
                }
                () = sleep_until(wake_at) => {}
            }
        }
    }

    /// Stores records.
    async fn take(&mut self, records: Vec<Outgoing>) {
        let since = Instant::now();
        let to_disk: Vec<Delivery> =
            records.iter().filter(|record| record.spooled).map(|record| record.delivery.clone()).collect();
        let mut locations = self.append(to_disk).await.into_iter();
        for Outgoing { tag, delivery, spooled, .. } in records {
            let (run, bytes) = (delivery.run.clone(), delivery.json.len() as u64);
            let body = match if spooled { locations.next() } else { None } {
                Some(location) => Body::Disk(location),
                None => {
                    self.load.memory_bytes.fetch_add(bytes, Ordering::Relaxed);
                    Body::Memory(delivery)
                }
            };
            self.load.arriving_bytes.fetch_sub(bytes, Ordering::Release);
            self.queue.push(QueuedRecord { run, tag: Some(tag), body, bytes, since });
        }
        self.load.note_pending(&self.queue);
    }

    /// The positions of the records on disk; none if they could not be written.
    async fn append(&mut self, deliveries: Vec<Delivery>) -> Vec<SpoolLocation> {
        let Some(spool) = self.spool.clone().filter(|_| !deliveries.is_empty()) else { return Vec::new() };
        let load = Arc::clone(&self.load);
        let written = service_kit::aside::run(move || {
            let mut spool = lock(&spool);
            let locations = spool.append(&deliveries);
            load.note_spool(&spool);
            locations
        });
        match written.await {
            Ok(Ok(locations)) => locations,
            Ok(Err(error)) => {
                tracing::warn!(%error, "records cannot be written to the spool and wait in memory");
                Vec::new()
            }
            Err(_) => Vec::new(), // The runtime is ending.
        }
    }

    /// Handles the result of a batch.
    async fn landed(
        &mut self,
        batch: Batch,
        receipts: Result<Vec<Option<Receipt>>, ServiceError>,
    ) -> std::ops::ControlFlow<()> {
        let receipts = match receipts {
            Ok(receipts) => receipts,
            Err(error) => {
                tracing::warn!(records = batch.records.len(), %error, "records were not received; they go again");
                metrics::delivery_failed(error.code);
                self.queue.failed(batch, Instant::now());
                self.set_trouble(Some(format!("records cannot be delivered: {error}")));
                return std::ops::ControlFlow::Continue(());
            }
        };
        self.set_trouble(None);
        let Batch { run, number, records } = batch;
        let mut acknowledged = Vec::with_capacity(records.len());
        let (mut forgotten, mut kept) = (Vec::new(), Vec::new());
        let (mut recovered, mut why) = (0, None);
        for (record, receipt) in records.into_iter().zip(receipts) {
            let refused = match receipt {
                Some(Receipt::Stored) => None,
                Some(Receipt::Later { reason }) => {
                    kept.push(record);
                    why = Some(reason);
                    continue;
                }
                Some(Receipt::Refused { reason }) => {
                    tracing::error!(dialogue = ?record.tag, %reason, "the coordinator refused a record for good");
                    Some(reason)
                }
                None => Some("its record cannot be read back from the spool".to_owned()),
            };
            metrics::record_received(refused.is_some());
            self.load.records.fetch_sub(1, Ordering::Relaxed);
            recovered += u64::from(record.tag.is_none());
            match record.body {
                Body::Disk(location) => forgotten.push(location),
                Body::Memory(_) => {
                    self.load.memory_bytes.fetch_sub(record.bytes, Ordering::Relaxed);
                }
            }
            acknowledged.push(Acknowledged { tag: record.tag, refused });
        }
        let done = acknowledged.len() as u64;
        match why {
            None => self.queue.arrived(&run, done, recovered),
            Some(reason) => {
                let now = Instant::now();
                let records = kept.len();
                let batch = Batch { run: run.clone(), number, records: kept };
                let seconds = self.queue.strand(batch, done, recovered, now).duration_since(now).as_secs();
                tracing::warn!(%run, records, reason, seconds, "the coordinator cannot take records of this run; they are kept and offered again");
            }
        }
        self.load.note_pending(&self.queue);
        if let Some(spool) = self.spool.clone().filter(|_| !forgotten.is_empty()) {
            let load = Arc::clone(&self.load);
            let forget = service_kit::aside::run(move || {
                let mut spool = lock(&spool);
                spool.forget(forgotten);
                load.note_spool(&spool);
            });
            let _ = forget.await; // It fails where the runtime is ending.
        }
        match self.acknowledged.send(acknowledged).await {
            Ok(()) => std::ops::ControlFlow::Continue(()),
            Err(_) => std::ops::ControlFlow::Break(()),
        }
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.load.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Sends a batch, reading records back from disk if necessary. Returns one receipt per record, `None` for a record
/// that cannot be read back.
async fn send(batch: Batch, exchange: Arc<dyn WorkExchange>, spool: Option<Arc<Mutex<Spool>>>) -> Landed {
    let location = |record: &QueuedRecord| match record.body {
        Body::Memory(_) => None,
        Body::Disk(location) => Some(location),
    };
    let mut read = read(spool, batch.records.iter().filter_map(location).collect()).await.into_iter();
    let bodies = batch.records.iter().map(|record| match &record.body {
        Body::Memory(delivery) => Some(delivery.clone()),
        Body::Disk(_) => read.next().flatten(),
    });
    let bodies: Vec<Option<Delivery>> = bodies.collect();
    let readable: Vec<bool> = bodies.iter().map(Option::is_some).collect();
    let deliveries: Vec<Delivery> = bodies.into_iter().flatten().collect();
    let sent = deliveries.len();
    #[cfg(debug_assertions)]
    let sending = deliveries.clone();
    if sent == 0 {
        let receipts = readable.iter().map(|_| None).collect();
        return (batch, Ok(receipts));
    }
    let began = Instant::now();
    // Whoever gave up here would send again what may still be stored; a line to another machine has limits of its own.
    let receipts = match exchange.deliver(deliveries).await {
        Ok(receipts) if receipts.len() == sent => {
            #[cfg(debug_assertions)]
            noted::acknowledged(&sending, &receipts);
            Ok(receipts)
        }
        Ok(receipts) => {
            let message = format!("{} receipts came for {sent} records", receipts.len());
            Err(ServiceError::new(ErrorCode::Internal, message))
        }
        Err(error) => Err(error),
    };
    metrics::delivered(began.elapsed());
    let receipts = receipts.map(|receipts| {
        let mut receipts = receipts.into_iter();
        readable.iter().map(|readable| if *readable { receipts.next() } else { None }).collect()
    });
    (batch, receipts)
}

/// Reads records back, `None` for one that cannot be read.
async fn read(spool: Option<Arc<Mutex<Spool>>>, locations: Vec<SpoolLocation>) -> Vec<Option<Delivery>> {
    let Some(spool) = spool.filter(|_| !locations.is_empty()) else { return Vec::new() };
    let read = service_kit::aside::run(move || {
        let spool = lock(&spool);
        let read = |location| {
            spool.read(location).inspect_err(|error| {
                tracing::error!(%error, "a record cannot be read back from the spool; its dialogue is held again");
            })
        };
        locations.into_iter().map(|location| read(location).ok()).collect()
    });
    read.await.unwrap_or_default() // It fails where the runtime is ending.
}

fn lock(spool: &Mutex<Spool>) -> std::sync::MutexGuard<'_, Spool> {
    spool.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::exchange::LeaseId;
    use domain::{DialogueKey, ModelUsage};
    use harness::failing_coordinator::FailingCoordinator;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_record_that_takes_long_to_store_is_sent_once() {
        let coordinator = FailingCoordinator::new(Vec::new());
        coordinator.change(|state| state.storing_takes = Duration::from_secs(120));
        let (outbox, mut acknowledged) = Outbox::start(Arc::new(coordinator.clone()), None);
        let (run, model) = (RunId::new("r"), "m".into());
        let lease = LeaseId { run: run.clone(), generation: 1, model, unit: 0, attempt: 1 };
        let key = DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 };
        let delivery = Delivery { run, key, failure: None, json: "{}".into() };
        let tag = Tag { lease: Arc::new(lease), iteration: 0 };
        let used = ModelUsage::default();
        outbox.submit(Outgoing { tag, delivery, spooled: false, failure: None, was_refused: false, used });
        assert_eq!(acknowledged.recv().await.unwrap()[0].refused, None);
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(coordinator.state().stored.len(), 1);
    }
}
