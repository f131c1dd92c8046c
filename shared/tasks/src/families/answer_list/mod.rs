//! Text2AnswerList and Sparql2AnswerList: answer a question, or a SPARQL query, over a graph, one entity or literal a
//! line (LLM-KG-Bench 3, Meyer et al., ESWC 2025). They differ only in the prompt.
//!
//! The lines of an answer that are not blank are compared with the reference as sets, in four ways, from strict to
//! generous:
//!
//! - as they are: `precision`, `recall`, `f1`;
//! - without white space around them: `trim...`;
//! - *fixed*: also without quotes and angle brackets, and with the namespace as prefix `:`: `fixed...`;
//! - *relaxed*: also without colons and upper case. If the reference is a single number, one number is compared: the
//!   first line if it is one, or else the last, or else how many lines there are: `relaxed...`.
//!
//! `combinedF1` is the mean of the four F1. `brevity` is 1 / (1 + blanks in the answer).
//!
//! Fields of a case: `uid`, `refResultSet` (the reference, in the notation asked for), optionally `baseIri` (the
//! namespace whose IRIs are written with `:`; that of the published graph if left out). The placeholders of the first
//! prompt, such as `{{question}}`, `{{refSparql}}` or `{{graphTurtle}}`, are fields of the case.

use std::collections::BTreeSet;

use domain::{Infos, Scores};

use crate::class::{AnswerForm, ClassSpec};
use crate::compared::{ComparedPart, lines_of};
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::families::overlap::Overlap;
use crate::text::python::{is_digits, splitlines, strip};

const PUBLISHED_BASE: &str = "https://abc.def/ghi/";

/// Maximum number of entries of the info `answerSet`; an entry `...` marks that more were cut.
const ANSWER_SET_MAX: usize = 15;

/// One question with its answer.
struct AnswerList {
    uid: String,
    notation: Notation,
    reference: BTreeSet<String>,
    relaxed_reference: BTreeSet<String>,
    /// Whether the reference is a single number.
    is_count: bool,
    /// Whether the info `answerSet` is sorted; version 2.0 did not sort it.
    sorted_info: bool,
}

/// How IRIs of the graph are abbreviated.
struct Notation {
    /// The namespace, with `https` and with `http`.
    bases: [String; 2],
}

/// Answer a SPARQL query over a graph, line by line; the same for a question.
pub(crate) const CLASSES: [ClassSpec; 2] = [
    class(&[
        ("Sparql2AnswerList", &["2.0", "2.0.2"]),
        ("Sparql2AnswerListOrganizational", &["2.0", "2.0.2"]),
    ]),
    class(&[("Text2AnswerList", &["2.0", "2.0.2"]), ("Text2AnswerListOrganizational", &["2.0", "2.0.2"])]),
];

const fn class(names: &'static [(&'static str, &'static [&'static str])]) -> ClassSpec {
    ClassSpec::new(names, &["combinedF1"], AnswerForm::Text, |input, _, _| exercise(input))
}

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let notation = Notation::new(case_fields::text_or(input.data, "baseIri", PUBLISHED_BASE)?);
    let reference = case_fields::texts(input.data, "refResultSet")?;
    Ok(Box::new(AnswerList {
        uid: case_fields::text(input.data, "uid")?.to_owned(),
        is_count: matches!(reference.as_slice(), [only] if is_digits(only)),
        relaxed_reference: reference.iter().map(|entry| relaxed(&notation.fixed(entry))).collect(),
        reference: reference.into_iter().collect(),
        notation,
        sorted_info: input.version != "2.0",
    }))
}

impl Notation {
    fn new(base: &str) -> Self {
        let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        Self {
            bases: match rest {
                Some(rest) => [format!("https://{rest}"), format!("http://{rest}")],
                None => [base.to_owned(), base.to_owned()],
            },
        }
    }

    /// A line with the usual errors of notation corrected. `0:` is the name of the namespace in the published JSON-LD
    /// context.
    fn fixed(&self, line: &str) -> String {
        let mut line = line.replace(['"', '\'', '<', '>'], "");
        for base in self.bases.iter().filter(|base| !base.is_empty()) {
            line = line.replace(base, ":");
        }
        line.replace("0:", ":")
    }
}

/// A fixed line without colons and upper case.
fn relaxed(fixed: &str) -> String {
    fixed.to_lowercase().replace(':', "")
}

