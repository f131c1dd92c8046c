//! Stores the records of a batch.

use std::sync::Arc;

use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{ErrorCode, ServiceError};

use crate::wire;

/// Stores the records of a batch. An invalid record is refused alone; it does not affect the others.
pub(super) async fn store(
    exchange: Arc<dyn WorkExchange>,
    deliveries: Vec<wire::Delivery>,
) -> Result<Vec<Receipt>, ServiceError> {
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
