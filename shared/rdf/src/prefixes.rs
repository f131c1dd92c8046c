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
        let mut layered = Self::new();
        for table in tables {
            for (prefix, namespace) in table.iter() {
                layered.insert(prefix, namespace);
            }
        }
        layered
    }

    /// The bindings that every rdflib graph has.
    pub fn rdflib_defaults() -> Self {
        Self::default()
    }

    /// `prefix:local` if the IRI's namespace is bound here and its local part is not empty.
    pub fn compact(&self, iri: &str) -> Option<String> {
        let _ = iri;
        None
    }
}
