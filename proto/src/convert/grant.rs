//! A unit for a worker.

use domain::TaskLabel;
use domain::exchange::Grant;

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, present, required};
use crate::wire;

impl From<Grant> for wire::Grant {
    fn from(grant: Grant) -> Self {
        Self {
            lease: Some(grant.lease.into()),
            task: grant.task.to_string(),
            iterations: grant.iterations,
            lease_for: Some(duration_to_wire(grant.lease_for)),
            retry: grant.retry,
        }
    }
}

impl TryFrom<wire::Grant> for Grant {
    type Error = ConversionError;

    fn try_from(grant: wire::Grant) -> Result<Self, ConversionError> {
        if grant.iterations.is_empty() {
            return Err(ConversionError::Missing { field: "Grant.iterations" });
        }
        Ok(Self {
            lease: present("Grant.lease", grant.lease)?.try_into()?,
            task: TaskLabel::new(required("Grant.task", grant.task)?),
            iterations: grant.iterations,
            lease_for: duration_from_wire("Grant.lease_for", grant.lease_for)?,
            retry: grant.retry,
        })
    }
}
