//! What a prompt shows of a graph: all of it or the part around a node, in one of several forms.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use rdf::{Graph, PrefixTable, RdfFormat, Term, Triple};

use crate::task_files::cases::DeclaredRow;
use crate::task_files::field_path::plain;
use crate::task_files::graphs::FileGraph;
use crate::task_files::mistake::MistakeList;
use crate::task_files::table::FileSection;

/// Most triples of a part, if the file says no number.
const PART_TRIPLES: usize = 200;

/// How far a part reaches, if the file does not say.
const PART_HOPS: usize = 2;

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// What is shown of the graph of a case.
#[derive(Clone, Debug)]
pub(crate) struct ShownRule {
    /// Its syntax; `None` for which classes have which properties, and how often.
    form: Option<RdfFormat>,
    part: Option<ShownPart>,
}

/// The part around a node.
#[derive(Clone, Debug)]
struct ShownPart {
    /// The field with the IRI of the node.
    around: String,
    hops: usize,
    triples_max: usize,
    /// Whether queries run on this part only.
    judged: bool,
}

impl ShownRule {
    pub(crate) fn of_task(task: &FileSection<'_>, mistakes: &MistakeList<'_>) -> Self {
        let usual = Some(RdfFormat::Turtle);
        let Some(shown) = task.section("shown") else { return Self { form: usual, part: None } };
        let form = shown.text("as").map_or(usual, |form| form.value.parse().ok());
        let number = |key: &str, usual: usize| shown.whole(key).map_or(usual, |number| number.value);
        let part = shown.text("around").map(|around| ShownPart {
            around: around.value.to_owned(),
            hops: number("hops", PART_HOPS),
            triples_max: number("triples_max", PART_TRIPLES),
            judged: shown.flag("judged"),
        });
        for key in ["hops", "triples_max", "judged"] {
            if part.is_none() && shown.has(key) {
                mistakes.at(&shown.place_of(key), format!("`{key}` needs `around`, the field of a node"));
            }
        }
        Self { form, part }
    }

    /// The part of a graph on which queries run; `None` for all of it.
    ///
    /// # Errors
    /// The case does not say around which node.
    pub(crate) fn judged(&self, graph: &FileGraph, row: &DeclaredRow) -> Result<Option<FileGraph>, String> {
        let Some(part) = self.part.as_ref().filter(|part| part.judged) else { return Ok(None) };
        let text = part.of(graph, row)?.serialize(RdfFormat::NTriples, &PrefixTable::new());
        FileGraph::read(&text, RdfFormat::Turtle, &graph.prefixes).map(Some)
    }

    /// What a prompt shows.
    ///
    /// # Errors
    /// The case does not say around which node.
    pub(crate) fn text(&self, graph: &FileGraph, row: &DeclaredRow) -> Result<Rc<str>, String> {
        let part = self.part.as_ref().map(|part| part.of(graph, row)).transpose()?;
        if part.is_none() && self.form == Some(RdfFormat::Turtle) {
            return Ok(graph.shown());
        }
        let shown = part.as_ref().unwrap_or_else(|| graph.graph());
        Ok(match self.form {
            Some(format) => graph.written(shown, format),
            None => schema(shown, &graph.prefixes).into(),
        })
    }
}

impl ShownPart {
    /// The part: breadth-first from the node, its triples in the order of their texts, cut off at the greatest number.
    fn of(&self, graph: &FileGraph, row: &DeclaredRow) -> Result<Graph, String> {
        let around = row.fields.get(&self.around).map(plain);
        let around = around.ok_or_else(|| {
            format!("there is no `{}`, the node around which the graph is shown", self.around)
        })?;
        let expanded = around
            .split_once(':')
            .and_then(|(prefix, local)| Some(format!("{}{local}", graph.prefixes.get(prefix)?)));
        let iri = expanded.unwrap_or_else(|| around.trim_matches(['<', '>']).to_owned());
        let all = graph.touching();
        let start = format!("<{iri}>");
        let (mut seen, mut frontier) = (HashSet::new(), BTreeSet::from([start.as_str()]));
        let mut lines: Vec<&str> = Vec::new();
        for _ in 0..self.hops {
            let mut next = BTreeSet::new();
            for place in frontier.iter().flat_map(|node| all.of(node)) {
                if lines.len() == self.triples_max || !seen.insert(*place) {
                    continue;
                }
                let written = &all.triples[*place];
                lines.push(&written.line);
                // A literal is no node from which there is anything to reach.
                next.extend(written.ends.iter().map(String::as_str).filter(|end| !end.starts_with('"')));
            }
            frontier = next;
        }
        if lines.is_empty() {
            return Err(format!("the graph has nothing around <{iri}>"));
        }
        Graph::parse(&lines.join("\n"), RdfFormat::NTriples, None).map_err(|error| error.to_string())
    }
}

