//! N-Triples and RDF/XML in rdflib's layout, where the order that rdflib leaves open is drawn from a seed.
//!
//! Prompts of LLM-KG-Bench show graphs in these layouts. Statements of N-Triples and subjects of RDF/XML have no fixed
//! order; the properties of one subject keep the order of the source.

use std::collections::{BTreeMap, HashMap};

use rdf::{BlankNode, NamedOrBlankNode, PrefixTable, Term, Triple};

use super::seeded::Seeded;

const RDF_NAMESPACE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const STRING_TYPE: &str = "http://www.w3.org/2001/XMLSchema#string";

/// A text that is generated for every question; the parts that do not change are prepared once.
pub(crate) struct DocumentLayout {
    head: String,
    /// The parts whose order is drawn. The label of the document's blank nodes goes between the pieces of each part.
    parts: Vec<Vec<String>>,
    between: &'static str,
    tail: &'static str,
    /// Whether the first draw is a label, even if the graph has no blank node: in formats that may contain one.
    labelled: bool,
    /// Length of the text without labels, in bytes.
    bytes: usize,
}

impl DocumentLayout {
    /// One triple per line, in an order drawn from the seed.
    pub(crate) fn ntriples(triples: &[Triple]) -> Self {
        let labelled = with_new_labels(triples);
        Self::new(String::new(), labelled.iter().map(|triple| format!("{triple} .\n")), "", "")
    }

    /// Flat RDF/XML: an `rdf:Description` for each subject, in an order drawn from the seed.
    pub(crate) fn rdf_xml(triples: &[Triple], names: &XmlNames) -> Self {
        let labelled = with_new_labels(triples);
        let mut places: HashMap<&NamedOrBlankNode, usize> = HashMap::new();
        let mut descriptions: Vec<(&NamedOrBlankNode, String)> = Vec::new();
        for triple in &labelled {
            let place = *places.entry(&triple.subject).or_insert_with(|| {
                descriptions.push((&triple.subject, String::new()));
                descriptions.len() - 1
            });
            descriptions[place].1.push_str(&property(triple, names));
        }
        let mut head = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rdf:RDF\n");
        for (prefix, namespace) in &names.namespaces {
            head.push_str(&format!("   xmlns:{prefix}=\"{}\"\n", escaped(namespace)));
        }
        head.push_str(">\n");
        let described = descriptions.into_iter().map(|(subject, properties)| {
            let attribute = match subject {
                NamedOrBlankNode::NamedNode(node) => format!("rdf:about=\"{}\"", escaped(node.as_str())),
                NamedOrBlankNode::BlankNode(node) => format!("rdf:nodeID=\"{}\"", node.as_str()),
            };
            format!("  <rdf:Description {attribute}>\n{properties}  </rdf:Description>\n")
        });
        Self::new(head, described, "", "</rdf:RDF>\n")
    }

    /// A list of serialised objects in the layout of `json.dumps(..., indent=2)`, in an order drawn from the seed.
    pub(crate) fn json_list(objects: impl Iterator<Item = String>) -> Self {
        Self { labelled: false, ..Self::new("[\n".to_owned(), objects, ",\n", "\n]") }
    }

    fn new(
        head: String,
        parts: impl Iterator<Item = String>,
        between: &'static str,
        tail: &'static str,
    ) -> Self {
        let parts: Vec<Vec<String>> =
            parts.map(|part| part.split(LABEL).map(str::to_owned).collect()).collect();
        let pieces: usize = parts.iter().flatten().map(String::len).sum();
        let bytes = head.len() + pieces + parts.len() * between.len() + tail.len();
        Self { head, parts, between, tail, labelled: true, bytes }
    }

