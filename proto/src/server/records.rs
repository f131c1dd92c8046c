//! A stream of record batches: stored several at a time, answered in order.

use std::pin::Pin;
use std::sync::Arc;

use domain::caller::Caller;
use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{ErrorCode, ServiceError};
use futures::{Stream, StreamExt as _};
use tonic::{Status, Streaming};

use super::closing::Closing;
use super::feed::{revoked, until_cut};
use crate::convert::receipts_to_wire;
use crate::limits::BATCHES_STORED_AT_ONCE;
use crate::status::to_status;
use crate::wire::{self, batch_outcome::Outcome};

/// The outcomes of a stream of batches.
pub(super) type Outcomes = Pin<Box<dyn Stream<Item = Result<wire::BatchOutcome, Status>> + Send>>;

/// Stores the batches of a worker. At most [`BATCHES_STORED_AT_ONCE`] are in progress; the next one is read when the
/// first of them is answered, so a slow store slows the worker down through HTTP/2's flow control.
pub(super) fn outcomes(
    exchange: Arc<dyn WorkExchange>,
    caller: Caller,
    incoming: Streaming<wire::DeliveryBatch>,
    closing: Closing,
) -> Outcomes {
    let draining = {
        let closing = closing.clone();
        async move { closing.draining().await }
    };
    let outcomes = incoming
        .take_until(Box::pin(draining))
        .map(move |batch| match batch {
            Ok(_) if caller.is_revoked() => Err(to_status(revoked(&caller))),
            batch => batch,
        })
        .map(move |batch| {
            // A separate task: if the connection breaks, a batch in progress is still stored completely.
            let stored = batch.map(|batch| {
                let sequence = batch.sequence;
                (sequence, tokio::spawn(store(Arc::clone(&exchange), batch)))
            });
            async move {
                let (sequence, stored) = stored?;
                let result = stored.await.unwrap_or_else(|e| {
                    Err(ServiceError::new(ErrorCode::Internal, format!("storing records failed: {e}")))
                });
                let outcome = match result {
                    Ok(receipts) => Outcome::Receipts(receipts_to_wire(receipts)),
                    Err(error) => Outcome::Error(error.into()),
                };
                Ok(wire::BatchOutcome { sequence, outcome: Some(outcome) })
            }
        })
        .buffered(BATCHES_STORED_AT_ONCE);
    Box::pin(until_cut(outcomes, closing))
}

/// Stores the records of a batch. An invalid record is refused alone; it does not affect the others.
async fn store(
    exchange: Arc<dyn WorkExchange>,
    batch: wire::DeliveryBatch,
) -> Result<Vec<Receipt>, ServiceError> {
    let deliveries = batch.deliveries;
    let mut refusals = Vec::with_capacity(deliveries.len());
    let mut readable = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        match Delivery::try_from(delivery) {
            Ok(delivery) => {
                readable.push(delivery);
                refusals.push(None);
            }
            Err(error) => refusals.push(Some(Receipt::Refused { reason: error.to_string() })),
        }
    }
    let expected = readable.len();
    let receipts = if readable.is_empty() { Vec::new() } else { exchange.deliver(readable).await? };
    if receipts.len() != expected {
        let message = format!("{} receipts were given for {expected} records", receipts.len());
        return Err(ServiceError::new(ErrorCode::Internal, message));
    }
    let mut receipts = receipts.into_iter();
    Ok(refusals.into_iter().filter_map(|refusal| refusal.or_else(|| receipts.next())).collect())
}
