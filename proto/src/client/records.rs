//! Delivers records: all deliveries of a client share one stream of batches.
//!
//! The records of a call to [`RecordLane::deliver`] are a numbered batch. The outcome of a batch carries its number and
//! completes the waiting call. If the stream breaks, or a batch is refused with [`ErrorCode::Unavailable`], all waiting
//! calls fail with that code, and the next call opens another stream. Nothing is retried here, because the caller
//! keeps its records until they are acknowledged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::exchange::{Delivery, Receipt};
use domain::{ErrorCode, ServiceError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::{Line, Wire};
use crate::convert::{every, receipts_from_wire, refuse_answer};
use crate::limits::{BATCH_TIMEOUT, BATCHES_IN_FLIGHT, CALL_TIMEOUT, DELIVERY_BYTES};
use crate::wire::work_service_client::WorkServiceClient;
use crate::wire::{self, batch_outcome::Outcome};

/// The shared stream of a client's records.
#[derive(Debug)]
pub(super) struct RecordLane {
    line: Line,
    work: WorkServiceClient<Wire>,
    /// A permit for each batch in flight, held until its outcome is known or its stream is gone.
    in_flight: Arc<Semaphore>,
    /// The stream in use. The lock is held while one is opened, so that only one is.
    current: tokio::sync::Mutex<Option<Arc<OpenStream>>>,
}

impl RecordLane {
    pub(super) fn new(line: Line, work: WorkServiceClient<Wire>) -> Self {
        let in_flight = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT));
        Self { line, work, in_flight, current: tokio::sync::Mutex::new(None) }
    }

    /// Stores records; see [`WorkExchange::deliver`](domain::exchange::WorkExchange::deliver).
    pub(super) async fn deliver(&self, deliveries: Vec<Delivery>) -> Result<Vec<Receipt>, ServiceError> {
        // A record that does not fit into a message would break the stream for all others, again and again.
        let too_long = |delivery: &Delivery| size(delivery) > DELIVERY_BYTES;
        let refusals: Vec<Option<Receipt>> =
            deliveries.iter().map(|delivery| too_long(delivery).then(|| refusal(delivery))).collect();
        let sendable: Vec<Delivery> = deliveries.into_iter().filter(|delivery| !too_long(delivery)).collect();

        let bytes: usize = sendable.iter().map(size).sum();
        if bytes > DELIVERY_BYTES {
            let message = format!("a call delivers at most {DELIVERY_BYTES} bytes of records, not {bytes}");
            return Err(ServiceError::new(ErrorCode::Invalid, message));
        }
        let receipts = if sendable.is_empty() { Vec::new() } else { self.send(every(sendable)).await? };
        let mut receipts = receipts.into_iter();
        Ok(refusals.into_iter().filter_map(|refusal| refusal.or_else(|| receipts.next())).collect())
    }

    /// Sends one batch and waits for its outcome.
    async fn send(&self, deliveries: Vec<wire::Delivery>) -> Result<Vec<Receipt>, ServiceError> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.in_flight).acquire_owned().await.ok();
        let stream = self.stream().await?;
        let outcome = stream.send(deliveries, permit, &self.line);
        match tokio::time::timeout(BATCH_TIMEOUT, outcome).await {
            Ok(result) => result,
            Err(_) => {
                // Outcomes arrive in order: if this one does not arrive, none after it does.
                let error = self.line.silent(BATCH_TIMEOUT);
                stream.waiting.close(&error);
                Err(error)
            }
        }
    }

    /// The stream in use, or a new one.
    async fn stream(&self) -> Result<Arc<OpenStream>, ServiceError> {
        let mut current = self.current.lock().await;
        if let Some(stream) = current.as_ref().filter(|stream| !stream.waiting.is_closed()) {
            return Ok(Arc::clone(stream));
        }
        *current = None;
        let (outgoing, batches) = mpsc::channel(BATCHES_IN_FLIGHT);
        let mut work = self.work.clone();
        // No deadline: the stream lives as long as the connection.
        let call = work.deliver_records(ReceiverStream::new(batches));
        let outcomes = self.line.answer(CALL_TIMEOUT, call).await?;
        let waiting = Arc::new(Waiting::default());
        let reader = tokio::spawn(read(outcomes, Arc::clone(&waiting), self.line.clone())).abort_handle();
        let stream = Arc::new(OpenStream { outgoing, waiting, reader });
        *current = Some(Arc::clone(&stream));
        Ok(stream)
    }
}

