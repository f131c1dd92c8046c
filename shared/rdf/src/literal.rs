//! Lexical forms of literals as rdflib, the library behind LLM-KG-Bench, writes them.

use std::borrow::Cow;

use crate::python_forms;
use crate::value::integer_range;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The name of a datatype of XML Schema.
pub(crate) fn local_name(datatype: &str) -> Option<&str> {
    datatype.strip_prefix(XSD)
}

/// A number or a truth value as text by its value, whatever its form and datatype: `2.50`, `2.5` and `25e-1` are the same. Whole
/// numbers and decimals keep all their digits. `None` for other literals.
pub fn value_text(lexical: &str, datatype: &str) -> Option<String> {
    if local_name(datatype) == Some("boolean") {
        return Some(match lexical {
            "1" => "true".to_owned(),
            "0" => "false".to_owned(),
            other => other.to_owned(),
        });
    }
    numeric_text(lexical, datatype)
}

/// [`value_text`] of numbers only.
pub fn numeric_text(lexical: &str, datatype: &str) -> Option<String> {
    if !is_numeric(datatype) {
        return None;
    }
    if lexical.contains(['e', 'E']) || datatype.ends_with("double") || datatype.ends_with("float") {
        // The sum turns a negative zero into zero.
        let value = lexical.parse::<f64>().ok().filter(|value| value.is_finite());
        return value.map(|value| (value + 0.0).to_string());
    }
    let (sign, digits) = signed(lexical);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(match part {
        "" if whole == "0" => "0".to_owned(),
        "" => format!("{sign}{whole}"),
        part => format!("{sign}{whole}.{part}"),
    })
}

/// The sign that a number is written with, a plus left out, and what follows it.
pub(crate) fn signed(number: &str) -> (&str, &str) {
    match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    }
}

/// Whether SPARQL treats a datatype as numeric.
pub fn is_numeric(datatype: &str) -> bool {
    local_name(datatype).is_some_and(|local| {
        matches!(local, "double" | "float" | "decimal") || integer_range(local).is_some()
    })
}

/// The lexical form after rdflib's normalisation: the text that Python writes for the value. Text that Python does not read
/// as its datatype, and text of any other datatype, is unchanged.
pub fn rdflib_lexical<'a>(lexical: &'a str, datatype: &str) -> Cow<'a, str> {
    let Some(local) = local_name(datatype) else { return Cow::Borrowed(lexical) };
    let written = match local {
        "double" | "float" => python_forms::without_underscores(lexical.trim())
            .and_then(|text| text.parse::<f64>().ok())
            .map(python_float),
        "boolean" => {
            // Whatever is not true is false.
            let is_true = lexical == "1" || lexical.eq_ignore_ascii_case("true");
            return Cow::Borrowed(if is_true { "true" } else { "false" });
        }
        "decimal" => python_forms::decimal(lexical),
        "dateTime" => python_forms::date_time(lexical),
        "date" => python_forms::date(lexical),
        "time" => python_forms::time(lexical),
        "duration" | "dayTimeDuration" | "yearMonthDuration" => python_forms::duration(lexical),
        "hexBinary" => {
            let is_hex =
                lexical.len().is_multiple_of(2) && lexical.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| lexical.to_ascii_lowercase())
        }
        "normalizedString" => Some(lexical.replace(['\t', '\n', '\r'], " ")),
        "token" => Some(lexical.split_whitespace().collect::<Vec<_>>().join(" ")),
        _ if integer_range(local).is_some() => return plain_integer(lexical),
        _ => None,
    };
    match written {
        Some(written) if written != lexical => Cow::Owned(written),
        _ => Cow::Borrowed(lexical),
    }
}

/// Python's `repr` of a float: the shortest digits that read back, in exponent form outside 1e-4 to 1e16.
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        // Rust writes the exponent as `e-5` and `e16`, Python as `e-05` and `e+16`.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = value.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

fn plain_integer(lexical: &str) -> Cow<'_, str> {
    let Some(trimmed) = python_forms::without_underscores(lexical.trim()) else {
        return Cow::Borrowed(lexical);
    };
    let (sign, digits) = signed(&trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(lexical);
    }
    match digits.trim_start_matches('0') {
        "" => Cow::Borrowed("0"),
        plain if sign.len() + plain.len() == lexical.len() => Cow::Borrowed(lexical),
        plain => Cow::Owned(format!("{sign}{plain}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, expected) in [
            (1200.0, "1200.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e300, "1.5e+300"),
            (-2.5e-7, "-2.5e-07"),
        ] {
            assert_eq!(python_float(value), expected);
        }
    }

    #[test]
    fn numbers_are_the_same_by_their_value() {
        for (lexical, local, expected) in [
            ("2.50", "decimal", "2.5"),
            ("2.5E0", "double", "2.5"),
            ("007", "integer", "7"),
            ("-0.0", "decimal", "0"),
            ("+.5", "decimal", "0.5"),
            ("12345678901234567890123", "integer", "12345678901234567890123"),
            ("1", "boolean", "true"),
        ] {
            assert_eq!(value_text(lexical, &format!("{XSD}{local}")).as_deref(), Some(expected), "{lexical}");
        }
        let none = |lexical, local: &str| value_text(lexical, &format!("{XSD}{local}"));
        assert_eq!((none("x", "integer"), none("5", "string"), none("inf", "double")), (None, None, None));
    }

    #[test]
    fn typed_literals_are_normalised_and_ill_typed_ones_kept() {
        let normal = |lexical, local: &str| rdflib_lexical(lexical, &format!("{XSD}{local}")).into_owned();
        assert_eq!(normal("1200", "double"), "1200.0");
        assert_eq!(normal("1.1E3", "float"), "1100.0");
        assert_eq!(normal("+007", "int"), "7");
        assert_eq!(normal("-000", "integer"), "0");
        assert_eq!(normal("1", "boolean"), "true");
        assert_eq!(normal("1.50", "decimal"), "1.50");
        assert_eq!(normal("1_000", "integer"), "1000");
        assert_eq!(normal("yes", "boolean"), "false");
        assert_eq!(normal("TRUE", "boolean"), "true");
        assert_eq!(normal("  a   b\tc ", "token"), "a b c");
        assert_eq!(normal(" a\tb", "normalizedString"), " a b");
        assert_eq!(normal("AB", "hexBinary"), "ab");
        assert_eq!(normal("2024Z", "gYear"), "2024Z");
        assert_eq!(normal("seven", "integer"), "seven");
        assert_eq!(normal("x", "double"), "x");
    }
}
