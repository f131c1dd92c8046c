//! The rate budget of a provider's key.

use std::time::Duration;

use domain::exchange::RateBudget;

use super::on_wire::OnWire;
use super::{ConversionError, required};
use crate::wire;

/// A request for permits of a budget.
impl From<(&RateBudget, u32)> for wire::RateRequest {
    fn from((budget, permits): (&RateBudget, u32)) -> Self {
        Self { budget: budget.name.clone(), per_minute: budget.per_minute, permits }
    }
}

impl TryFrom<wire::RateRequest> for (RateBudget, u32) {
    type Error = ConversionError;

    fn try_from(request: wire::RateRequest) -> Result<Self, ConversionError> {
        if request.per_minute == 0 {
            return Err(ConversionError::OutOfRange {
                field: "RateRequest.per_minute",
                value: "0".to_owned(),
                range: "a number from 1",
            });
        }
        let name = required("RateRequest.budget", request.budget)?;
        Ok((RateBudget { name, per_minute: request.per_minute }, request.permits))
    }
}

/// How long to wait for permits, if at all.
pub(crate) fn wait_to_wire(wait: Option<Duration>) -> wire::RateAnswer {
    wire::RateAnswer { wait: wait.to_wire() }
}

/// How long to wait for permits, if at all.
pub(crate) fn wait_from_wire(answer: wire::RateAnswer) -> Result<Option<Duration>, ConversionError> {
    OnWire::from_wire("RateAnswer.wait", answer.wait)
}
