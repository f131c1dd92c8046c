//! Query results as sets of texts.

use std::collections::BTreeSet;

use domain::Infos;
use rdf::{PrefixTable, Solutions, Value};
use serde_json::Value as Json;

use crate::compared::{ComparedPart, lines_of};

/// Maximum number of texts of a result in the infos; `...` replaces the rest.
const SHOWN_MAX: usize = 15;

/// The info with the first texts of a result.
pub(super) const SHOWN: &str = "answerSet";

/// How values are converted to text.
#[derive(Clone, Debug)]
pub(crate) enum ValueTexts {
    /// IRIs as `prefix:local` where their namespace is in this table, else in angle brackets.
    Compact(PrefixTable),
    /// The plain value, as in the JSON results of a SPARQL endpoint.
    Raw,
}

impl ValueTexts {
    /// The text of one value. Language and datatype of literals are not part of it.
    fn text(&self, value: Value) -> String {
        match (self, value) {
            (_, Value::Literal { lexical, .. }) => lexical,
            (Self::Raw, Value::Iri(iri)) => iri,
            (Self::Compact(prefixes), Value::Iri(iri)) => {
                prefixes.compact(&iri).unwrap_or_else(|| format!("<{iri}>"))
            }
            (_, Value::Blank(label)) => format!("_:{label}"),
        }
    }

    /// The texts of all cells of all rows. The position of a value does not matter, so a query may return
    /// more columns than asked for, or differently named ones.
    pub(super) fn set(&self, solutions: Solutions) -> BTreeSet<String> {
        solutions.rows.into_iter().flatten().flatten().map(|value| self.text(value)).collect()
    }
}

/// The expected texts as a result can match them. In Python, numbers that are zero, `false` and empty texts count as nothing,
/// and the published evaluator never takes one of them for the expected text that it has.
pub(super) fn expected_of(solutions: &Solutions, expected: &BTreeSet<String>) -> BTreeSet<String> {
    let (mut nothing, mut something) = (BTreeSet::new(), BTreeSet::new());
    for value in solutions.rows.iter().flatten().flatten() {
        if let Value::Literal { lexical, datatype, .. } = value {
            let kind = if counts_as_nothing(lexical, datatype) { &mut nothing } else { &mut something };
            kind.insert(lexical);
        }
    }
    let unmatched = |text: &String| nothing.contains(text) && !something.contains(text);
    // Another text of the set that no value has.
    expected.iter().map(|text| if unmatched(text) { format!("{text}\0") } else { text.clone() }).collect()
}

fn counts_as_nothing(lexical: &str, datatype: &str) -> bool {
    lexical.is_empty()
        || rdf::literal::is_numeric(datatype) && lexical.parse() == Ok(0.0)
        || lexical == "false" && datatype.ends_with("#boolean")
}

/// The first texts in order, as recorded.
pub(super) fn shown(texts: &BTreeSet<String>) -> Vec<Json> {
    let rest = (texts.len() > SHOWN_MAX).then_some("...");
    texts.iter().take(SHOWN_MAX).map(String::as_str).chain(rest).map(Json::from).collect()
}

/// The expected result and the recorded one, both cut as in records.
pub(super) fn compared(expected: &BTreeSet<String>, infos: &Infos) -> ComparedPart {
    let found = infos.get(SHOWN).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let expected = shown(expected);
    let texts = |values: &[Json]| lines_of(values.iter().filter_map(Json::as_str));
    let part = ComparedPart::new("result", texts(&expected), texts(found));
    // What is missing in the beginning of a result may be right.
    if expected.len().max(found.len()) > SHOWN_MAX { part } else { part.by_line() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solutions() -> Solutions {
        let literal = |lexical: &str| Value::Literal {
            lexical: lexical.into(),
            datatype: "http://www.w3.org/2001/XMLSchema#string".into(),
            language: None,
        };
        Solutions {
            variables: vec!["a".into(), "b".into()],
            rows: vec![
                vec![Some(Value::Iri("http://example.org/zoo#Heron".into())), Some(literal("7"))],
                vec![None, Some(literal("7"))],
                vec![Some(Value::Iri("http://elsewhere.example/Heron".into())), None],
            ],
        }
    }

    #[test]
    fn all_bound_cells_make_one_set() {
        let mut prefixes = PrefixTable::new();
        prefixes.insert("zoo", "http://example.org/zoo#");
        let compact: Vec<_> = ValueTexts::Compact(prefixes).set(solutions()).into_iter().collect();
        assert_eq!(compact, ["7", "<http://elsewhere.example/Heron>", "zoo:Heron"]);
        let raw: Vec<_> = ValueTexts::Raw.set(solutions()).into_iter().collect();
        assert_eq!(raw, ["7", "http://elsewhere.example/Heron", "http://example.org/zoo#Heron"]);
    }

    #[test]
    fn what_python_takes_for_nothing_matches_nothing() {
        let cell = |lexical: &str, local: &str| {
            Some(Value::Literal {
                lexical: lexical.into(),
                datatype: format!("http://www.w3.org/2001/XMLSchema#{local}"),
                language: None,
            })
        };
        let row =
            vec![cell("0", "integer"), cell("0.0", "double"), cell("false", "boolean"), cell("", "string")];
        let mut solutions = Solutions { variables: Vec::new(), rows: vec![row] };
        let expected: BTreeSet<String> = ["0", "0.0", "false", "", "1"].map(str::to_owned).into();
        let matched = |solutions: &Solutions| {
            let texts = ValueTexts::Raw.set(solutions.clone());
            expected_of(solutions, &expected).intersection(&texts).cloned().collect::<Vec<_>>()
        };
        assert!(matched(&solutions).is_empty());
        solutions.rows.push(vec![cell("0", "string"), cell("1", "integer")]);
        assert_eq!(matched(&solutions), ["0", "1"], "as a text, 0 is something");
    }

    #[test]
    fn long_sets_are_cut_for_the_record() {
        let texts = |number: u32| (0..number).map(|i| format!("{i:02}")).collect::<BTreeSet<_>>();
        assert_eq!(shown(&texts(15)).len(), 15);
        let cut = shown(&texts(16));
        assert_eq!((cut.len(), cut[14].as_str(), cut[15].as_str()), (16, Some("14"), Some("...")));
    }
}
