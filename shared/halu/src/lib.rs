//! KGHaluBench without its models: which questions are asked about a knowledge graph, how hard each one is, and which
//! numbers come out of the verdicts. Method: *KGHaluBench: A Knowledge Graph-Based Hallucination Benchmark*; section
//! numbers in these modules are that paper's.
//!
//! Everything is synchronous and deterministic. Only implementations of [`KnowledgeGraph`] may do IO. No model is asked
//! here: the stages in `shared/stages` ask judges and pass their verdicts to this crate.
//!
//! Reading order: [`graph`] is what the benchmark needs of a knowledge graph, [`dump`] reads it from RDF,
//! [`endpoint`] from a SPARQL endpoint, [`world`] invents one. [`assessment`] draws questions, [`question`] words them.
//! [`token_set`] is the part of the entity similarity that needs no model. [`difficulty`] says how hard a question is
//! under given [`weights`], [`calibration`] learns them, [`metrics`] counts verdicts.

pub mod assessment;
pub mod calibration;
mod date;
pub mod difficulty;
pub mod dump;
pub mod endpoint;
pub mod exercise;
pub mod frequency;
pub mod graph;
pub mod mapping;
pub mod metrics;
pub mod question;
pub mod rank;
pub mod simulated;
mod statements;
pub mod token_set;
pub mod weights;
pub mod world;

pub use assessment::{Assessment, Recipe, Unfillable};
pub use date::{Date, DateError};
pub use difficulty::Difficulty;
pub use dump::Dump;
pub use endpoint::{Endpoint, Select};
pub use graph::{Entity, Fact, GraphError, KnowledgeGraph, Lifespan, Statistics};
pub use mapping::Mapping;
pub use metrics::{Fate, ModelMetrics};
pub use question::Question;
pub use weights::Weights;
