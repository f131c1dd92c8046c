//! Records on their way to the log and what became of them.

use domain::RunId;
use domain::exchange::{Delivery, Receipt};

use super::failure_cause::{cause_from_wire, cause_to_wire};
use super::{ConversionError, bytes, present, required, text};
use crate::wire;

impl From<Delivery> for wire::Delivery {
    fn from(delivery: Delivery) -> Self {
        Self {
            run: delivery.run.to_string(),
            key: Some(delivery.key.into()),
            failure: delivery.failure.map(cause_to_wire),
            json: bytes(&delivery.json),
        }
    }
}

impl TryFrom<wire::Delivery> for Delivery {
    type Error = ConversionError;

    fn try_from(delivery: wire::Delivery) -> Result<Self, ConversionError> {
        Ok(Self {
            run: RunId::new(required("Delivery.run", delivery.run)?),
            key: present("Delivery.key", delivery.key)?.try_into()?,
            failure: delivery
                .failure
                .map(|number| cause_from_wire("Delivery.failure", number))
                .transpose()?,
            json: text("Delivery.json", &delivery.json)?,
        })
    }
}

impl From<Receipt> for wire::Receipt {
    fn from(receipt: Receipt) -> Self {
        match receipt {
            Receipt::Stored => Self { refused: None },
            Receipt::Refused { reason } => Self { refused: Some(reason) },
        }
    }
}

impl From<wire::Receipt> for Receipt {
    fn from(receipt: wire::Receipt) -> Self {
        match receipt.refused {
            None => Self::Stored,
            Some(reason) => Self::Refused { reason },
        }
    }
}

/// The receipts of a batch as they travel.
pub(crate) fn receipts_to_wire(receipts: Vec<Receipt>) -> wire::Receipts {
    wire::Receipts { receipts: super::every(receipts) }
}

/// The receipts of a batch of `expected` records.
///
/// # Errors
/// There are more or fewer: whose they are cannot be told.
pub(crate) fn receipts_from_wire(
    receipts: wire::Receipts,
    expected: usize,
) -> Result<Vec<Receipt>, ConversionError> {
    let found = receipts.receipts.len();
    if found == expected {
        Ok(super::every(receipts.receipts))
    } else {
        Err(ConversionError::OutOfRange {
            field: "Receipts.receipts",
            value: format!("a list of {found} for {expected} records"),
            range: "lists as long as the batch",
        })
    }
}
