//! SPARQL: parses and runs the queries that models write.

mod clock;
mod dataset;
mod dialect;
pub mod execute;
pub mod iris;
pub mod parse;
mod rdflib;
#[cfg(test)]
mod rule_tests;
mod standard;
#[cfg(test)]
mod tests;
pub mod tokens;

pub use clock::{OutOfTime, TimeBudget, tick};
pub use dialect::Dialect;
pub use execute::UNKNOWN_FUNCTIONS_MAX;
pub use execute::{ExecutionError, QueryAnswer, QueryGraph, QueryLimits, Solutions, Value};
pub use iris::{iri_suffix, query_iris};
pub use parse::{PreparedQuery, QuerySyntaxError, prepare};
pub use rdflib::PATTERN_STEPS_MAX;
