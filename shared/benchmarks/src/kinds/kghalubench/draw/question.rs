//! The wording of questions (paper, 3.1.4 and A.2.1). The words are this project's own; the paper defines what is
//! asked.

use serde::{Deserialize, Serialize};

use crate::kinds::kghalubench::draw::frequency::Frequency;
use crate::kinds::kghalubench::draw::graph::{Entity, Fact, Lifespan, Statistics};

/// Number of relations that a question asks for.
pub const FACTS: usize = 3;

/// The system prompt of every model under test.
pub const SYSTEM: &str = "You answer questions about entities from memory. If you recognise the entity, give a clear and \
detailed answer. If you do not, say plainly that you do not know it.";

/// Number of words that an overview should have, approximately.
pub const WORDS: u32 = 200;

/// A question about one entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// IRI of the entity.
    pub entity: String,
    /// Its label.
    pub name: String,
    /// Distinguishes it from other entities of that name; shown in parentheses.
    pub context: String,
    /// IRI of its type.
    pub type_id: String,
    /// Label of its type.
    pub type_name: String,
    /// How frequent the type is.
    pub frequency: Frequency,
    /// The facts that are asked for.
    pub facts: [Fact; FACTS],
    /// The text that answers are compared with.
    pub description: String,
    /// How well known the entity is.
    pub statistics: Statistics,
}

/// What distinguishes entities of one name without giving an answer away: the years of a human, otherwise the type.
pub fn context(entity: &Entity) -> String {
    match entity.lifespan {
        Some(Lifespan { born, died: Some(died) }) => format!("({born}-{died})"),
        Some(Lifespan { born, died: None }) => format!("({born}-)"),
        None => format!("({})", entity.type_name),
    }
}

/// The prompt for a model under test.
pub fn text(question: &Question) -> String {
    let [first, second, third] = &question.facts;
    format!(
        "Give a brief overview of {} {} in about {WORDS} words. The overview must state all of the following: {}; {}; {}. \
If several entities have this name, write about the best known one that fits.",
        question.name, question.context, first.relation, second.relation, third.relation
    )
}

/// A fact as a sentence. If a relation has several objects, the sentence is true for any of them.
pub fn statement(question: &Question, fact: &Fact) -> String {
    format!(
        "The {} of {} ({}) is {}.",
        fact.relation,
        question.name,
        question.type_name,
        fact.objects.join(" or ")
    )
}
