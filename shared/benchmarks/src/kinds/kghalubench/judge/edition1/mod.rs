//! The first wordings of judges' questions, which hold where a configuration names no edition.

use super::stages::{self, SYSTEM};
use super::{JUDGING, question_of};
use crate::judging::{Judging, PromptPlace, Stage, StageInput, delimited};
use crate::questions;

/// See the text of the module.
pub(in crate::kinds) static EDITION_1: Judging =
    Judging { stages: &[FACTS, ABSTAIN, stages::SIMILARITY, stages::NLI, LLM, EXPERT], ..JUDGING };

pub(in crate::kinds) const FACTS: Stage = Stage {
    version: "1",
    task: || {
        let again = "That is no sentence. Reply with one sentence.";
        questions::text("facts", include_str!("fact.txt"), again)
    },
    places: &[PromptPlace::Needed("statement")],
    about: StageInput::Cases(|case| {
        let Some(question) = question_of(case) else { return Vec::new() };
        let statements = stages::statements(&question).into_iter();
        statements.map(|statement| vec![("statement", delimited(&statement))]).collect()
    }),
    ..stages::FACTS
};

pub(in crate::kinds) const ABSTAIN: Stage = Stage {
    version: "1",
    task: || {
        let choices = [("ANSWERED", 1.0), ("ABSTAINED", 0.0)];
        questions::choice("abstain", SYSTEM, &choices, include_str!("abstain.txt"))
    },
    ..stages::ABSTAIN
};

const LLM: Stage = Stage {
    version: "1",
    task: || {
        let choices = [("EXPLICITLY STATED", 1.0), ("NOT MENTIONED", 0.0), ("CONTRADICTED", 0.0)];
        questions::choice("llm", SYSTEM, &choices, include_str!("entailment.txt"))
    },
    ..stages::LLM
};

const EXPERT: Stage = Stage {
    version: "1",
    task: || {
        let choices = [("EXPERT 1", 1.0), ("EXPERT 2", 0.0)];
        questions::choice("expert", SYSTEM, &choices, include_str!("expert.txt"))
    },
    ..stages::EXPERT
};
