//! SHACL Core: whether a graph has the shapes that another graph states, see <https://www.w3.org/TR/shacl/>.
//!
//! Shapes come from language models, so they are hostile: [`ShaclShapes::read`] refuses what is not Core, what refers to itself and
//! what nests too deeply, and [`validate`] ticks the clock of [`TimeBudget`](crate::TimeBudget) at every triple that it looks at.
//!
//! Literals take the lexical form in which rdflib keeps them, so `"01"^^xsd:integer` is the term `1`. SPARQL in
//! shapes, rules and entailment are no part of Core and of this crate; severities and messages are read over, because a result
//! of any severity is a violation.

mod constraint;
mod error;
mod path;
mod shapes;
mod terms;
mod validation;

pub use error::ShapesError;
pub use shapes::ShaclShapes;
pub use validation::{ShapeViolation, ValidationReport, validate};

#[cfg(test)]
mod tests;
