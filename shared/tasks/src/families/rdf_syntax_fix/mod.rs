//! (under construction)

use crate::exercise::{CaseError, CaseInput, Exercise};

/// Reads a case.
pub(crate) fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let _ = input;
    Err(CaseError::Field { field: "-", expected: "-" })
}
