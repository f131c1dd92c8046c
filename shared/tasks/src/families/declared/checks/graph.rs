//! The check `graph`: the triples of two graphs, whatever their blank nodes are called.

use rdf::matching::{self, MatchRule};
use rdf::{Graph, Term};

use super::CheckSetting;
use super::scores::{CheckScores, shares};
use crate::exercise::EvaluationStage;

/// Compares the graph of an answer with the expected one.
pub(super) fn compare(
    found: &Graph,
    expected: &Graph,
    rule: &MatchRule<'_>,
    empty_ok: bool,
    bench: &CheckSetting<'_>,
) -> CheckScores {
    // Finding a mapping may be what hit a limit; without blank nodes there is none to find.
    if let EvaluationStage::WithoutExecution(limit) = bench.effort.stage
        && !rule.blank_equal
        && has_blank_nodes(found)
    {
        return failed(limit.message());
    }
    match bench.budget.run(|| matching::compare(found, expected, rule)) {
        Err(error) => failed(&error.to_string()),
        Ok(matched) => {
            let shares = shares(matched.common, matched.found, matched.expected, empty_ok);
            let mut scores = CheckScores::of_shares(shares);
            scores.info("triples", matched.found);
            scores.info("triplesRight", matched.common);
            scores.info("mapping", if matched.is_exact { "best" } else { "perhaps not the best" });
            scores.empty = matched.found == 0 && matched.expected > 0;
            scores
        }
    }
}

fn failed(message: &str) -> CheckScores {
    let mut scores = CheckScores::of_shares([0.0; 3]);
    scores.info("error", message);
    scores
}

fn has_blank_nodes(graph: &Graph) -> bool {
    graph.iter().any(|triple| triple.subject.is_blank_node() || matches!(triple.object, Term::BlankNode(_)))
}
