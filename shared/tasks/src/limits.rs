//! The limits of judging that no pack sets: constants of the code that can change a score all the same.

/// Every one of them, as the scorer version names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedLimits {
    /// Bytes of a query that is parsed.
    pub query_bytes_max: usize,
    /// Nesting of brackets in a query that is parsed.
    pub query_depth_max: usize,
    /// Operators and patterns of a query that is parsed.
    pub query_links_max: usize,
    /// Unknown functions of one query whose calls are errors of their expressions only.
    pub unknown_functions_max: usize,
    /// Steps that the search for one regular expression may go back.
    pub pattern_steps_max: usize,
    /// Bytes of a document that is parsed.
    pub document_bytes_max: usize,
    /// Bytes parsed to read as much as possible of one broken Turtle document.
    pub repair_bytes_max: usize,
    /// Steps of one comparison of two texts.
    pub comparison_steps_max: u64,
}

impl FixedLimits {
    /// Those of this program.
    pub const fn of_this_program() -> Self {
        let query = rdf::ScanLimits::query();
        Self {
            query_bytes_max: query.bytes_max,
            query_depth_max: query.depth_max,
            query_links_max: query.links_max,
            unknown_functions_max: rdf::query::UNKNOWN_FUNCTIONS_MAX,
            pattern_steps_max: rdf::query::PATTERN_STEPS_MAX,
            document_bytes_max: rdf::graph::DOCUMENT_BYTES_MAX,
            repair_bytes_max: rdf::tolerant::TOLERANT_BYTES_MAX,
            comparison_steps_max: crate::text::difflib::STEPS_MAX,
        }
    }
}
