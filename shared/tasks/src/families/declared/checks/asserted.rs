//! The check `assert`: queries that must hold of the graph of an answer.

use rdf::{
    Dialect, Graph, PrefixTable, PreparedQuery, QueryAnswer, QueryGraph, QueryLimits, TimeBudget, prepare,
};

use super::CheckSetting;
use super::scores::CheckScores;
use crate::exercise::{CaseError, EvaluationLimits, EvaluationStage};
use crate::families::declared::spec::Assertion;

/// A query that is ready to run, with its name.
pub(super) struct ReadyAssertion {
    name: String,
    query: PreparedQuery,
}

/// Reads the queries.
///
/// # Errors
/// One cannot be read, or is no ASK.
pub(super) fn read(ask: &[Assertion], prefixes: &PrefixTable) -> Result<Vec<ReadyAssertion>, CaseError> {
    let wrong = |name: &str, message: String| CaseError::Reference {
        field: "ask",
        message: format!("`{name}`: {message}"),
    };
    let one = |asked: &Assertion| {
        let query = prepare(&asked.query, prefixes, Dialect::Standard)
            .map_err(|error| wrong(&asked.name, error.message))?;
        // What a query is shows in what it answers, and over nothing it answers at once.
        let limits = QueryLimits { deadline: Some(EvaluationLimits::default().query_time), rows_max: 1 };
        match query.answer(&QueryGraph::default(), &limits) {
            Ok(QueryAnswer::Truth(_)) => Ok(ReadyAssertion { name: asked.name.clone(), query }),
            Ok(QueryAnswer::Rows(_)) => Err(wrong(&asked.name, "it is no ASK".to_owned())),
            Err(error) => Err(wrong(&asked.name, error.to_string())),
        }
    };
    ask.iter().map(one).collect()
}

/// The share of the queries that hold of a graph. An empty graph breaks no prohibition, and is worth nothing all the same.
pub(super) fn judge(
    graph: &Graph,
    asked: &[ReadyAssertion],
    with_graph: bool,
    bench: &CheckSetting<'_>,
) -> CheckScores {
    let mut scores = CheckScores::default();
    let mut hold = 0.0;
    let indexed = match bench.graph.filter(|_| with_graph) {
        Some(of_case) => of_case.joined(graph),
        None => QueryGraph::from_graph(graph),
    };
    for assertion in asked {
        let holds = match truth(&assertion.query, &indexed, bench.budget, bench) {
            Ok(truth) => truth && !graph.is_empty(),
            Err(message) => {
                scores.info(&format!("{}_error", assertion.name), message);
                false
            }
        };
        hold += f64::from(u8::from(holds));
        scores.parts.push((assertion.name.clone().into(), f64::from(u8::from(holds))));
    }
    scores.main = hold / asked.len().max(1) as f64;
    scores.empty = graph.is_empty();
    scores
}

/// The scores of an answer that cannot be read.
pub(super) fn nothing(asked: &[ReadyAssertion]) -> CheckScores {
    let parts = asked.iter().map(|assertion| (assertion.name.clone().into(), 0.0));
    CheckScores { parts: parts.collect(), ..CheckScores::default() }
}

fn truth(
    query: &PreparedQuery,
    graph: &QueryGraph,
    budget: TimeBudget,
    bench: &CheckSetting<'_>,
) -> Result<bool, String> {
    if let EvaluationStage::WithoutExecution(limit) = bench.effort.stage {
        return Err(limit.message().to_owned());
    }
    let limits = QueryLimits { deadline: budget.left(), rows_max: bench.effort.limits.rows_max };
    match query.answer(graph, &limits) {
        Ok(QueryAnswer::Truth(truth)) => Ok(truth),
        Ok(QueryAnswer::Rows(_)) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}
