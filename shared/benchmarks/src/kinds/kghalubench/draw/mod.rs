//! Which questions are asked about a knowledge graph, and how they are worded.
//!
//! [`graph`] is what the benchmark needs of a knowledge graph, [`dump`] reads it from RDF, [`endpoint`] from a SPARQL endpoint,
//! [`assessment`] draws questions, [`question`] words them, [`exercise`] makes a task of them.

pub mod assessment;
mod date;
pub mod dump;
pub mod endpoint;
pub mod exercise;
pub mod frequency;
pub mod graph;
pub mod mapping;
pub mod question;
mod roster;
pub mod simulated;
mod statements;

pub use assessment::{Assessment, Recipe, Unfillable};
pub use date::{Date, DateError};
pub use dump::{DocumentHash, Dump};
pub use endpoint::{Endpoint, Select};
pub use graph::{Entity, Fact, GraphError, KnowledgeGraph, Lifespan, Statistics};
pub use mapping::Mapping;
pub use question::Question;

#[cfg(test)]
pub(crate) mod testing {
    use rdf::RdfFormat;

    use super::{Dump, Mapping};

    /// The invented graph of a seed.
    pub(crate) fn invented(seed: u64) -> Dump {
        let mapping = Mapping::from_toml(harness::invented_graph::MAPPING).unwrap();
        Dump::parse(harness::invented_graph::turtle(seed).as_bytes(), RdfFormat::Turtle, mapping).unwrap()
    }
}
