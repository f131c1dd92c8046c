//! The checks `conforms` and `shapes`: a graph judged by shapes, and shapes judged by graphs.

use rdf::shacl::{ShaclShapes, ValidationReport, validate};
use rdf::{Graph, PrefixTable, QueryGraph};
use serde_json::{Map, Value};

use super::CheckSetting;
use super::scores::CheckScores;
use crate::exercise::{CaseError, EvaluationStage};
use crate::families::declared::spec::ConformityMeasure;

/// Most graphs that an info names.
const NAMED_MAX: usize = 20;

/// The graphs that shapes must tell apart.
pub(super) struct TellingGraphs {
    accept: Vec<QueryGraph>,
    /// By name, which says what is broken in them.
    reject: Vec<(String, QueryGraph)>,
    /// The node that must be among those with a violation, as N-Triples write it.
    focus: Option<String>,
}

impl TellingGraphs {
    /// Reads what a case expects: an object with `accept`, a list of graphs in Turtle; `reject`, graphs by name; and perhaps
    /// `focus`, an IRI.
    ///
    /// # Errors
    /// Something is missing, or a graph cannot be read.
    pub(super) fn read(expected: &Value, prefixes: &PrefixTable) -> Result<Self, CaseError> {
        let wrong =
            CaseError::Field { field: "expected", expected: "`accept` and `reject`, with graphs in Turtle" };
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(wrong.clone());
        let graph = |value: &Value, of: &str| -> Result<QueryGraph, CaseError> {
            let parsed = Graph::parse_turtle_with(&text(value)?, prefixes);
            let parsed = parsed.map_err(|error| CaseError::Reference {
                field: "expected",
                message: format!("{of}: {error}"),
            })?;
            Ok(QueryGraph::from_graph(&parsed))
        };
        let accept = expected.get("accept").and_then(Value::as_array).ok_or(wrong.clone())?;
        let reject = expected.get("reject").and_then(Value::as_object).ok_or(wrong.clone())?;
        if accept.is_empty() || reject.is_empty() {
            return Err(wrong.clone());
        }
        let focus = expected.get("focus").filter(|focus| !focus.is_null()).map(text).transpose()?;
        Ok(Self {
            accept: accept.iter().map(|value| graph(value, "accept")).collect::<Result<_, CaseError>>()?,
            reject: named(reject, &graph)?,
            focus: focus.map(|focus| format!("<{focus}>")),
        })
    }
}

fn named(
    graphs: &Map<String, Value>,
    read: &impl Fn(&Value, &str) -> Result<QueryGraph, CaseError>,
) -> Result<Vec<(String, QueryGraph)>, CaseError> {
    graphs.iter().map(|(name, value)| Ok((name.clone(), read(value, &format!("reject `{name}`"))?))).collect()
}

fn validated(
    shapes: &ShaclShapes,
    graph: &QueryGraph,
    bench: &CheckSetting<'_>,
) -> Result<ValidationReport, String> {
    if let EvaluationStage::WithoutExecution(limit) = bench.effort.stage {
        return Err(limit.message().to_owned());
    }
    bench.budget.run(|| validate(shapes, graph)).map_err(|error| error.to_string())
}

/// How well a graph has the shapes. An empty graph has most shapes, and is worth nothing all the same.
pub(super) fn conforms(
    graph: &Graph,
    shapes: &ShaclShapes,
    by: ConformityMeasure,
    bench: &CheckSetting<'_>,
) -> CheckScores {
    let mut scores = CheckScores { empty: graph.is_empty(), ..CheckScores::default() };
    if graph.is_empty() {
        return scores;
    }
    match validated(shapes, &QueryGraph::from_graph(graph), bench) {
        Err(message) => scores.info("error", message),
        Ok(report) => {
            scores.main = match by {
                ConformityMeasure::Graph => f64::from(u8::from(report.conforms())),
                ConformityMeasure::Node if report.targets == 0 => 1.0,
                ConformityMeasure::Node => (report.targets - report.violating) as f64 / report.targets as f64,
            };
            scores.info("violations", report.violations_count);
            scores.info("targets", report.targets);
            let constraints: Vec<&str> =
                report.violations.iter().take(NAMED_MAX).map(|violation| violation.constraint).collect();
            scores.info("violated", constraints);
        }
    }
    scores
}

/// Youden's index of shapes: the share of the good graphs that they accept, and of the bad ones that they reject, less one. Whoever
/// accepts everything, or rejects everything, has 0.
pub(super) fn tell_apart(
    shapes: &ShaclShapes,
    graphs: &TellingGraphs,
    bench: &CheckSetting<'_>,
) -> CheckScores {
    let mut scores = of_telling(0.0, 0.0);
    let mut wrong = Vec::new();
    let (mut accepted, mut rejected) = (0_usize, 0_usize);
    for (number, graph) in graphs.accept.iter().enumerate() {
        match validated(shapes, graph, bench) {
            Err(message) => {
                scores.info("error", message);
                return scores;
            }
            Ok(report) if report.conforms() => accepted += 1,
            Ok(_) => wrong.push(format!("accept {}", number + 1)),
        }
    }
    for (name, graph) in &graphs.reject {
        match validated(shapes, graph, bench) {
            Err(message) => {
                scores.info("error", message);
                return scores;
            }
            Ok(report) => {
                let reported =
                    graphs.focus.as_ref().is_none_or(|focus| report.violating_nodes.contains(focus));
                if !report.conforms() && reported {
                    rejected += 1;
                } else {
                    wrong.push(name.clone());
                }
            }
        }
    }
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    let mut scores = of_telling(share(accepted, graphs.accept.len()), share(rejected, graphs.reject.len()));
    wrong.truncate(NAMED_MAX);
    scores.info("wrong", wrong);
    if !shapes.have_target() {
        scores.info("target", "no shape says what it is about");
    }
    scores
}

/// The scores of shapes.
pub(super) fn of_telling(accept: f64, reject: f64) -> CheckScores {
    let parts = vec![("accept".into(), accept), ("reject".into(), reject)];
    CheckScores { main: (accept + reject - 1.0).max(0.0), parts, ..CheckScores::default() }
}