/// Which classes have which properties with values of which class or datatype, and how often, a line for each.
pub(crate) fn schema(graph: &Graph, prefixes: &PrefixTable) -> String {
    let short = |iri: &str| prefixes.compact(iri).unwrap_or_else(|| format!("<{iri}>"));
    let mut classes: HashMap<Term, BTreeSet<String>> = HashMap::new();
    let is_type = |triple: &&Triple| triple.predicate.as_str() == RDF_TYPE;
    for triple in graph.iter().filter(is_type) {
        if let Term::NamedNode(class) = &triple.object {
            classes.entry(triple.subject.clone().into()).or_default().insert(short(class.as_str()));
        }
    }
    let of = |term: &Term| match term {
        Term::Literal(literal) => BTreeSet::from([short(literal.datatype().as_str())]),
        other => classes.get(other).cloned().unwrap_or_else(|| BTreeSet::from(["?".to_owned()])),
    };
    let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for triple in graph.iter().filter(|triple| !is_type(triple)) {
        for class in of(&triple.subject.clone().into()) {
            for value in of(&triple.object) {
                let key = (class.clone(), short(triple.predicate.as_str()), value);
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    let lines = counts
        .into_iter()
        .map(|((class, property, value), count)| format!("{class} {property} {value} {count}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::task_files::graphs::usual_prefixes;

    fn graph() -> FileGraph {
        let mut prefixes = usual_prefixes();
        prefixes.insert("", "http://e/");
        let text = ":a a :C ; :p :b ; :n 1 . :b a :D ; :p :c . :c :p :d . :d :p :e . :x :p :a .";
        FileGraph::read(text, RdfFormat::Turtle, &prefixes).unwrap()
    }

    fn row() -> DeclaredRow {
        let fields = json!({"node": ":a", "other": "<http://e/nothing>"});
        DeclaredRow { id: "a".into(), fields: fields.as_object().unwrap().clone(), place: 0..0 }
    }

    fn rule(around: &str, hops: usize, triples_max: usize, form: Option<RdfFormat>) -> ShownRule {
        let part = ShownPart { around: around.to_owned(), hops, triples_max, judged: true };
        ShownRule { form, part: Some(part) }
    }

    #[test]
    fn a_part_is_what_lies_around_a_node() {
        let lines = |hops, most| {
            rule("node", hops, most, Some(RdfFormat::NTriples))
                .text(&graph(), &row())
                .unwrap()
                .lines()
                .count()
        };
        assert_eq!((lines(1, 99), lines(2, 99), lines(9, 99), lines(9, 3)), (4, 6, 8, 3));
        assert_eq!(
            rule("node", 1, 99, Some(RdfFormat::NTriples))
                .judged(&graph(), &row())
                .unwrap()
                .unwrap()
                .indexed
                .len(),
            4
        );
        let shown = rule("node", 1, 99, Some(RdfFormat::Turtle)).text(&graph(), &row()).unwrap();
        assert!(shown.contains(":x") && !shown.contains(":d") && shown.contains("@prefix"), "{shown}");
        assert!(
            rule("none", 1, 9, Some(RdfFormat::NTriples))
                .text(&graph(), &row())
                .unwrap_err()
                .contains("no `none`")
        );
        assert!(
            rule("other", 1, 9, Some(RdfFormat::NTriples))
                .text(&graph(), &row())
                .unwrap_err()
                .contains("nothing around")
        );
    }

    #[test]
    fn a_schema_counts_properties_by_class() {
        let rule = ShownRule { form: None, part: None };
        assert_eq!(
            &*rule.text(&graph(), &row()).unwrap(),
            ":C :n xsd:integer 1\n:C :p :D 1\n:D :p ? 1\n? :p :C 1\n? :p ? 2"
        );
        assert!(rule.judged(&graph(), &row()).unwrap().is_none());
    }
}
