//! The nesting of brackets, looked at before a parser.

use rdf::scan::{self, ScanLimits};

use crate::exercise::{EvaluationLimits, Limit};

/// The nesting of brackets. Brackets in literals count too: no honest document has hundreds of them there, and brackets
/// that are missed do no harm, because the parsers keep stacks of their own.
pub(crate) fn bracket_depth(document: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in document.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Checks a query by the configured nesting limit, which may be lower than the parser's own, which protects its stack.
pub(crate) fn check_query(query: &str, limits: &EvaluationLimits) -> Result<(), Limit> {
    let own = ScanLimits::query();
    if limits.nesting_max >= own.depth_max {
        return Ok(());
    }
    let limits = ScanLimits { depth_max: limits.nesting_max, ..own };
    scan::check(query, &limits).map_err(|finding| Limit::from(&finding))
}
