//! Tables of namespace prefixes and the compact form of IRIs.

/// Prefixes and their namespace IRIs, in the order of first insertion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefixTable {
    entries: Vec<(String, String)>,
}

impl PrefixTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `prefix` (without colon; may be empty) to `namespace`, replacing an earlier binding in place.
    pub fn insert(&mut self, prefix: impl Into<String>, namespace: impl Into<String>) {
        let (prefix, namespace) = (prefix.into(), namespace.into());
        match self.entries.iter_mut().find(|(known, _)| *known == prefix) {
            Some(entry) => entry.1 = namespace,
            None => self.entries.push((prefix, namespace)),
        }
    }

    /// The namespace IRI of `prefix`.
    pub fn get(&self, prefix: &str) -> Option<&str> {
        self.entries.iter().find(|(known, _)| known == prefix).map(|(_, namespace)| namespace.as_str())
    }

    /// All `(prefix, namespace)` pairs in order of first insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(prefix, namespace)| (prefix.as_str(), namespace.as_str()))
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no prefix is bound.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Several tables laid over each other; a later one wins.
    pub fn layered(tables: &[&Self]) -> Self {
        tables.iter().flat_map(|table| table.iter()).collect()
    }

    /// The bindings that every rdflib graph has, as LLM-KG-Bench's prefix tables contain them.
    pub fn rdflib_defaults() -> Self {
        RDFLIB_DEFAULTS.iter().copied().collect()
    }

    /// `prefix:local` if the IRI's namespace is bound here and its local part is not empty.
    ///
    /// The split is rdflib's: the local part is the longest tail of name characters, less leading characters that
    /// cannot start a name. Where several prefixes share a namespace, the one bound last is used.
    pub fn compact(&self, iri: &str) -> Option<String> {
        let (namespace, local) = split_namespace(iri)?;
        let (prefix, _) = self.entries.iter().rev().find(|(_, known)| known == namespace)?;
        Some(format!("{prefix}:{local}"))
    }
}

impl<P: Into<String>, N: Into<String>> FromIterator<(P, N)> for PrefixTable {
    fn from_iter<I: IntoIterator<Item = (P, N)>>(pairs: I) -> Self {
        let mut table = Self::new();
        pairs.into_iter().for_each(|(prefix, namespace)| table.insert(prefix, namespace));
        table
    }
}

/// Namespace and non-empty local part of an IRI.
fn split_namespace(iri: &str) -> Option<(&str, &str)> {
    let tail = iri.trim_end_matches(is_name_character).len();
    let start = tail + iri[tail..].find(|c: char| c.is_alphanumeric() || c == '_')?;
    Some(iri.split_at(start))
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '_' | '-' | '.' | '%' | '(' | ')' | '\u{b7}' | '\u{387}')
        || is_combining_mark(c)
}

/// The common blocks of combining marks. The standard library knows no Unicode categories, and marks outside these
/// blocks do not occur in benchmark IRIs.
fn is_combining_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{64b}'..='\u{65f}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What `rdflib.Graph().namespaces()` yields (rdflib 7), in its order: of prefixes that share a namespace the last one is used.
const RDFLIB_DEFAULTS: &[(&str, &str)] = &[
    ("brick", "https://brickschema.org/schema/Brick#"),
    ("csvw", "http://www.w3.org/ns/csvw#"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dcmitype", "http://purl.org/dc/dcmitype/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("dcam", "http://purl.org/dc/dcam/"),
    ("doap", "http://usefulinc.com/ns/doap#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("odrl", "http://www.w3.org/ns/odrl/2/"),
    ("org", "http://www.w3.org/ns/org#"),
    ("prof", "http://www.w3.org/ns/dx/prof/"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("schema", "https://schema.org/"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("ssn", "http://www.w3.org/ns/ssn/"),
    ("time", "http://www.w3.org/2006/time#"),
    ("vann", "http://purl.org/vocab/vann/"),
    ("void", "http://rdfs.org/ns/void#"),
    ("wgs", "https://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("xml", "http://www.w3.org/XML/1998/namespace"),
];

/// A prefix table sorted by name. Parsers return their prefixes in no order, and the same document must give the same table.
pub(crate) fn sorted_prefixes<'a>(prefixes: impl Iterator<Item = (&'a str, &'a str)>) -> PrefixTable {
    let mut sorted: Vec<_> = prefixes.collect();
    sorted.sort_unstable();
    sorted.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_splits_as_rdflib_does() {
        let mut table = PrefixTable::rdflib_defaults();
        table.insert("", "https://example.org/staff/");
        table.insert("k", "https://example.org/kinds#");
        let compact = |iri| table.compact(iri);
        assert_eq!(compact("https://example.org/staff/3630").as_deref(), Some(":3630"));
        assert_eq!(compact("https://example.org/kinds#Small-1.5").as_deref(), Some("k:Small-1.5"));
        assert_eq!(compact("https://example.org/kinds#Size:S"), None, "a colon ends the local part");
        assert_eq!(compact("https://example.org/kinds#-x"), None, "the hyphen belongs to the namespace");
        assert_eq!(compact("https://example.org/kinds#"), None, "no local part");
        assert_eq!(compact("https://example.com/other"), None, "unknown namespace");
    }

    #[test]
    fn a_later_table_wins_and_order_is_that_of_first_insertion() {
        let (mut low, mut high) = (PrefixTable::new(), PrefixTable::new());
        low.insert("a", "http://a/1#");
        low.insert("b", "http://b/1#");
        high.insert("a", "http://a/2#");
        let layered = PrefixTable::layered(&[&low, &high]);
        assert_eq!(layered.iter().collect::<Vec<_>>(), [("a", "http://a/2#"), ("b", "http://b/1#")]);
    }

    #[test]
    fn the_prefix_bound_last_names_a_shared_namespace() {
        let mut table = PrefixTable::new();
        table.insert("old", "http://n/#");
        table.insert("new", "http://n/#");
        assert_eq!(table.compact("http://n/#x").as_deref(), Some("new:x"));
    }
}
