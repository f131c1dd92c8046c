//! RdfSyntaxFix: repair an RDF document that has syntax errors, changing as little as possible (LLM-KG-Bench 3,
//! Meyer et al., ESWC 2025; the class is called RdfSyntaxFixList there).
//!
//! The first fenced code block of an answer is the document. Four things are measured:
//!
//! - `brevity`: the block's share of the whole answer, in characters. It is recorded but not used.
//! - `strSimilarity`: how close the text is to the expected one ([`similarity`]).
//! - `parsableSyntax`: 1 if it parses, else 0.
//! - `contentPrecision`, `contentRecall`, `contentF1`: the graph compared with the expected one as sets of N-Triples
//!   lines, all blank nodes treated as equal; absent if it does not parse.
//!
//! `combined` is 0.1 `strSimilarity` + 0.2 `parsableSyntax` + 0.7 `contentF1`. The first imperfection
//! selects the follow-up: number of blocks (`structure`), syntax (`syntax`), graph (`content`), text (`formatting`).
//!
//! Fields of a case: `taskUid`, `task` (the broken document), `optimal` (the expected one), `graphFormat` (or the
//! task parameter of that name); optionally `errorMessage` and `multishotLimit`.
//!
//! Placeholders of the first prompt: `{{document}}`, the broken document without white space around it;
//! `{{graphFormat}}` as the case writes it; `{{label}}` for its fence; `{{message}}`, the field `errorMessage` or else
//! this parser's message about the document. Follow-ups: `syntax` has `{{message}}`, the others have none.

use std::collections::BTreeSet;

use domain::{Infos, PromptKind};
use rdf::{Graph, NormalForm, RdfFormat, normal_lines};

use crate::class::{AnswerForm, ClassSpec, Published, Repair};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Compat, Effort, Exercise, Shots, Verdict};
use crate::families::case_fields;
use crate::text::difflib::ratio;
use crate::text::python::{splitlines, strip};
use crate::wording::Fields;

mod evaluate;
mod similarity;

/// Answers of a dialogue if the case does not say.
const ANSWERS_MAX: usize = 3;

/// The score keys that are aggregated over the rounds.
const AGGREGATED: &[&str] = &[
    "brevity",
    "strSimilarity",
    "parsableSyntax",
    "combined",
    "contentPrecision",
    "contentRecall",
    "contentF1",
];

/// One broken document.
struct RdfSyntaxFix {
    uid: String,
    format: RdfFormat,
    /// Whether documents are read as rdflib reads them.
    as_rdflib: bool,
    expected: Expected,
    opening: Fields,
    answers_max: usize,
}

/// The expected document, prepared once.
struct Expected {
    /// Without white space around it.
    text: String,
    /// Length in code points, including surrounding white space.
    chars: usize,
    /// Lines of the text.
    lines: Vec<String>,
    /// Its similarity to the broken document.
    question_ratio: f64,
    /// Its graph as lines.
    content: BTreeSet<String>,
}

/// Repair an RDF document.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    follow_ups: &[PromptKind::Structure, PromptKind::Syntax, PromptKind::Content, PromptKind::Formatting],
    repair: Some(Repair { broken: "task", repaired: "optimal" }),
    published: Published { estimated_size: Some(2000), ..Published::NOTHING },
    ..ClassSpec::new(
        &[("RdfSyntaxFixList", &["0.3-testing", "0.3"])],
        &["max", "combined"],
        AnswerForm::Document,
        |input, _, compat| exercise(input, compat),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>, compat: Compat) -> Result<Box<dyn Exercise>, CaseError> {
    let data = input.data;
    let format_name = case_fields::text(data, "graphFormat")
        .or_else(|missing| case_fields::text(input.parameters, "graphFormat").map_err(|_| missing))?;
    let format: RdfFormat = format_name
        .parse()
        .map_err(|_| CaseError::Field { field: "graphFormat", expected: "turtle, json-ld, nt or xml" })?;
    let task = strip(case_fields::text(data, "task")?);
    let expected = Expected::read(task, case_fields::text(data, "optimal")?, format)?;
    let answers_max = case_fields::count_or(data, "multishotLimit", ANSWERS_MAX)?;
    Ok(Box::new(RdfSyntaxFix {
        uid: case_fields::text(data, "taskUid")?.to_owned(),
        format,
        as_rdflib: compat.rdflib,
        expected,
        opening: opening(input, task, format_name, format)?,
        answers_max,
    }))
}

impl Expected {
    fn read(task: &str, optimal: &str, format: RdfFormat) -> Result<Self, CaseError> {
        let text = strip(optimal);
        let graph = Graph::parse(text, format, None)
            .map_err(|error| CaseError::Reference { field: "optimal", message: error.to_string() })?;
        Ok(Self {
            chars: optimal.chars().count(),
            lines: splitlines(text).into_iter().map(str::to_owned).collect(),
            question_ratio: ratio(task, text),
            content: normal_lines(&graph, NormalForm::RdfSyntaxFix),
            text: text.to_owned(),
        })
    }
}

