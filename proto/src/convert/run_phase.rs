//! Where a run stands.

use domain::control::RunPhase;

use super::{ConversionError, enumerated};
use crate::wire;

/// The number of a phase.
pub(super) fn phase_to_wire(phase: RunPhase) -> i32 {
    match phase {
        RunPhase::Preparing => wire::RunPhase::Preparing,
        RunPhase::Active => wire::RunPhase::Active,
        RunPhase::Paused => wire::RunPhase::Paused,
        RunPhase::Cancelled => wire::RunPhase::Cancelled,
        RunPhase::Finished => wire::RunPhase::Finished,
    }
    .into()
}

pub(super) fn phase_from_wire(field: &'static str, number: i32) -> Result<RunPhase, ConversionError> {
    Ok(match enumerated(field, number)? {
        wire::RunPhase::Unspecified => return Err(ConversionError::Missing { field }),
        wire::RunPhase::Preparing => RunPhase::Preparing,
        wire::RunPhase::Active => RunPhase::Active,
        wire::RunPhase::Paused => RunPhase::Paused,
        wire::RunPhase::Cancelled => RunPhase::Cancelled,
        wire::RunPhase::Finished => RunPhase::Finished,
    })
}