impl Exercise for AnswerList {
    fn judge(&self, answer: &str, _effort: &Effort) -> Verdict {
        let lines = lines_with_text(answer);
        let trimmed: Vec<&str> = lines.iter().map(|line| strip(line)).collect();
        let fixed: Vec<String> = trimmed.iter().map(|line| self.notation.fixed(line)).collect();
        let set: BTreeSet<String> = lines.iter().map(|line| (*line).to_owned()).collect();

        let as_is = Overlap::of(&set, &self.reference);
        let trim = Overlap::of(&trimmed.iter().map(|line| (*line).to_owned()).collect(), &self.reference);
        let fix = Overlap::of(&fixed.iter().cloned().collect(), &self.reference);
        let relax = Overlap::of(&self.relaxed_set(&fixed), &self.relaxed_reference);

        let mut scores = Scores::new();
        for (names, overlap) in [
            (["precision", "recall", "f1"], as_is),
            (["trimPrecision", "trimRecall", "trimF1"], trim),
            (["fixedPrecision", "fixedRecall", "fixedF1"], fix),
            (["relaxedPrecision", "relaxedRecall", "relaxedF1"], relax),
        ] {
            for (name, score) in names.into_iter().zip([overlap.precision, overlap.recall, overlap.f1]) {
                scores.insert(name.into(), score.into());
            }
        }
        let blanks = answer.bytes().filter(|byte| *byte == b' ').count();
        scores.insert("brevity".into(), (1.0 / (1.0 + blanks as f64)).into());
        scores.insert("combinedF1".into(), ((as_is.f1 + trim.f1 + fix.f1 + relax.f1) / 4.0).into());

        let mut infos = Infos::new();
        infos.insert("testUid".into(), self.uid.as_str().into());
        infos.insert("answerResultLength".into(), lines.len().into());
        infos.insert("answerSetSize".into(), set.len().into());
        infos.insert("answerSet".into(), self.shown_set(&lines).into());
        for (name, flag) in [
            ("errorHttp", answer.contains("http")),
            ("errorGreaterThan", answer.contains(['<', '>'])),
            ("errorQuotationMark", answer.contains('"')),
            ("errorNumber", self.is_count && lines.len() > 1),
            ("errorF1Spaces", trim.f1 > as_is.f1),
            ("errorF1Format", fix.f1 > trim.f1),
            ("errorF1Minor", relax.f1 > fix.f1),
        ] {
            infos.insert(name.into(), u8::from(flag).into());
        }
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    fn compared(&self, answer: &str, _infos: &Infos, _effort: &Effort) -> Vec<ComparedPart> {
        let lines: BTreeSet<&str> = lines_with_text(answer).into_iter().map(strip).collect();
        vec![ComparedPart::new("list", lines_of(&self.reference), lines_of(lines)).by_line()]
    }
}

/// The lines of an answer that are not blank.
fn lines_with_text(answer: &str) -> Vec<&str> {
    splitlines(answer).into_iter().filter(|line| !strip(line).is_empty()).collect()
}

impl AnswerList {
    fn relaxed_set(&self, fixed: &[String]) -> BTreeSet<String> {
        let lines: Vec<String> = fixed.iter().map(|line| relaxed(line)).collect();
        let (true, Some(first), Some(last)) = (self.is_count, lines.first(), lines.last()) else {
            return lines.into_iter().collect();
        };
        let number = [first, last].into_iter().find(|line| is_digits(line)).cloned();
        BTreeSet::from([number.unwrap_or_else(|| lines.len().to_string())])
    }

    /// The distinct lines for the record.
    fn shown_set(&self, lines: &[&str]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut distinct: Vec<&str> = lines.iter().copied().filter(|line| seen.insert(*line)).collect();
        if self.sorted_info {
            distinct.sort_unstable();
        }
        let cut = distinct.len() > ANSWER_SET_MAX;
        distinct.truncate(ANSWER_SET_MAX);
        distinct.extend(cut.then_some("..."));
        distinct.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(reference: &[&str]) -> Box<dyn Exercise> {
        let data = json!({"uid": "own-1", "refResultSet": reference});
        let input = CaseInput {
            class: "Text2AnswerListOrganizational",
            version: "2.0.2",
            parameters: &Map::new(),
            data: data.as_object().unwrap(),
            first_prompt: None,
            once: &ReadOnce::default(),
        };
        exercise(&input).unwrap()
    }

    #[test]
    fn the_reference_is_shown_beside_the_trimmed_lines() {
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| case(&["Anne", "Bob"]).compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown("Bob  \n\nCarl\nBob");
        assert_eq!(part.expected.as_deref(), Some("Anne\nBob"));
        assert_eq!(part.extracted.as_deref(), Some("Bob\nCarl"));
        assert!(part.by_line && shown(" \n").extracted.is_none());
    }
}