/// The fields of the first prompt. A recorded first prompt says everything itself.
fn opening(
    input: &CaseInput<'_>,
    task: &str,
    format_name: &str,
    format: RdfFormat,
) -> Result<Fields, CaseError> {
    let mut fields = Fields::from([
        ("document".to_owned(), task.to_owned()),
        ("graphFormat".to_owned(), format_name.to_owned()),
        ("label".to_owned(), format.media_label().to_owned()),
    ]);
    let given = case_fields::text(input.data, "errorMessage").map(str::to_owned).ok();
    match given.or_else(|| Some(Graph::parse(task, format, None).err()?.to_string())) {
        Some(message) => {
            fields.insert("message".into(), message);
        }
        None if input.first_prompt.is_some() => {}
        None => {
            return Err(CaseError::Field { field: "task", expected: "document with a syntax error" });
        }
    }
    Ok(fields)
}

impl Exercise for RdfSyntaxFix {
    fn opening(&self, _question_seed: u64) -> Fields {
        self.opening.clone()
    }

    fn shots(&self) -> Shots {
        Shots::up_to(self.answers_max, AGGREGATED)
    }

    fn complaint(&self, text: &str, effort: &Effort) -> Option<String> {
        self.parse(strip(text), effort).err()
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
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, EvaluationStage, Limit, ReadOnce};

    const BROKEN: &str = "\n@prefix zoo: <http://example.org/zoo#> .\nzoo:heron zoo:cage zoo:c1\n\
                          zoo:owl zoo:cage zoo:c2 .\n";
    const WHOLE: &str = "@prefix zoo: <http://example.org/zoo#> .\nzoo:heron zoo:cage zoo:c1 .\n\
                         zoo:owl zoo:cage zoo:c2 .\n";

    fn data() -> Map<String, Value> {
        let data =
            json!({ "taskUid": "aviary-dot", "graphFormat": "turtle", "task": BROKEN, "optimal": WHOLE });
        data.as_object().unwrap().clone()
    }

    fn exercise_of(data: &Map<String, Value>) -> Result<Box<dyn Exercise>, CaseError> {
        let parameters = Map::new();
        exercise(
            &CaseInput {
                class: "RdfSyntaxFixList",
                version: "0.3",
                parameters: &parameters,
                data,
                first_prompt: None,
                once: &ReadOnce::default(),
            },
            Compat::PUBLISHED,
        )
    }

    fn judge(answer: &str) -> Verdict {
        exercise_of(&data()).unwrap().judge(answer, &Effort::full(EvaluationLimits::default()))
    }

    fn kind(verdict: &Verdict) -> Option<PromptKind> {
        verdict.follow_up.as_ref().map(|follow_up| follow_up.kind)
    }

    #[test]
    fn the_expected_document_is_shown_beside_the_first_block() {
        let (case, effort) = (exercise_of(&data()).unwrap(), Effort::full(EvaluationLimits::default()));
        let shown = |answer: &str| case.compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown(&format!("Done!\n```\n{BROKEN}```\n```\n{WHOLE}```"));
        assert_eq!(part.expected.as_deref(), Some(WHOLE.trim()));
        assert_eq!(part.extracted.as_deref(), Some(BROKEN.trim()));
        assert_eq!(shown(WHOLE).extracted, None, "a document outside a block is none");
    }

    #[test]
    fn limits_are_verdicts_that_name_themselves() {
        let exercise = exercise_of(&data()).unwrap();
        let answer = format!("```\n{WHOLE}```");
        let stage = EvaluationStage::WithoutParsing(Limit::Memory);
        let unparsed = exercise.judge(&answer, &Effort { limits: EvaluationLimits::default(), stage });
        assert_eq!(unparsed.scores["parsableSyntax"], 0);
        assert_eq!(unparsed.scores["strSimilarity"], 1.0, "the text can still be compared");
        let long = format!("```\n{}```", WHOLE.repeat(20));
        let uncompared = exercise.judge(&long, &Effort { limits: EvaluationLimits::default(), stage });
        assert_eq!(uncompared.scores["strSimilarity"], 0.0, "a long text may be what hit the limit");
        assert_eq!(unparsed.infos["syntaxError"], Limit::Memory.message());
        let small = EvaluationLimits { answer_bytes_max: 10, ..EvaluationLimits::default() };
        let large = exercise.judge(&answer, &Effort::full(small));
        assert_eq!(large.infos["syntaxError"], Limit::Size.message());
        assert_eq!(kind(&large), Some(PromptKind::Syntax));
        let deep = judge(&format!("```\n<a> <b> {}{} .\n```", "[<b> ".repeat(100_000), "]".repeat(100_000)));
        assert_eq!(deep.infos["syntaxError"], Limit::Nesting.message());
    }

    #[test]
    fn the_first_prompt_quotes_the_case_or_our_parser() {
        let opening = exercise_of(&data()).unwrap().opening(0);
        assert_eq!(opening["document"], BROKEN.trim());
        assert_eq!((opening["graphFormat"].as_str(), opening["label"].as_str()), ("turtle", "turtle"));
        assert!(!opening["message"].is_empty());
        let mut whole = data();
        whole["task"] = WHOLE.into();
        let error = exercise_of(&whole).err();
        assert!(matches!(error, Some(CaseError::Field { field: "task", .. })), "{error:?}");
        let mut broken = data();
        broken["optimal"] = BROKEN.into();
        let error = exercise_of(&broken).err();
        assert!(matches!(error, Some(CaseError::Reference { field: "optimal", .. })), "{error:?}");
    }
}
