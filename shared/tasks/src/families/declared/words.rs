//! Brings texts, numbers and items of lists into one form, so that comparing them leaves out what people write differently and
//! mean alike, such as case, white space, quotes and bullets.

use std::sync::LazyLock;

use rdf::PrefixTable;
use regex::Regex;
use serde_json::Value;

use super::spec::ItemKind;

/// Maximum number of distinct numbers that are looked for in a text. One is expected.
const NUMBERS_MAX: usize = 100;

/// Marks that are left out wherever they stand.
const MARKS: [char; 7] = ['"', '“', '”', '«', '»', '*', '`'];

/// Marks that are left out at the ends of words, because they may stand within one.
const OUTER_MARKS: [char; 5] = ['\'', '‘', '’', '‚', '_'];

/// A text in lower case, with single blanks, without quotes, marks of emphasis and a final stop.
pub(super) fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !MARKS.contains(c)).collect::<String>().to_lowercase();
    let text = text.trim().trim_end_matches('.');
    let words = text.split_whitespace().map(|word| word.trim_matches(OUTER_MARKS));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A line of a list without its bullet or number, quotes and a final comma.
pub(super) fn unmarked(line: &str) -> &str {
    let line = line.trim();
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let numbered = line[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0);
    let bulleted = || line.strip_prefix(['-', '*', '•']);
    let rest =
        numbered.or_else(bulleted).filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(line);
    rest.trim().trim_end_matches(',').trim_matches(MARKS)
}

/// A value of a JSON list as the text of an item.
pub(super) fn item_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number as text by its value: `2.50`, `2.5` and `25e-1` are the same.
pub(super) fn number_text(value: f64) -> String {
    // The sum turns a negative zero into zero.
    (value + 0.0).to_string()
}

/// The distinct numbers of a text. Digits within a word, such as those of `Q42`, are none; commas may group thousands.
pub(super) fn numbers(text: &str) -> Vec<f64> {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
            .ok()
    });
    let Some(pattern) = NUMBER.as_ref() else { return Vec::new() };
    let mut found: Vec<f64> = Vec::new();
    for hit in pattern.find_iter(text) {
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        let in_word = text[..hit.start()].ends_with(joins) || text[hit.end()..].starts_with(joins);
        let value = hit.as_str().replace(',', "").parse::<f64>();
        if let (false, Ok(value)) = (in_word, value)
            && value.is_finite()
            && !found.contains(&value)
        {
            found.push(value);
            if found.len() == NUMBERS_MAX {
                break;
            }
        }
    }
    found
}

/// The form in which an item is compared; `None` for what is no item of this kind.
pub(super) fn item(text: &str, kind: ItemKind, prefixes: &PrefixTable) -> Option<String> {
    match kind {
        ItemKind::Text => Some(plain(text)).filter(|text| !text.is_empty()),
        ItemKind::Iri => Some(iri(text, prefixes)),
        ItemKind::Number => match numbers(text).as_slice() {
            [number] => Some(number_text(*number)),
            _ => None,
        },
        ItemKind::Record => match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => Some(record(&value)),
            _ => None,
        },
    }
}

/// An IRI in full: without angle brackets, and with its prefix replaced.
fn iri(text: &str, prefixes: &PrefixTable) -> String {
    let text = text.trim();
    if let Some(full) = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')) {
        return full.to_owned();
    }
    let namespace = text.split_once(':').and_then(|(prefix, local)| Some((prefixes.get(prefix)?, local)));
    namespace.map_or_else(|| text.to_owned(), |(namespace, local)| format!("{namespace}{local}"))
}

/// A JSON value with sorted keys, plain texts and numbers by value.
fn record(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", record(value))).collect();
            fields.sort();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(record).collect::<Vec<_>>().join(",")),
        Value::String(text) => format!("{:?}", plain(text)),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), number_text),
        Value::Bool(_) | Value::Null => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_whatever_they_are_wrapped_in() {
        for text in ["New York", " **new  york**.", "“New York”", "'New York'", "_New_ `York`..."] {
            assert_eq!(plain(text), "new york", "{text}");
        }
        assert_ne!(plain("NewYork"), plain("New York"));
        assert_eq!((plain("O'Hara"), plain("snake_case")), ("o'hara".into(), "snake_case".into()));
        assert_eq!(plain("..."), "");
    }

    #[test]
    fn one_number_is_read_and_several_or_none_are_not() {
        for (text, expected) in [
            ("It is **1,234.5** km", vec![1234.5]),
            ("Q42 has 7", vec![7.0]),
            ("7 = 7.0", vec![7.0]),
            ("-3e2.", vec![-300.0]),
            ("3 or 4", vec![3.0, 4.0]),
            ("1e999", vec![]),
            ("none", vec![]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn items_have_one_form() {
        let mut prefixes = PrefixTable::new();
        prefixes.insert("", "http://e/");
        let item = |text: &str, kind| item(text, kind, &prefixes);
        assert_eq!(item(":a", ItemKind::Iri), item("<http://e/a>", ItemKind::Iri));
        assert_eq!(item("http://e/a", ItemKind::Iri), Some("http://e/a".into()));
        assert_eq!(item("2.50", ItemKind::Number), item("25e-1", ItemKind::Number));
        assert_eq!(item("-0", ItemKind::Number), Some("0".into()));
        assert_eq!(
            item(r#"{"b": 1.0, "a": "X."}"#, ItemKind::Record),
            item(r#"{"a": "x", "b": 1}"#, ItemKind::Record)
        );
        assert_eq!((item("x", ItemKind::Record), item("a b", ItemKind::Number)), (None, None));
    }
}
