//! RdfConnectionExplain: name the shortest path between two persons of an organisational graph, one IRI a line
//! (LLM-KG-Bench 3, Meyer et al., ESWC 2025; the class is called RdfConnectionExplainStatic there, and
//! TurtleConnectionExplainStatic in earlier releases).
//!
//! The order of the path does not matter, only which of the reference IRIs an answer names, by four readings from strict
//! to lenient (`evaluate`).
//!
//! Fields of a case, all optional; the defaults are those of the published instance:
//!
//! - `baseIri`: the namespace of the IRIs that count.
//! - `referenceIris`: the path. Each is `baseIri` and a local name of word characters.
//! - `distractors`: names that are not on the path and count as mistakes if the text contains them.
//! - `graphTurtle`: the graph, needed only to ask the question in RDF/XML or N-Triples.
//! - `graphFormat` (or the task parameter of that name): `turtle`, `json-ld`, `xml` or `ntriples`.
//!
//! Placeholders of the first prompt: for `xml` and `ntriples`, `{{graph}}` is generated from `graphTurtle`, with blank
//! node labels and an order drawn from the question seed. Turtle and JSON-LD are shown as in the case.

use domain::Infos;
use rdf::{PrefixTable, RdfFormat, Triple};

use crate::class::{AnswerForm, ClassSpec, Published};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::families::rdflib_layout::{DocumentLayout, XmlNames};
use crate::families::seeded::Seeded;
use crate::wording::Fields;

mod evaluate;

use evaluate::FoundPath;

const PUBLISHED_BASE: &str = "https://abc.def/ghi/";
const PUBLISHED_PATH: [&str; 5] = [
    "https://abc.def/ghi/anne",
    "https://abc.def/ghi/researchDep",
    "https://abc.def/ghi/wonderOrg",
    "https://abc.def/ghi/marketingDep",
    "https://abc.def/ghi/bob",
];
/// Results of versions 1.0 and 2.0 show that such names count as mistakes; this list reproduces all of them.
const PUBLISHED_DISTRACTORS: [&str; 6] = ["Person", "Home", "UK", "US", "Organization", "OrganizationalUnit"];

/// One path to be found.
struct ConnectionExplain {
    path: FoundPath,
    /// The graph, if it is generated for every question.
    shown: Option<DocumentLayout>,
}

/// Find the shortest path between two persons of an organisational graph.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    published: Published { estimated_size: Some(2000), ..Published::NOTHING },
    ..ClassSpec::new(
        &[("RdfConnectionExplainStatic", &["3.2"]), ("TurtleConnectionExplainStatic", &["1.0", "2.0"])],
        &["listTrimF1"],
        AnswerForm::Text,
        |input, _, _| exercise(input),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let base = case_fields::text_or(input.data, "baseIri", PUBLISHED_BASE)?;
    let reference = case_fields::texts_or(input.data, "referenceIris", &PUBLISHED_PATH)?;
    let distractors = case_fields::texts_or(input.data, "distractors", &PUBLISHED_DISTRACTORS)?;
    // Since version 3.2 the precision of an answer without any IRI is 1; before, it was 0.
    let precision_of_nothing = u8::from(!matches!(input.version, "1.0" | "2.0"));
    let path = FoundPath::new(base, &reference, distractors, precision_of_nothing)?;
    Ok(Box::new(ConnectionExplain { path, shown: shown(input)? }))
}

fn shown(input: &CaseInput<'_>) -> Result<Option<DocumentLayout>, CaseError> {
    const FIELD: &str = "graphTurtle";
    let format = case_fields::graph_format(input)?;
    if !matches!(format, RdfFormat::RdfXml | RdfFormat::NTriples)
        || input.data.contains_key("graph")
        || !input.data.contains_key(FIELD)
    {
        return Ok(None);
    }
    let graph = case_fields::turtle(case_fields::text(input.data, FIELD)?, FIELD)?;
    let triples: Vec<Triple> = graph.iter().cloned().collect();
    if format == RdfFormat::NTriples {
        return Ok(Some(DocumentLayout::ntriples(&triples)));
    }
    let prefixes: PrefixTable = graph.prefixes().clone();
    let names = XmlNames::of(&triples, &prefixes)
        .map_err(|error| CaseError::Reference { field: FIELD, message: error.to_string() })?;
    Ok(Some(DocumentLayout::rdf_xml(&triples, &names)))
}

impl Exercise for ConnectionExplain {
    fn opening(&self, question_seed: u64) -> Fields {
        let graph = self.shown.as_ref().map(|layout| layout.text(&mut Seeded::new(question_seed)));
        graph.map(|graph| ("graph".to_owned(), graph)).into_iter().collect()
    }

    fn judge(&self, answer: &str, _effort: &Effort) -> Verdict {
        self.path.evaluate(answer)
    }

    fn compared(&self, answer: &str, _infos: &Infos, _effort: &Effort) -> Vec<ComparedPart> {
        vec![self.path.compared(answer)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(version: &str, data: &Value) -> Result<Box<dyn Exercise>, CaseError> {
        let class =
            if version == "3.2" { "RdfConnectionExplainStatic" } else { "TurtleConnectionExplainStatic" };
        exercise(&CaseInput {
            class,
            version,
            parameters: &Map::new(),
            data: data.as_object().unwrap(),
            first_prompt: None,
            once: &ReadOnce::default(),
        })
    }

    #[test]
    fn the_path_is_shown_beside_the_iris_that_are_listed() {
        let case = case("3.2", &json!({})).unwrap();
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| {
            let answer = answer.replace('H', PUBLISHED_BASE);
            case.compared(&answer, &Infos::new(), &effort).remove(0)
        };
        let part = shown("So:\n- Hbob  \n- Hanne\nnot <Hcarl>\n");
        assert_eq!(part.extracted, Some("Hanne\nHbob".replace('H', PUBLISHED_BASE)));
        assert_eq!(part.expected.unwrap().lines().count(), 5);
        assert!(part.by_line && shown("no path").extracted.is_none());
    }

    #[test]
    fn a_case_may_bring_its_own_path_and_graph() {
        let mut data = json!({
            "baseIri": "http://example.org/zoo/",
            "referenceIris": ["http://example.org/zoo/otter", "http://example.org/zoo/heron"],
            "distractors": [],
            "graphTurtle": "@prefix : <http://example.org/zoo/> . :otter :fears [ :is :heron ] .",
            "graphFormat": "ntriples",
        });
        let full = Effort::full(EvaluationLimits::default());
        let own = case("3.2", &data).unwrap();
        let answer = "http://example.org/zoo/otter\nhttp://example.org/zoo/heron";
        assert_eq!(own.judge(answer, &full).scores["listF1"], json!(1.0));
        let opening = own.opening(1);
        assert_eq!(opening["graph"].lines().count(), 2);
        assert_ne!(opening, own.opening(2), "blank nodes are labelled anew for every question");

        data["graphFormat"] = json!("turtle");
        assert_eq!(case("3.2", &data).unwrap().opening(1), Fields::default());
        data["referenceIris"] = json!(["http://elsewhere/otter"]);
        assert!(matches!(case("3.2", &data), Err(CaseError::Field { field: "referenceIris", .. })));
    }
}
