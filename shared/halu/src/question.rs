//! The words of a question (paper, 3.1.4 and A.2.1). The wording is this project's own; the paper settles what it asks for.

use crate::assessment::Question;
use crate::graph::{Entity, Fact, Lifespan};

/// What every model under test is told first.
pub const SYSTEM: &str = "You answer questions about entities from memory. If you recognise the entity, give a clear and \
detailed answer. If you do not, say plainly that you do not know it.";

/// Words that an overview should have, about.
pub const WORDS: u32 = 200;

/// What tells entities of one name apart without giving an answer away: years of a human, otherwise the type.
pub fn context(entity: &Entity) -> String {
    match entity.lifespan {
        Some(Lifespan { born, died: Some(died) }) => format!("({born}-{died})"),
        Some(Lifespan { born, died: None }) => format!("({born}-)"),
        None => format!("({})", entity.type_name),
    }
}

/// What a model under test is asked.
pub fn text(question: &Question) -> String {
    let [first, second, third] = &question.facts;
    format!(
        "Give a brief overview of {} {} in about {WORDS} words. The overview must state all of the following: {}; {}; {}. \
If several entities have this name, write about the best known one that fits.",
        question.name, question.context, first.relation, second.relation, third.relation
    )
}

/// A fact in plain words. Where a relation has several objects, any of them will do.
pub fn statement(question: &Question, fact: &Fact) -> String {
    format!(
        "The {} of {} ({}) is {}.",
        fact.relation,
        question.name,
        question.type_name,
        fact.objects.join(" or ")
    )
}
