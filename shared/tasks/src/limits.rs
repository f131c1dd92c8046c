//! Limits of judging that are constants of the code rather than settings of a pack. They can change scores too.

/// All of them, as named in the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedLimits {
    /// Maximum size of a query, in bytes.
    pub query_bytes_max: usize,
    /// Maximum nesting of brackets in a query.
    pub query_depth_max: usize,
    /// Maximum number of operators and patterns in a query.
    pub query_links_max: usize,
    /// Maximum number of unknown functions in a query whose calls are errors of their expression only.
    pub unknown_functions_max: usize,
    /// Maximum number of steps that the search for a regular expression may backtrack.
    pub pattern_steps_max: usize,
    /// Maximum size of a document, in bytes.
    pub document_bytes_max: usize,
    /// Maximum number of bytes parsed to recover a broken Turtle document.
    pub repair_bytes_max: usize,
    /// Maximum number of steps of one text comparison.
    pub comparison_steps_max: u64,
    /// Maximum number of steps of one comparison of graphs with blank nodes.
    pub matching_steps_max: u64,
}

impl FixedLimits {
    /// The values in this program.
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
            matching_steps_max: rdf::matching::MATCHING_STEPS_MAX,
        }
    }
}
