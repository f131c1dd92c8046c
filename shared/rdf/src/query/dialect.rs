//! The rules by which queries are read and evaluated.

/// A set of rules for queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SPARQL 1.1 by the standard.
    Standard,
    /// SPARQL 1.1 as rdflib reads and evaluates it.
    Rdflib,
    /// What rdflib reads and the public Wikidata endpoint (Blazegraph) evaluates: string functions take any literal, the
    /// label service is left out.
    Wikidata,
}
