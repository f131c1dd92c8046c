//! TurtleErrors: repair a Turtle document in one answer (Meyer et al., "Benchmarking the Abilities of Large Language
//! Models for RDF Knowledge Graph Creation and Comprehension", 2023; the class is called TurtleErrorsStatic there).
//!
//! The *Turtle part* of an answer is what a pattern matches, from the first prefix to the last statement; a document in
//! any other form has no Turtle part. It is compared with the expected document in two ways:
//!
//! - as text: `diffRatioRaw` is its similarity (difflib), `diffRatio` the same relative to the question: 1 is
//!   perfect, 0 as far off as the broken document, below 0 is worse;
//! - as a graph, reading as much as possible ([`rdf::tolerant`]): `normAnswerPrecision`, `normAnswerRecall` and
//!   `normAnswerF1Score` over the normal lines (all blank nodes treated as equal), `normDiffRatio` as the similarity of the
//!   normal texts, `parsableTripleRatio` as the number of triples over the expected number.
//!
//! `onlyTurtle` is 1 / (1 + characters outside the Turtle part, without line breaks). White space and back quotes right
//! after the Turtle part do not count, so a closing fence costs nothing and an opening one does.
//!
//! Fields of a case: `brokenTurtle`, `optimalTurtle` and, optionally, `turtlePattern` (a regular expression in which
//! the dot matches line breaks). Without them the case is the published one: the broken document is the text after the first
//! empty line of the recorded prompt, and the expected one is the same with its known errors corrected.
//!
//! Placeholder of the first prompt: `{{brokenTurtle}}`, a field of the case.

use std::collections::BTreeSet;

use domain::Infos;
use rdf::{Graph, NormalForm, RdfFormat, normal_lines, normal_text};
use regex::{Regex, RegexBuilder};

use crate::class::{AnswerForm, ClassSpec, Repair};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::text::difflib::ratio;
use crate::text::python::strip;

mod evaluate;
mod published;

/// One broken document.
struct TurtleErrors {
    optimal: String,
    /// Similarity of the broken document to the expected one, below 1.
    question_ratio: f64,
    turtle_part: Regex,
    optimal_triples: usize,
    optimal_lines: BTreeSet<String>,
    optimal_text: String,
}

/// Repair a Turtle document in one answer.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    wider: &[("diffRatio", f64::NEG_INFINITY..=1.0), ("parsableTripleRatio", 0.0..=f64::INFINITY)],
    repair: Some(Repair { broken: "brokenTurtle", repaired: "optimalTurtle" }),
    ..ClassSpec::new(
        &[("TurtleErrorsStatic", &["2.0", "5.0"])],
        &["normAnswerF1Score"],
        AnswerForm::Document,
        |input, _, _| exercise(input),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let (broken, optimal) = match (input.data.contains_key("brokenTurtle"), input.first_prompt) {
        (false, Some(prompt)) => published::documents(prompt)?,
        _ => (
            case_fields::text(input.data, "brokenTurtle")?.to_owned(),
            case_fields::text(input.data, "optimalTurtle")?.to_owned(),
        ),
    };
    let graph: Graph = case_fields::turtle(&optimal, "optimalTurtle")?;
    let question_ratio = ratio(&broken, &optimal);
    if question_ratio >= 1.0 {
        return Err(CaseError::Field { field: "brokenTurtle", expected: "text other than `optimalTurtle`" });
    }
    let published_pattern = published::turtle_pattern();
    let pattern = case_fields::text_or(input.data, "turtlePattern", &published_pattern)?;
    let turtle_part = RegexBuilder::new(pattern)
        .dot_matches_new_line(true)
        .build()
        .map_err(|_| CaseError::Field { field: "turtlePattern", expected: "regular expression" })?;
    let optimal_lines = normal_lines(&graph, NormalForm::Classic);
    Ok(Box::new(TurtleErrors {
        question_ratio,
        turtle_part,
        optimal_triples: graph.len(),
        optimal_text: normal_text(&optimal_lines),
        optimal_lines,
        optimal,
    }))
}

impl Exercise for TurtleErrors {
    fn complaint(&self, text: &str, _effort: &Effort) -> Option<String> {
        Graph::parse(strip(text), RdfFormat::Turtle, None).err().map(|error| error.message)
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        self.evaluate(answer, effort)
    }

    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        vec![self.compared_document(answer, effort)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, EvaluationStage, Limit, ReadOnce};

    const OPTIMAL: &str = "PREFIX : <http://example.org/zoo/>\n\n:otter a :Animal ;\n  :eats :fish .\n:heron a :Animal ; :eats [ a :Frog ] .\n";

    fn case() -> Box<dyn Exercise> {
        let data = json!({
            "brokenTurtle": OPTIMAL.replace(" ;\n", "\n"),
            "optimalTurtle": OPTIMAL,
            "turtlePattern": r"PREFIX\s*:\s.*:Frog\s?\]\s?\.",
        });
        let input = CaseInput {
            class: "TurtleErrorsStatic",
            version: "5.0",
            parameters: &Map::new(),
            data: data.as_object().unwrap(),
            first_prompt: None,
            once: &ReadOnce::default(),
        };
        exercise(&input).unwrap()
    }

    #[test]
    fn the_expected_document_is_shown_beside_the_turtle_part() {
        let (case, effort) = (case(), Effort::full(EvaluationLimits::default()));
        let shown = |answer: &str| case.compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown(&format!("Here:\n```turtle\n{OPTIMAL}```\n"));
        assert_eq!(part.expected.as_deref(), Some(OPTIMAL));
        assert_eq!(part.extracted.as_deref(), Some(OPTIMAL.trim()));
        assert_eq!(shown(":otter a :Animal .").extracted, None);
    }

    #[test]
    fn an_answer_that_hits_a_limit_has_no_triples_and_says_why() {
        let effort = Effort {
            stage: EvaluationStage::WithoutParsing(Limit::Memory),
            ..Effort::full(EvaluationLimits::default())
        };
        let verdict = case().judge(OPTIMAL, &effort);
        assert_eq!(verdict.scores["normAnswerF1Score"], json!(0));
        assert_eq!(verdict.infos["evaluationLimit"], json!(Limit::Memory.message()));
    }
}
