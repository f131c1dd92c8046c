//! RDF and SPARQL for the benchmark: parse, write and compare graphs, and run the queries that models write.
//!
//! This is the only crate that names Oxigraph's libraries. It treats all input as hostile: documents and queries come
//! from language models. What a library call cannot bound (memory, time inside a sort, the stack of a deep parse) is
//! bounded by the process around it; see [`query::execute`].

pub mod format;
pub mod graph;
mod jsonld;
mod jsonld_as_rdflib;
pub mod literal;
pub mod matching;
pub mod normal;
mod ntriples_as_rdflib;
pub mod prefixes;
mod python_forms;
pub mod query;
pub mod rdfxml;
pub mod scan;
pub mod shacl;
pub mod stream;
mod syntax_error;
pub mod tolerant;
mod turtle_as_rdflib;
pub mod value;

pub use format::RdfFormat;
pub use graph::{BASE_IRI, Graph};
pub use normal::{NormalForm, normal_lines, normal_text};
pub use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
pub use prefixes::PrefixTable;
pub use query::{
    Dialect, ExecutionError, OutOfTime, PreparedQuery, QueryAnswer, QueryGraph, QueryLimits,
    QuerySyntaxError, Solutions, TimeBudget, Value, iri_suffix, prepare, query_iris, tick,
};
pub use scan::{ScanFinding, ScanLimits};
pub use syntax_error::SyntaxError;
pub use tolerant::parse_turtle_tolerantly;

#[cfg(test)]
mod tests;
