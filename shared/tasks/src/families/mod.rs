//! One folder per task family. Each declares its classes as [`ClassSpec`], reads their cases and judges answers by the
//! rules of its paper. One line here registers a family.

use crate::class::{ClassSpec, TaskClass};
use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::graphs::GraphLibrary;

pub mod answer_list;
pub mod connection_explain;
pub mod entity_overview;
pub mod fact_extract;
pub mod friend_count;
pub mod judge_choice;
pub mod judge_pair;
pub mod judge_text;
pub mod rdf_syntax_fix;
pub mod sparql_syntax_fixing;
pub mod text2sparql;
pub mod turtle_errors;
pub mod turtle_sample;

mod case_fields;
mod overlap;
mod query;
mod rdflib_layout;
mod readable_turtle;
mod seeded;

/// Every class, one line for each family.
const FAMILIES: &[&[ClassSpec]] = &[
    &[connection_explain::CLASS],
    &[friend_count::CLASS],
    &[rdf_syntax_fix::CLASS],
    &[fact_extract::CLASS],
    &[turtle_sample::CLASS],
    &[turtle_errors::CLASS],
    &answer_list::CLASSES,
    &text2sparql::CLASSES,
    &[sparql_syntax_fixing::CLASS],
    &[entity_overview::CLASS],
    &[judge_choice::CLASS],
    &[judge_text::CLASS],
    &judge_pair::CLASSES,
];

/// All classes.
pub fn classes() -> impl Iterator<Item = &'static ClassSpec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The exercise of a case. It parses everything in the case, so that a broken one is found before any model is asked.
pub fn exercise(
    input: &CaseInput<'_>,
    graphs: &GraphLibrary,
    compat: Compat,
) -> Result<Box<dyn Exercise>, CaseError> {
    (TaskClass::resolve(input.class, input.version)?.exercise)(input, graphs, compat)
}
