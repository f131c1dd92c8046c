//! (under construction)

use crate::exercise::{CaseError, CaseInput, Exercise};

/// Reads a case.
pub(crate) fn exercise(
    input: &CaseInput<'_>,
    set: crate::class::Text2SparqlSet,
    graphs: &crate::graphs::GraphLibrary,
    compat: crate::exercise::Compat,
) -> Result<Box<dyn Exercise>, CaseError> {
    let _ = (input, set, graphs, compat);
    Err(CaseError::Field { field: "-", expected: "-" })
}
