//! KGHaluBench: what a model makes up about entities of a knowledge graph. Method: *KGHaluBench: A Knowledge Graph-Based
//! Hallucination Benchmark*; section numbers in these modules are that paper's. docs/kghalubench.md says what every number means.
//!
//! Everything is synchronous and deterministic. Only implementations of [`KnowledgeGraph`](draw::KnowledgeGraph) may do IO.
//!
//! [`draw`] makes questions from a knowledge graph, `judge` asks judges about the answers, [`numbers`] are what follows from
//! the verdicts, [`show`] what people see of them.

pub mod draw;
mod judge;
pub mod numbers;
pub mod show;

pub use judge::{THRESHOLD, fact_seconds, fate, sentences};

/// What a kind needs that judges the same answers otherwise.
pub(super) mod judged_alike {
    pub(in crate::kinds) use super::judge::stages::{ABSTAIN, FACTS, SYSTEM};
    pub(in crate::kinds) use super::judge::{JUDGING, edition1, question_of, sentences};
}

use crate::kind::Kind;

/// See the text of the module.
pub static KIND: Kind = Kind {
    name: "kghalubench",
    about: "overviews of entities of a knowledge graph, checked for what is made up",
    judging: Some(&judge::JUDGING),
    former: &[&judge::edition1::EDITION_1],
    showing: Some(&show::SHOWING),
};
