//! SPARQL: parses and runs the queries that models write.

mod carrier;
mod clock;
mod compared;
mod dataset;
mod dialect;
pub mod execute;
mod forms;
pub mod iris;
pub mod parse;
mod rdflib;
mod standard;
#[cfg(test)]
mod tests;
pub mod tokens;
mod zero_length;

pub use clock::{OutOfTime, TimeBudget, tick};
pub use dialect::Dialect;
pub use execute::UNKNOWN_FUNCTIONS_MAX;
pub use execute::{ExecutionError, QueryAnswer, QueryGraph, QueryLimits, Solutions, Value};
pub use iris::{iri_suffix, query_iris};
pub use parse::{PreparedQuery, QuerySyntaxError, prepare};
pub use rdflib::PATTERN_STEPS_MAX;