    /// The text for these draws. rdflib labels blank nodes with 32 hexadecimal digits that differ in every serialisation.
    pub(crate) fn text(&self, choices: &mut Seeded) -> String {
        let label = if self.labelled { format!("n{}", choices.hex()) } else { String::new() };
        let mut parts: Vec<&Vec<String>> = self.parts.iter().collect();
        choices.shuffle(&mut parts);
        let labels: usize = parts.iter().map(|pieces| pieces.len() - 1).sum();
        let mut text = String::with_capacity(self.bytes + labels * label.len());
        text.push_str(&self.head);
        for (place, pieces) in parts.into_iter().enumerate() {
            if place > 0 {
                text.push_str(self.between);
            }
            for (place, piece) in pieces.iter().enumerate() {
                if place > 0 {
                    text.push_str(&label);
                }
                text.push_str(piece);
            }
        }
        text.push_str(self.tail);
        text
    }
}

/// Placeholder of the label until the text is written. N-Triples escapes this character, and XML does not allow it.
const LABEL: char = '\0';

fn property(triple: &Triple, names: &XmlNames) -> String {
    // All properties of the graph were given a name before.
    let name = names.qualified.get(triple.predicate.as_str()).map_or("", String::as_str);
    match &triple.object {
        Term::NamedNode(node) => format!("    <{name} rdf:resource=\"{}\"/>\n", escaped(node.as_str())),
        Term::BlankNode(node) => format!("    <{name} rdf:nodeID=\"{}\"/>\n", node.as_str()),
        Term::Literal(literal) => {
            let kind = match literal.language() {
                Some(language) => format!(" xml:lang=\"{language}\""),
                None if literal.datatype().as_str() == STRING_TYPE => String::new(),
                None => format!(" rdf:datatype=\"{}\"", escaped(literal.datatype().as_str())),
            };
            format!("    <{name}{kind}>{}</{name}>\n", escaped(literal.value()))
        }
    }
}

/// The triples with blank nodes labelled as in rdflib: the label of the document, `b`, and a number from 1 in order of
/// first occurrence.
fn with_new_labels(triples: &[Triple]) -> Vec<Triple> {
    let mut labels: HashMap<BlankNode, BlankNode> = HashMap::new();
    let mut label = |node: &BlankNode| {
        let number = labels.len() + 1;
        labels
            .entry(node.clone())
            .or_insert_with(|| BlankNode::new_unchecked(format!("{LABEL}b{number}")))
            .clone()
    };
    let mut labelled = triples.to_vec();
    for triple in &mut labelled {
        if let NamedOrBlankNode::BlankNode(node) = &mut triple.subject {
            *node = label(node);
        }
        if let Term::BlankNode(node) = &mut triple.object {
            *node = label(node);
        }
    }
    labelled
}

/// The element names of a graph's properties.
pub(crate) struct XmlNames {
    /// Property IRI to `prefix:name`.
    qualified: BTreeMap<String, String>,
    /// Prefix to namespace, of the properties and `rdf` only.
    namespaces: BTreeMap<String, String>,
}

/// A property that cannot be an XML element.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the property <{property}> does not end in an XML name, so it cannot be written in RDF/XML")]
pub(crate) struct NoXmlName {
    property: String,
}

impl XmlNames {
    /// Names all properties of a graph; namespaces without a prefix in `prefixes` are called `ns1`, `ns2`, ...
    pub(crate) fn of(triples: &[Triple], prefixes: &PrefixTable) -> Result<Self, NoXmlName> {
        let mut names = Self {
            qualified: BTreeMap::new(),
            namespaces: BTreeMap::from([("rdf".to_owned(), RDF_NAMESPACE.to_owned())]),
        };
        for triple in triples {
            let property = triple.predicate.as_str();
            if names.qualified.contains_key(property) {
                continue;
            }
            let (namespace, local) =
                split_name(property).ok_or_else(|| NoXmlName { property: property.to_owned() })?;
            let prefix = names.prefix_of(namespace, prefixes);
            names.qualified.insert(property.to_owned(), format!("{prefix}:{local}"));
        }
        Ok(names)
    }

    fn prefix_of(&mut self, namespace: &str, prefixes: &PrefixTable) -> String {
        if let Some((known, _)) = self.namespaces.iter().find(|(_, known)| *known == namespace) {
            return known.clone();
        }
        // An element without prefix would need a default namespace, so the empty prefix is skipped.
        let declared = prefixes.iter().find(|(prefix, known)| !prefix.is_empty() && *known == namespace);
        let prefix = match declared {
            Some((prefix, _)) if !self.namespaces.contains_key(prefix) => prefix.to_owned(),
            _ => self.free_prefix(),
        };
        self.namespaces.insert(prefix.clone(), namespace.to_owned());
        prefix
    }

