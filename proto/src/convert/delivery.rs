//! The receipts of records.

use domain::exchange::Receipt;

use super::ConversionError;
use crate::wire;

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
    wire::Receipts { receipts: super::every(receipts) }
}

/// Decodes the receipts of a batch of `expected` records.
///
/// # Errors
/// Their number differs, so they cannot be assigned.
pub(crate) fn receipts_from_wire(
    receipts: wire::Receipts,
    expected: usize,
) -> Result<Vec<Receipt>, ConversionError> {
    let found = receipts.receipts.len();
    if found == expected {
        Ok(receipts.receipts.into_iter().map(Receipt::from).collect())
    } else {
        Err(ConversionError::OutOfRange {
            field: "Receipts.receipts",
            value: format!("a list of {found} for {expected} records"),
            range: "lists as long as the batch",
        })
    }
}
