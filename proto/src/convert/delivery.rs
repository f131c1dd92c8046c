//! Records on their way to the log, and their receipts.

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
            Receipt::Stored => Self { refused: None, later: None },
            Receipt::Later { reason } => Self { refused: None, later: Some(reason) },
            Receipt::Refused { reason } => Self { refused: Some(reason), later: None },
        }
    }
}

impl From<wire::Receipt> for Receipt {
    fn from(receipt: wire::Receipt) -> Self {
        match (receipt.refused, receipt.later) {
            (Some(reason), _) => Self::Refused { reason },
            (None, Some(reason)) => Self::Later { reason },
            (None, None) => Self::Stored,
        }
    }
}

/// Encodes the receipts of a batch.
pub(crate) fn receipts_to_wire(receipts: Vec<Receipt>) -> wire::Receipts {
    wire::Receipts { receipts: super::every(receipts), refusals_are_final: true }
}

/// Decodes the receipts of a batch of `expected` records. A coordinator from before [`Receipt::Later`] refused
/// records of unknown runs, so records that it refuses are kept.
///
/// # Errors
/// Their number differs, so they cannot be assigned.
pub(crate) fn receipts_from_wire(
    receipts: wire::Receipts,
    expected: usize,
) -> Result<Vec<Receipt>, ConversionError> {
    let found = receipts.receipts.len();
    let is_final = receipts.refusals_are_final;
    let kept = |receipt: Receipt| match receipt {
        Receipt::Refused { reason } if !is_final => Receipt::Later { reason },
        receipt => receipt,
    };
    if found == expected {
        Ok(receipts.receipts.into_iter().map(|receipt| kept(receipt.into())).collect())
    } else {
        Err(ConversionError::OutOfRange {
            field: "Receipts.receipts",
            value: format!("a list of {found} for {expected} records"),
            range: "lists as long as the batch",
        })
    }
}