    fn free_prefix(&self) -> String {
        let mut number = 1;
        while self.namespaces.contains_key(&format!("ns{number}")) {
            number += 1;
        }
        format!("ns{number}")
    }
}

/// Splits an IRI before the longest XML name at its end.
fn split_name(iri: &str) -> Option<(&str, &str)> {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let tail =
        iri.rfind(|c| !in_name(c)).map_or(0, |at| at + iri[at..].chars().next().map_or(0, char::len_utf8));
    let start = tail + iri[tail..].find(|c: char| c.is_alphabetic() || c == '_')?;
    (start > 0).then(|| iri.split_at(start))
}

/// Text and attribute values of XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML parsers convert a bare carriage return to a newline.
            '\r' => escaped.push_str("&#13;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rdf::{Graph, NormalForm, RdfFormat, normal_lines};

    use super::*;

    const SOURCE: &str = r#"@prefix : <https://example.org/zoo/> . @prefix v: <http://example.org/v#> .
        :otter a v:Animal ; v:name "Otto & <Co>", "Loutre"@fr ; v:weight 9.5 ; v:home [ v:name "River" ; v:in [] ] .
        :heron a v:Animal ; :eats [ a v:Fish ] ."#;

    fn source() -> Graph {
        Graph::parse(SOURCE, RdfFormat::Turtle, None).unwrap()
    }

    fn triples() -> Vec<Triple> {
        source().iter().cloned().collect()
    }

    proptest! {
        #[test]
        fn both_layouts_hold_the_graph_whatever_the_seed(seed in any::<u64>()) {
            let (source, triples) = (source(), triples());
            let expected = normal_lines(&source, NormalForm::RdfSyntaxFix);
            let names = XmlNames::of(&triples, source.prefixes()).unwrap();
            let xml = DocumentLayout::rdf_xml(&triples, &names).text(&mut Seeded::new(seed));
            let lines = DocumentLayout::ntriples(&triples).text(&mut Seeded::new(seed));
            prop_assert_eq!(&xml, &DocumentLayout::rdf_xml(&triples, &names).text(&mut Seeded::new(seed)));
            for (text, format) in [(xml, RdfFormat::RdfXml), (lines, RdfFormat::NTriples)] {
                let read = Graph::parse(&text, format, None).unwrap();
                prop_assert_eq!(normal_lines(&read, NormalForm::RdfSyntaxFix), expected.clone(), "{}", text);
            }
        }
    }

    #[test]
    fn xml_declares_the_namespaces_of_properties_in_alphabetical_order() {
        let (source, triples) = (source(), triples());
        let names = XmlNames::of(&triples, source.prefixes()).unwrap();
        let xml = DocumentLayout::rdf_xml(&triples, &names).text(&mut Seeded::new(3));
        assert!(
            xml.starts_with(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rdf:RDF\n   xmlns:ns1=\"https://example.org/zoo/\"\n   \
                 xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"\n   \
                 xmlns:v=\"http://example.org/v#\"\n>\n  <rdf:Description rdf:"
            ),
            "{xml}"
        );
        assert!(
            xml.contains("    <v:name>Otto &amp; &lt;Co&gt;</v:name>\n    <v:name xml:lang=\"fr\">"),
            "{xml}"
        );
        assert!(xml.ends_with("  </rdf:Description>\n</rdf:RDF>\n"));
    }

    #[test]
    fn a_property_without_a_name_is_refused() {
        let graph = Graph::parse("<http://a/> <http://a/7> 1 .", RdfFormat::Turtle, None).unwrap();
        let triples: Vec<Triple> = graph.iter().cloned().collect();
        let error = XmlNames::of(&triples, &PrefixTable::new()).err().unwrap();
        assert_eq!(error, NoXmlName { property: "http://a/7".into() });
    }
}
