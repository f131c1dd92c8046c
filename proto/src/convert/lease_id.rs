//! Identifies one lease of a unit.

use domain::exchange::LeaseId;
use domain::{ModelLabel, RunId};

use super::{ConversionError, required};
use crate::wire;

impl From<LeaseId> for wire::LeaseId {
    fn from(lease: LeaseId) -> Self {
        Self {
            run: lease.run.to_string(),
            generation: lease.generation,
            model: lease.model.to_string(),
            unit: lease.unit,
            attempt: lease.attempt,
        }
    }
}

impl TryFrom<wire::LeaseId> for LeaseId {
    type Error = ConversionError;

    fn try_from(lease: wire::LeaseId) -> Result<Self, ConversionError> {
        // An absent field decodes as zero, which must not be a valid fence.
        if lease.attempt == 0 {
            return Err(ConversionError::Missing { field: "LeaseId.attempt" });
        }
        Ok(Self {
            run: RunId::new(required("LeaseId.run", lease.run)?),
            generation: lease.generation,
            model: ModelLabel::new(required("LeaseId.model", lease.model)?),
            unit: lease.unit,
            attempt: lease.attempt,
        })
    }
}