/// A stream to the coordinator. Dropping the last reference also ends its reader.
#[derive(Debug)]
struct OpenStream {
    outgoing: mpsc::Sender<wire::DeliveryBatch>,
    waiting: Arc<Waiting>,
    reader: AbortHandle,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl OpenStream {
    async fn send(
        &self,
        deliveries: Vec<wire::Delivery>,
        permit: Option<OwnedSemaphorePermit>,
        line: &Line,
    ) -> Result<Vec<Receipt>, ServiceError> {
        let lost = || ServiceError::new(ErrorCode::Unavailable, format!("the line to {} broke", line.peer));
        // First reserve a place in the channel, then take the number. Nothing can fail or be cancelled between the
        // two, so every number that is awaited is also sent.
        let place = self.outgoing.reserve().await.map_err(|_| lost())?;
        let (call, answer) = oneshot::channel();
        let sequence =
            self.waiting.enter(Call { records: deliveries.len(), answer: call, _permit: permit })?;
        place.send(wire::DeliveryBatch { sequence, deliveries });
        answer.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// A batch without an outcome.
#[derive(Debug)]
struct Call {
    records: usize,
    answer: oneshot::Sender<Result<Vec<Receipt>, ServiceError>>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The batches of one stream without an outcome, by number.
#[derive(Debug, Default)]
struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    calls: BTreeMap<u64, Call>,
    closed: Option<ServiceError>,
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave the state inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch; returns its number.
    ///
    /// # Errors
    /// The error that closed the stream.
    fn enter(&self, call: Call) -> Result<u64, ServiceError> {
        let mut state = self.state();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        let sequence = state.next;
        state.next += 1;
        state.calls.insert(sequence, call);
        Ok(sequence)
    }

    /// Takes out the batch of this number.
    fn leave(&self, sequence: u64) -> Option<Call> {
        self.state().calls.remove(&sequence)
    }

    fn is_closed(&self) -> bool {
        self.state().closed.is_some()
    }

    /// Closes the stream: fails all waiting calls.
    fn close(&self, error: &ServiceError) {
        let mut state = self.state();
        state.closed.get_or_insert_with(|| error.clone());
        for call in std::mem::take(&mut state.calls).into_values() {
            // The caller may have given up.
            let _ = call.answer.send(Err(error.clone()));
        }
    }
}

/// Distributes outcomes to the waiting calls, until the stream ends.
async fn read(mut outcomes: Streaming<wire::BatchOutcome>, waiting: Arc<Waiting>, line: Line) {
    let error = loop {
        match outcomes.message().await {
            Ok(Some(outcome)) => {
                let Some(call) = waiting.leave(outcome.sequence) else {
                    let message =
                        format!("{} answered batch {}, which was not sent", line.peer, outcome.sequence);
                    break ServiceError::new(ErrorCode::Unavailable, message);
                };
                let receipts = receipts(outcome.outcome, call.records);
                let refused = receipts.as_ref().err().filter(|error| error.code == ErrorCode::Unavailable);
                let refused = refused.cloned();
                let _ = call.answer.send(receipts);
                // Who cannot serve, such as a coordinator that does not lead, would refuse the next batch, too. Another
                // stream goes to the coordinator that other calls have found.
                if let Some(error) = refused {
                    break error;
                }
            }
            Ok(None) => {
                let message = format!("{} ended the stream of records", line.peer);
                break ServiceError::new(ErrorCode::Unavailable, message);
            }
            Err(status) => break line.error(&status),
        }
    };
    waiting.close(&error);
}

fn receipts(outcome: Option<Outcome>, records: usize) -> Result<Vec<Receipt>, ServiceError> {
    match outcome {
        Some(Outcome::Receipts(receipts)) => receipts_from_wire(receipts, records).map_err(refuse_answer),
        Some(Outcome::Error(error)) => Err(error.try_into().unwrap_or_else(refuse_answer)),
        None => Err(refuse_answer(crate::ConversionError::Missing { field: "BatchOutcome.outcome" })),
    }
}

fn refusal(delivery: &Delivery) -> Receipt {
    let (key, bytes) = (&delivery.key, delivery.json.len());
    Receipt::Refused {
        reason: format!("the record of {key} has {bytes} bytes; the limit is {DELIVERY_BYTES}"),
    }
}

/// An upper bound of a delivery's size in a message: its texts, and generous room for tags, lengths and numbers.
fn size(delivery: &Delivery) -> usize {
    const NUMBERS_AND_TAGS: usize = 64;
    let key = &delivery.key;
    NUMBERS_AND_TAGS
        + delivery.run.as_str().len()
        + key.model.as_str().len()
        + key.task.as_str().len()
        + delivery.json.len()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    #[tokio::test]
    async fn so_many_batches_are_in_flight_and_no_more() {
        // Somebody who accepts the connection, and then says nothing.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let client = crate::Client::connect_lazy(&crate::ClientConfig::new(address)).unwrap();
        let free = || client.records.in_flight.available_permits();
        let mut calls = Vec::new();
        for sent in 1..2 * BATCHES_IN_FLIGHT {
            let mut call = Box::pin(client.records.deliver(vec![delivery("m", 1)]));
            assert!(call.as_mut().now_or_never().is_none());
            calls.push(call);
            assert_eq!(free(), BATCHES_IN_FLIGHT.saturating_sub(sent));
        }
        drop(calls);
        assert_eq!(free(), BATCHES_IN_FLIGHT, "calls given up leave their places");
    }

    fn delivery(name: &str, bytes: usize) -> Delivery {
        let key = domain::DialogueKey { model: name.into(), task: name.into(), iteration: u32::MAX };
        let failure = Some(domain::FailureCause::Cancelled);
        Delivery { run: name.into(), key, failure, json: "x".repeat(bytes).into() }
    }

    proptest! {
        #[test]
        fn the_size_is_never_below_what_is_sent(name in "[a-zü]{1,200}", bytes in 1..100_000_usize) {
            let delivery = delivery(&name, bytes);
            let estimate = size(&delivery);
            let batch = wire::DeliveryBatch {
                sequence: u64::MAX,
                deliveries: vec![delivery.into()],
            };
            prop_assert!(batch.encoded_len() <= estimate);
        }
    }
}
