//! Benchmarks whose scores are computed from the answers alone, such as LLM-KG-Bench: one stage, no judges.

use crate::kind::Kind;

/// See the text of the module.
pub static KIND: Kind = Kind {
    name: "exact",
    about: "answers to knowledge graph tasks, scored by comparing graphs and query results",
    judging: None,
    former: &[],
    showing: None,
};
