//! Why shapes cannot be used, and the bounds of which some of the reasons speak.

/// Deepest nesting of shapes within shapes, and of paths within paths.
pub(crate) const NESTING_MAX: usize = 64;

/// Most shapes of a graph.
pub(crate) const SHAPES_MAX: usize = 10_000;

/// Why a graph of shapes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapesError {
    #[error("the shape {shape} {problem}")]
    IllFormed {
        /// The shape, as N-Triples write its name.
        shape: String,
        /// What is wrong with it.
        problem: String,
    },
    #[error("`sh:{0}` is not SHACL Core")]
    BeyondCore(&'static str),
    #[error("the shape {0} refers to itself")]
    Recursive(String),
    #[error("shapes nest deeper than {NESTING_MAX} levels")]
    TooDeep,
    #[error("there are more than {SHAPES_MAX} shapes")]
    TooMany,
}
