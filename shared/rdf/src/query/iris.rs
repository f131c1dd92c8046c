//! The IRIs that a query mentions.

use super::tokens::{TokenKind, Tokens};
use crate::prefixes::PrefixTable;
use std::collections::{BTreeSet, HashMap};

/// Every IRI a query mentions: IRIs, prefixed names, and `a` as `rdf:type`. The namespaces of PREFIX and BASE lines
/// are left out.
///
/// Prefixes are looked up in the task's table first and only then in the query's own declarations: the published
/// figures of LLM-KG-Bench show this order. A name with an unknown prefix is returned as written.
pub fn query_iris(text: &str, task_table: &PrefixTable) -> BTreeSet<String> {
    let tokens = Tokens::of(text);
    let mut own: HashMap<&str, &str> = HashMap::new();
    let mut iris = BTreeSet::new();
    let mut index = 0;
    while index < tokens.len() {
        let text = tokens.text(index);
        match tokens.kind(index) {
            Some(TokenKind::Word) if text == "a" => {
                iris.insert("http://www.w3.org/1999/02/22-rdf-syntax-ns#type".to_owned());
            }
            Some(TokenKind::Word) if declares_prefix(&tokens, index) => {
                own.insert(tokens.text(index + 1).trim_end_matches(':'), inside(tokens.text(index + 2)));
                index += 2;
            }
            Some(TokenKind::Word)
                if text.eq_ignore_ascii_case("BASE") && tokens.kind(index + 1) == Some(TokenKind::Iri) =>
            {
                index += 1;
            }
            Some(TokenKind::Iri) => {
                iris.insert(inside(text).to_owned());
            }
            Some(TokenKind::Prefixed) => {
                let (prefix, local) = text.split_once(':').unwrap_or((text, ""));
                iris.insert(match task_table.get(prefix).or_else(|| own.get(prefix).copied()) {
                    Some(namespace) => format!("{namespace}{}", local.replace('\\', "")),
                    None => text.to_owned(),
                });
            }
            _ => {}
        }
        index += 1;
    }
    iris
}

/// The text after the last `#` or `/`; the whole text if there is none.
pub fn iri_suffix(iri: &str) -> &str {
    iri.rfind(['#', '/']).map_or(iri, |at| &iri[at + 1..])
}

/// Whether the token at `index` starts `PREFIX name: <iri>`.
pub(super) fn declares_prefix(tokens: &Tokens<'_>, index: usize) -> bool {
    tokens.is_word(index, "PREFIX")
        && tokens.kind(index + 1) == Some(TokenKind::Prefixed)
        && tokens.text(index + 1).ends_with(':')
        && tokens.kind(index + 2) == Some(TokenKind::Iri)
}

/// An IRI token without its brackets.
pub(super) fn inside(iri: &str) -> &str {
    iri.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(iri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mentions_count_but_not_declarations() {
        let mut table = PrefixTable::new();
        table.insert("t", "http://task/");
        let text = "BASE <http://base/> PREFIX t: <http://own/> PREFIX o: <http://own/>
            SELECT * { ?s a t:C ; o:p 'x'^^<http://e/dt> . # t:comment
            { FILTER(o:f(?s) && 't:text' != ?s) } OPTIONAL { ?s n:p _:b } }";
        let found: Vec<_> = query_iris(text, &table).into_iter().collect();
        assert_eq!(
            found,
            [
                "http://e/dt",
                "http://own/f",
                "http://own/p",
                "http://task/C",
                "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
                "n:p"
            ]
        );
    }

    #[test]
    fn suffixes_end_at_hash_or_slash() {
        assert_eq!(iri_suffix("http://e/a#b"), "b");
        assert_eq!(iri_suffix("http://e/a"), "a");
        assert_eq!(iri_suffix("n:p"), "n:p");
    }
}
