//! FactExtract: turn the fact sheet of a 3D printer into a graph (Meyer et al., "Benchmarking the Abilities of Large
//! Language Models for RDF Knowledge Graph Creation and Comprehension", 2023; the class is called FactExtractStatic
//! there).
//!
//! As much of the answer as possible is read as Turtle ([`rdf::tolerant`]) and compared with the expected graph in five
//! aspects. Each gives `..._precision`, `..._recall` and `..._f-measure`; if the answer says nothing about an aspect, its
//! precision is 1:
//!
//! - `norm`: the normal lines of the whole graph, all blank nodes treated as equal;
//! - `printMat`, `supportMat`: the materials, of any subject;
//! - `DimValues`: pairs of dimension (width, height, depth) and value with its datatype;
//! - `DimUnit`: pairs of property and unit, for every property with a value that has a unit.
//!
//! `normDiffRatio` is the similarity (difflib) of the normal texts, `parsableTripleRatio` the number of triples over
//! the expected number. `diffRatioRaw` is the similarity of the answer to the expected document as text: that
//! document was never published, so values of published records are not comparable with those computed here.
//!
//! Fields of a case, all optional; the defaults are those of the published instance: `referenceTurtle` (the expected
//! document), `printMaterialProperty`, `supportMaterialProperty` and `dimensionProperties` (IRIs). The placeholders of
//! the first prompt are fields of the case.

use std::collections::BTreeSet;

use domain::{Infos, Scores};
use rdf::{Graph, NormalForm, normal_lines, normal_text};

use crate::class::{AnswerForm, ClassSpec, Published};
use crate::compared::{ComparedPart, lines_of};
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::families::overlap::Overlap;
use crate::families::readable_turtle;
use crate::text::difflib::ratio;
use crate::text::python::strip;

mod facts;

use facts::{Facts, Vocabulary};

/// The expected facts of the published sheet, written anew.
const PUBLISHED_REFERENCE: &str = include_str!("reference.ttl");

const PRINT_MATERIAL: &str = "https://data.semper-ki.org/properties/printMaterial";
const SUPPORT_MATERIAL: &str = "https://data.semper-ki.org/properties/supportMaterial";
const DIMENSIONS: [&str; 3] =
    ["http://schema.org/width", "http://schema.org/height", "http://schema.org/depth"];

/// One fact sheet.
struct FactExtract {
    vocabulary: Vocabulary,
    /// The expected document without white space around it.
    document: String,
    triples: usize,
    lines: BTreeSet<String>,
    normal_text: String,
    facts: Facts,
}

/// Turn a fact sheet into a graph.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    wider: &[("parsableTripleRatio", 0.0..=f64::INFINITY)],
    published: Published { incomparable: &["diffRatioRaw"], ..Published::NOTHING },
    ..ClassSpec::new(
        &[("FactExtractStatic", &["1.0", "1.1"])],
        &["norm_f-measure"],
        AnswerForm::Document,
        |input, _, _| exercise(input),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let document = case_fields::text_or(input.data, "referenceTurtle", PUBLISHED_REFERENCE)?;
    let graph: Graph = case_fields::turtle(document, "referenceTurtle")?;
    if graph.is_empty() {
        return Err(CaseError::Field { field: "referenceTurtle", expected: "document with triples" });
    }
    let property = |field, default| case_fields::text_or(input.data, field, default).map(str::to_owned);
    let vocabulary = Vocabulary {
        print_material: property("printMaterialProperty", PRINT_MATERIAL)?,
        support_material: property("supportMaterialProperty", SUPPORT_MATERIAL)?,
        dimensions: case_fields::texts_or(input.data, "dimensionProperties", &DIMENSIONS)?,
    };
    let lines = normal_lines(&graph, NormalForm::Classic);
    Ok(Box::new(FactExtract {
        document: strip(document).to_owned(),
        triples: graph.len(),
        normal_text: normal_text(&lines),
        lines,
        facts: Facts::of(&graph, &vocabulary),
        vocabulary,
    }))
}

