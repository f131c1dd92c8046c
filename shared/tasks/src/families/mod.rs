//! One folder per task family. Each reads its cases with a constructor `exercise(&CaseInput, …)` and judges
//! answers by the rules of its paper.

use crate::class::TaskClass;
use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::graphs::GraphLibrary;

pub mod answer_list;
pub mod connection_explain;
pub mod fact_extract;
pub mod friend_count;
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

/// The exercise of a case: parses everything the case holds, so that a broken case is found before it is asked.
pub fn exercise(
    input: &CaseInput<'_>,
    graphs: &GraphLibrary,
    compat: Compat,
) -> Result<Box<dyn Exercise>, CaseError> {
    match TaskClass::resolve(input.class, input.version)? {
        TaskClass::RdfConnectionExplain => connection_explain::exercise(input),
        TaskClass::RdfFriendCount => friend_count::exercise(input),
        TaskClass::RdfSyntaxFix => rdf_syntax_fix::exercise(input),
        TaskClass::FactExtract => fact_extract::exercise(input),
        TaskClass::TurtleSampleGeneration => turtle_sample::exercise(input),
        TaskClass::TurtleErrors => turtle_errors::exercise(input),
        TaskClass::Sparql2Answer | TaskClass::Text2Answer => answer_list::exercise(input),
        TaskClass::Text2Sparql(set) => text2sparql::exercise(input, set, graphs, compat),
        TaskClass::SparqlSyntaxFixing => sparql_syntax_fixing::exercise(input, graphs),
    }
}
