//! By whose rules queries are read.

/// The rules by which a query is read and evaluated.
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