impl Exercise for FactExtract {
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let readable = readable_turtle::read(answer, effort);
        let lines = normal_lines(&readable.graph, NormalForm::Classic);
        let facts = Facts::of(&readable.graph, &self.vocabulary);

        let mut scores = Scores::new();
        // An answer beyond the size limit is not judged further.
        let text = if answer.len() > effort.limits.answer_bytes_max { "" } else { strip(answer) };
        scores.insert("diffRatioRaw".into(), ratio(text, &self.document).into());
        scores.insert("normDiffRatio".into(), ratio(&self.normal_text, &normal_text(&lines)).into());
        for (aspect, overlap) in [
            ("norm", Overlap::of(&lines, &self.lines)),
            ("printMat", Overlap::of(&facts.print_materials, &self.facts.print_materials)),
            ("supportMat", Overlap::of(&facts.support_materials, &self.facts.support_materials)),
            ("DimValues", Overlap::of(&facts.dimension_values, &self.facts.dimension_values)),
            ("DimUnit", Overlap::of(&facts.dimension_units, &self.facts.dimension_units)),
        ] {
            scores.insert(format!("{aspect}_precision"), overlap.precision.into());
            scores.insert(format!("{aspect}_recall"), overlap.recall.into());
            scores.insert(format!("{aspect}_f-measure"), overlap.f1.into());
        }
        let triples = readable.graph.len();
        scores.insert("parsableTripleRatio".into(), (triples as f64 / self.triples as f64).into());

        let mut infos = Infos::new();
        infos.insert("parsableTriplesCount".into(), triples.into());
        infos.insert("parsableTriples".into(), readable.ntriples().into());
        if let Some(limit) = readable.limit {
            infos.insert("evaluationLimit".into(), limit.message().into());
        }
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    /// The normal lines of both graphs, which the headline compares.
    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let triples = |lines: &BTreeSet<String>| lines_of(lines.iter().filter(|line| !line.is_empty()));
        let readable = readable_turtle::read(answer, effort);
        let found = normal_lines(&readable.graph, NormalForm::Classic);
        vec![ComparedPart::new("graph", triples(&self.lines), triples(&found)).by_line()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case() -> Box<dyn Exercise> {
        let none = Map::new();
        let class = "FactExtractStatic";
        exercise(&CaseInput {
            class,
            version: "1.1",
            parameters: &none,
            data: &none,
            first_prompt: None,
            once: &ReadOnce::default(),
        })
        .unwrap()
    }

    fn judge(answer: &str) -> Verdict {
        case().judge(answer, &Effort::full(EvaluationLimits::default()))
    }

    #[test]
    fn the_expected_graph_has_the_published_size_and_full_marks() {
        let verdict = judge(PUBLISHED_REFERENCE);
        assert_eq!(verdict.infos["parsableTriplesCount"], 32);
        assert_eq!(
            normal_lines(&case_fields::turtle(PUBLISHED_REFERENCE, "-").unwrap(), NormalForm::Classic).len(),
            29
        );
        assert_eq!(verdict.scores.len(), 18);
        assert!(verdict.scores.values().all(|score| *score == json!(1.0)), "{:?}", verdict.scores);
    }

    #[test]
    fn both_graphs_are_shown_as_triples() {
        let (case, effort) = (case(), Effort::full(EvaluationLimits::default()));
        let shown = |answer: &str| case.compared(answer, &Infos::new(), &effort).remove(0);
        let right = shown(PUBLISHED_REFERENCE);
        assert_eq!(right.expected, right.extracted);
        assert_eq!(right.expected.unwrap().lines().count(), 28, "the lines without the empty one");
        let partly = shown("<http://a/s> <http://a/p> 1.5e1 .\n<http://a/s> oops\n").extracted.unwrap();
        assert_eq!(partly, "<http://a/s> <http://a/p> \"15.0\"^^<http://www.w3.org/2001/XMLSchema#double> .");
        assert_eq!(shown("I am sorry.").extracted, None);
    }
}
