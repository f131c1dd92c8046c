//! The interface to knowledge graphs, and what is read from them (paper, 3.1.1 and 3.1.2). A further kind of source
//! implements [`KnowledgeGraph`].

use serde::{Deserialize, Serialize};

/// A source of entities. [`Dump`](super::Dump) answers from a document, [`Endpoint`](super::Endpoint) by queries to a server.
pub trait KnowledgeGraph {
    /// Identifies the state of the graph: equal snapshots give equal assessments. A SHA-256 in hexadecimal digits.
    fn snapshot(&self) -> String;

    /// The valid types with the number of their entities, in any order. An entity counts once, for the type of its
    /// [`Candidate`]; where entities are drawn by number and never listed, it counts for every type that it has.
    ///
    /// # Errors
    /// The source cannot be read.
    fn types(&mut self) -> Result<Vec<TypeCount>, GraphError>;

    /// Draws `size` entities of valid types at random, fewer where numbers have none; the same seed gives the same entities. An
    /// entity may come twice.
    ///
    /// # Errors
    /// The source cannot be read.
    fn draw(&mut self, seed: u64, size: usize) -> Result<Vec<Candidate>, GraphError>;

    /// The data of an entity; `None` if the source does not have it.
    ///
    /// # Errors
    /// The source cannot be read.
    fn entity(&mut self, id: &str) -> Result<Option<Entity>, GraphError>;
}

/// Why a knowledge graph cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The mapping is not usable.
    #[error("the mapping of the knowledge graph cannot be used: {0}")]
    Mapping(String),
    /// The document is no RDF.
    #[error("the knowledge graph cannot be read: {0}")]
    Syntax(#[from] rdf::SyntaxError),
    /// The graph has nothing that the mapping describes.
    #[error("the knowledge graph has no entity of a valid type: {0}")]
    Empty(String),
    /// A remote source did not answer as it should.
    #[error("the knowledge graph's endpoint: {0}")]
    Endpoint(String),
}

/// A type with the number of its entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// Its IRI.
    pub id: String,
    /// Entities that have it.
    pub entities: u64,
}

/// An entity that was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its IRI.
    pub id: String,
    /// IRI of its type: of several valid ones the rarest.
    pub type_id: String,
}

/// The data of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its IRI.
    pub id: String,
    /// Its label.
    pub name: String,
    /// IRI of its type.
    pub type_id: String,
    /// Label of its type.
    pub type_name: String,
    /// Years of birth and death, if it is a human.
    pub lifespan: Option<Lifespan>,
    /// Its valid relations, each with all of its objects.
    pub facts: Vec<Fact>,
    /// A text about it.
    pub description: Option<String>,
    /// The name of one if the graph has it of other entities and not of this one.
    pub statistics: Result<Statistics, &'static str>,
}

/// Years of birth and death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifespan {
    /// Year of birth.
    pub born: i32,
    /// Year of death; nothing for the living.
    pub died: Option<i32>,
}

/// A relation of an entity with its objects: an answer that names any one of them is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// IRI of the relation.
    pub relation_id: String,
    /// Label of the relation.
    pub relation: String,
    /// Labels or values, at least one, sorted.
    pub objects: Vec<String>,
}

/// How well known an entity is: counts (paper, 3.1.3). `None` is what the graph does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_views: Option<u64>,
    /// Links from pages of other entities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_links: Option<u64>,
    /// Neighbours in the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_entities: Option<u64>,
    /// Identifiers in other databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ids: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_tokens: Option<u64>,
    /// Pairs of a relation and an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<u64>,
    /// Sources of its statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<u64>,
}

impl Statistics {
    /// The names of the fields, in their order.
    pub const NAMES: [&'static str; 7] = [
        "page_views",
        "site_links",
        "linked_entities",
        "external_ids",
        "page_tokens",
        "statements",
        "references",
    ];

    /// Of counts in the order of [`Statistics::NAMES`].
    pub fn of_counts(counts: [Option<u64>; 7]) -> Self {
        let [page_views, site_links, linked_entities, external_ids, page_tokens, statements, references] =
            counts;
        Self { page_views, site_links, linked_entities, external_ids, page_tokens, statements, references }
    }

    /// The counts, in the order of [`Statistics::NAMES`].
    pub fn counts(&self) -> [Option<u64>; 7] {
        [
            self.page_views,
            self.site_links,
            self.linked_entities,
            self.external_ids,
            self.page_tokens,
            self.statements,
            self.references,
        ]
    }

    /// ln(1 + count) of each that is known.
    pub fn logarithms(&self) -> [Option<f64>; 7] {
        self.counts().map(|count| count.map(|count| (count as f64).ln_1p()))
    }
}
