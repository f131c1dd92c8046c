//! Wikidata's namespaces, as its query service binds them.

use rdf::PrefixTable;

const NAMESPACES: &[(&str, &str)] = &[
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("p", "http://www.wikidata.org/prop/"),
    ("ps", "http://www.wikidata.org/prop/statement/"),
    ("psv", "http://www.wikidata.org/prop/statement/value/"),
    ("pq", "http://www.wikidata.org/prop/qualifier/"),
    ("pqv", "http://www.wikidata.org/prop/qualifier/value/"),
    ("pr", "http://www.wikidata.org/prop/reference/"),
    ("wikibase", "http://wikiba.se/ontology#"),
    ("bd", "http://www.bigdata.com/rdf#"),
    ("schema", "http://schema.org/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
];

/// The prefixes that queries to Wikidata may use without declaring them, beside rdflib's.
pub(crate) fn prefixes() -> PrefixTable {
    NAMESPACES.iter().copied().collect()
}
