//! The check `graph`: the triples of two graphs, whatever their blank nodes are called.

use rdf::matching::{self, MatchRule};
use rdf::{Graph, Term};

use super::CheckSetting;
use super::scores::{CheckScores, shares};
use crate::exercise::EvaluationStage;
use crate::families::declared::spec::{BlankComparison, LiteralComparison};

/// How two graphs are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphRule<'a> {
    pub(super) literals: LiteralComparison,
    pub(super) blank: BlankComparison,
    pub(super) ignore: &'a [String],
    pub(super) empty_ok: bool,
}

/// Compares the graph of an answer with the expected one.
pub(super) fn compare(
    found: &Graph,
    expected: &Graph,
    rule: GraphRule<'_>,
    bench: &CheckSetting<'_>,
) -> CheckScores {
    let how = MatchRule {
        exact_literals: rule.literals == LiteralComparison::Exact,
        blank_equal: rule.blank == BlankComparison::Equal,
        ignored: rule.ignore,
    };
    // Finding a mapping may be what hit a limit; without blank nodes there is none to find.
    if let EvaluationStage::WithoutExecution(limit) = bench.effort.stage
        && rule.blank == BlankComparison::Mapped
        && has_blank_nodes(found)
    {
        return failed(limit.message());
    }
    match bench.budget.run(|| matching::compare(found, expected, &how)) {
        Err(error) => failed(&error.to_string()),
        Ok(matched) => {
            let mut scores = CheckScores::of_shares(shares(
                matched.common,
                matched.found,
                matched.expected,
                rule.empty_ok,
            ));
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
