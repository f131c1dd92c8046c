//! The IRIs that a query mentions.

use crate::prefixes::PrefixTable;
use std::collections::BTreeSet;

/// Every IRI a query mentions.
pub fn query_iris(text: &str, task_table: &PrefixTable) -> BTreeSet<String> {
    let _ = (text, task_table);
    BTreeSet::new()
}

/// The text after the last `#` or `/`; the whole text if there is none.
pub fn iri_suffix(iri: &str) -> &str {
    iri.rfind(['#', '/']).map_or(iri, |at| &iri[at + 1..])
}
