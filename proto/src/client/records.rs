//! Delivers records: those of a call travel together as a batch. Nothing is retried here, because the caller keeps its records
//! until they are acknowledged.

use domain::exchange::{Delivery, Receipt};
use domain::{ErrorCode, ServiceError};

use super::Client;
use crate::convert::{every, receipts_from_wire, refuse_answer};
use crate::limits::{BATCH_TIMEOUT, DELIVERY_BYTES};
use crate::wire;

/// Stores records; see [`WorkExchange::deliver`](domain::exchange::WorkExchange::deliver).
pub(super) async fn deliver(
    client: &Client,
    deliveries: Vec<Delivery>,
) -> Result<Vec<Receipt>, ServiceError> {
    // A record that does not fit into a message would have the others refused with it, again and again.
    let too_long = |delivery: &Delivery| size(delivery) > DELIVERY_BYTES;
    let refusals: Vec<Option<Receipt>> =
        deliveries.iter().map(|delivery| too_long(delivery).then(|| refusal(delivery))).collect();
    let sendable: Vec<Delivery> = deliveries.into_iter().filter(|delivery| !too_long(delivery)).collect();

    let bytes: usize = sendable.iter().map(size).sum();
    if bytes > DELIVERY_BYTES {
        let message = format!("a call delivers at most {DELIVERY_BYTES} bytes of records, not {bytes}");
        return Err(ServiceError::new(ErrorCode::Invalid, message));
    }
    let receipts = if sendable.is_empty() { Vec::new() } else { send(client, sendable).await? };
    let mut receipts = receipts.into_iter();
    Ok(refusals.into_iter().filter_map(|refusal| refusal.or_else(|| receipts.next())).collect())
}

async fn send(client: &Client, deliveries: Vec<Delivery>) -> Result<Vec<Receipt>, ServiceError> {
    let records = deliveries.len();
    let batch = wire::DeliveryBatch { deliveries: every(deliveries) };
    let request = client.line.request(BATCH_TIMEOUT, batch);
    let receipts = client.line.answer(BATCH_TIMEOUT, client.work.clone().deliver_records(request)).await?;
    receipts_from_wire(receipts, records).map_err(refuse_answer)
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
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    proptest! {
        #[test]
        fn the_size_is_never_below_what_is_sent(name in "[a-zü]{1,200}", bytes in 1..100_000_usize) {
            let key = domain::DialogueKey { model: name.as_str().into(), task: name.as_str().into(), iteration: u32::MAX };
            let failure = Some(domain::FailureCause::Cancelled);
            let delivery = Delivery { run: name.as_str().into(), key, failure, json: "x".repeat(bytes).into() };
            let estimate = size(&delivery);
            let batch = wire::DeliveryBatch { deliveries: vec![delivery.into()] };
            prop_assert!(batch.encoded_len() <= estimate);
        }
    }
}
