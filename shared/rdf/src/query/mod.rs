//! SPARQL: reading what models write, and running it.

pub mod execute;
pub mod iris;
pub mod parse;

pub use execute::{ExecutionError, QueryGraph, QueryLimits, Solutions, Value};
pub use iris::{iri_suffix, query_iris};
pub use parse::{Dialect, PreparedQuery, QuerySyntaxError, prepare};
