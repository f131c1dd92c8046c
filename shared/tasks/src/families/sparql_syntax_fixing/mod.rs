//! (under construction)

use crate::exercise::{CaseError, CaseInput, Exercise};

/// Reads a case.
pub(crate) fn exercise(
    input: &CaseInput<'_>,
    graphs: &crate::graphs::GraphLibrary,
) -> Result<Box<dyn Exercise>, CaseError> {
    let _ = (input, graphs);
    Err(CaseError::Field { field: "-", expected: "-" })
}
