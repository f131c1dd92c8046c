//! The graph in the four syntaxes, in rdflib's layout.

use rdf::{NamedNode, PrefixTable, RdfFormat, Triple};
use serde_json::{Value, json};

use super::people::{People, iri, local_name};
use crate::families::rdflib_layout::{DocumentLayout, XmlNames};
use crate::families::seeded::Seeded;

const FOAF: &str = "http://xmlns.com/foaf/0.1/";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// The graph as text. The question seed decides the order of subjects (JSON-LD, RDF/XML) or statements (N-Triples);
/// Turtle has a fixed order.
pub(super) enum GraphText {
    /// The same text for all seeds.
    Fixed(String),
    /// In an order drawn from the seed.
    Shuffled(DocumentLayout),
}

impl GraphText {
    pub(super) fn of(people: &People, format: RdfFormat) -> Self {
        match format {
            RdfFormat::Turtle => Self::Fixed(turtle(people)),
            RdfFormat::JsonLd => Self::Shuffled(json_ld(people)),
            RdfFormat::NTriples => Self::Shuffled(DocumentLayout::ntriples(&triples(people))),
            RdfFormat::RdfXml => {
                let triples = triples(people);
                let prefixes = PrefixTable::from_iter([("foaf", FOAF)]);
                // Both properties have XML names, so this cannot fail.
                XmlNames::of(&triples, &prefixes).map_or_else(
                    |_| Self::Fixed(String::new()),
                    |names| Self::Shuffled(DocumentLayout::rdf_xml(&triples, &names)),
                )
            }
        }
    }

    /// The text for a seed.
    pub(super) fn text(&self, seed: u64) -> String {
        match self {
            Self::Fixed(text) => text.clone(),
            Self::Shuffled(layout) => layout.text(&mut Seeded::new(seed)),
        }
    }
}

/// Subjects by the number of persons who know them, then by name, so that the special person comes last; objects by
/// name.
fn turtle(people: &People) -> String {
    let degrees = people.in_degrees();
    let mut subjects: Vec<usize> = (0..people.count()).collect();
    subjects.sort_by_key(|&person| (degrees[person], person));
    let mut text = format!("@prefix ex: <http://example.org/people/> .\n@prefix foaf: <{FOAF}> .\n\n");
    for person in subjects {
        let mut known = people.known_by(person);
        known.sort_unstable();
        text.push_str(&format!("ex:{} a foaf:Person", local_name(person)));
        if !known.is_empty() {
            let objects: Vec<String> =
                known.into_iter().map(|known| format!("ex:{}", local_name(known))).collect();
            text.push_str(" ;\n    foaf:knows ");
            text.push_str(&objects.join(",\n        "));
        }
        text.push_str(" .\n\n");
    }
    text
}

/// Expanded JSON-LD, one object for each person.
fn json_ld(people: &People) -> DocumentLayout {
    let objects = (0..people.count()).map(|person| {
        let mut node = json!({"@id": iri(person), "@type": [format!("{FOAF}Person")]});
        let known: Vec<Value> =
            people.known_by(person).into_iter().map(|known| json!({"@id": iri(known)})).collect();
        if !known.is_empty() {
            node[format!("{FOAF}knows")] = known.into();
        }
        // Indented as an item of the list.
        let list = format!("{:#}", Value::from(vec![node]));
        list.trim_start_matches("[\n").trim_end_matches("\n]").to_owned()
    });
    DocumentLayout::json_list(objects)
}

fn triples(people: &People) -> Vec<Triple> {
    let node = |iri: String| NamedNode::new_unchecked(iri);
    let mut triples = Vec::with_capacity(people.triple_count());
    for person in 0..people.count() {
        let subject = node(iri(person));
        triples.push(Triple::new(subject.clone(), node(TYPE.to_owned()), node(format!("{FOAF}Person"))));
        for known in people.known_by(person) {
            triples.push(Triple::new(subject.clone(), node(format!("{FOAF}knows")), node(iri(known))));
        }
    }
    triples
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rdf::{Graph, NormalForm, normal_lines};

    use super::*;

    #[test]
    fn texts_have_the_published_lengths() {
        for added in [1, 2] {
            let people = People::new(6, 2, 3, added).unwrap();
            let length = |format| GraphText::of(&people, format).text(5).len();
            assert_eq!(RdfFormat::ALL.map(length), [717, 2034, 2092, 2398]);
        }
    }

    #[test]
    fn turtle_ends_with_the_special_person() {
        let text = GraphText::of(&People::new(6, 2, 3, 1).unwrap(), RdfFormat::Turtle).text(0);
        assert!(
            text.ends_with(
                "ex:person-00000004 a foaf:Person ;\n    foaf:knows ex:person-00000005,\n        ex:person-00000006 .\n\n"
            ),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn all_syntaxes_say_the_same(count in 6..30_usize, added in 1..4_usize, seed in any::<u64>()) {
            let people = People::new(count, 2, 3, added).unwrap();
            let read = |format| {
                let text = GraphText::of(&people, format).text(seed);
                let graph = Graph::parse(&text, format, None).unwrap();
                normal_lines(&graph, NormalForm::RdfSyntaxFix)
            };
            let expected = read(RdfFormat::Turtle);
            prop_assert_eq!(expected.len(), people.triple_count() + 1, "one line each and an empty one");
            for format in RdfFormat::ALL {
                prop_assert_eq!(read(format), expected.clone());
            }
        }
    }
}
