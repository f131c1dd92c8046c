//! Literals by their values, beside the lexical forms in which rdflib keeps them: whether a text is one of its datatype, and
//! which of two values is the smaller.

use std::cmp::Ordering;
use std::str::FromStr;

use oxrdf::Literal;
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Duration, GDay, GMonth, GMonthDay, GYear, GYearMonth, Time,
    YearMonthDuration,
};

use crate::literal::{is_numeric, local_name};

/// Whether the text of a literal is one of its datatype. Datatypes that are not known have no wrong texts.
pub fn is_well_typed(literal: &Literal) -> bool {
    let text = literal.value();
    let Some(local) = local_name(literal.datatype().as_str()) else { return true };
    match local {
        "boolean" => matches!(text, "true" | "false" | "0" | "1"),
        "decimal" => is_decimal(text),
        "double" | "float" => is_double(text),
        "dateTime" => is::<DateTime>(text),
        "dateTimeStamp" => is::<DateTime>(text) && has_timezone(text),
        "date" => is::<Date>(text),
        "time" => is::<Time>(text),
        "gYear" => is::<GYear>(text),
        "gYearMonth" => is::<GYearMonth>(text),
        "gMonth" => is::<GMonth>(text),
        "gMonthDay" => is::<GMonthDay>(text),
        "gDay" => is::<GDay>(text),
        "duration" => is::<Duration>(text),
        "yearMonthDuration" => is::<YearMonthDuration>(text),
        "dayTimeDuration" => is::<DayTimeDuration>(text),
        "hexBinary" => text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => integer_range(local).is_none_or(|(least, most)| is_integer(text, least, most)),
    }
}

fn is<T: FromStr>(text: &str) -> bool {
    T::from_str(text).is_ok()
}

fn has_timezone(text: &str) -> bool {
    let time = text.split_once('T').map_or("", |(_, time)| time);
    time.contains(['Z', '+', '-'])
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_decimal(text: &str) -> bool {
    let (whole, part) = unsigned(text).split_once('.').unwrap_or((unsigned(text), ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty())
}

fn is_double(text: &str) -> bool {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    matches!(text, "INF" | "+INF" | "-INF" | "NaN")
        || is_decimal(number)
            && !unsigned(exponent).is_empty()
            && unsigned(exponent).bytes().all(|byte| byte.is_ascii_digit())
}

/// The least and the greatest value of a type of whole numbers; `None` for a bound that it does not have.
pub(crate) type IntegerRange = (Option<i128>, Option<i128>);

/// The range of an integer type of XML Schema, all of which rdflib reads as Python integers; `None` for other types.
pub(crate) fn integer_range(local: &str) -> Option<IntegerRange> {
    Some(match local {
        "integer" => (None, None),
        "nonNegativeInteger" => (Some(0), None),
        "positiveInteger" => (Some(1), None),
        "nonPositiveInteger" => (None, Some(0)),
        "negativeInteger" => (None, Some(-1)),
        "byte" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "short" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "long" => (Some(i64::MIN.into()), Some(i64::MAX.into())),
        "unsignedByte" => (Some(0), Some(u8::MAX.into())),
        "unsignedShort" => (Some(0), Some(u16::MAX.into())),
        "unsignedInt" => (Some(0), Some(u32::MAX.into())),
        "unsignedLong" => (Some(0), Some(u64::MAX.into())),
        _ => return None,
    })
}

fn is_integer(text: &str, least: Option<i128>, most: Option<i128>) -> bool {
    let digits = unsigned(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    match text.parse::<i128>() {
        Ok(value) => least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most),
        // Beyond all bounds: it is of a type without one on its side.
        Err(_) if text.starts_with('-') => least.is_none(),
        Err(_) => most.is_none(),
    }
}

/// Which of two literals has the smaller value; `None` if their values cannot be compared, or one has none.
pub fn compare(left: &Literal, right: &Literal) -> Option<Ordering> {
    if left.language().is_some()
        || right.language().is_some()
        || !is_well_typed(left)
        || !is_well_typed(right)
    {
        return None;
    }
    let (of_left, of_right) = (left.datatype(), right.datatype());
    let (a, b) = (left.value(), right.value());
    if is_numeric(of_left.as_str()) && is_numeric(of_right.as_str()) {
        return match (Decimal::from_str(a), Decimal::from_str(b)) {
            (Ok(a), Ok(b)) => a.partial_cmp(&b),
            _ => double(a)?.partial_cmp(&double(b)?),
        };
    }
    let (local, other) = (local_name(of_left.as_str())?, local_name(of_right.as_str())?);
    let moments = ["dateTime", "dateTimeStamp"];
    if moments.contains(&local) && moments.contains(&other) {
        return by::<DateTime>(a, b);
    }
    let durations = ["duration", "yearMonthDuration", "dayTimeDuration"];
    if durations.contains(&local) && durations.contains(&other) {
        return by::<Duration>(a, b);
    }
    if local != other {
        return None;
    }
    match local {
        "string" => Some(a.cmp(b)),
        "boolean" => Some(matches!(a, "true" | "1").cmp(&matches!(b, "true" | "1"))),
        "date" => by::<Date>(a, b),
        "time" => by::<Time>(a, b),
        "gYear" => by::<GYear>(a, b),
        "gYearMonth" => by::<GYearMonth>(a, b),
        "gMonth" => by::<GMonth>(a, b),
        "gMonthDay" => by::<GMonthDay>(a, b),
        "gDay" => by::<GDay>(a, b),
        _ => None,
    }
}

fn by<T: FromStr + PartialOrd>(left: &str, right: &str) -> Option<Ordering> {
    T::from_str(left).ok()?.partial_cmp(&T::from_str(right).ok()?)
}

fn double(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use oxrdf::NamedNode;

    use super::*;

    fn literal(text: &str, local: &str) -> Literal {
        let datatype = NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{local}"));
        Literal::new_typed_literal(text, datatype)
    }

    #[test]
    fn texts_are_of_their_datatype_or_not() {
        for (text, local, expected) in [
            ("in May", "date", false),
            ("2031-02-30", "date", false),
            ("2031-05-02", "date", true),
            ("2031-05-02T00:00:00", "dateTimeStamp", false),
            ("2031-05-02T00:00:00Z", "dateTimeStamp", true),
            ("1.", "decimal", true),
            (".", "decimal", false),
            ("1e3", "decimal", false),
            ("1e3", "double", true),
            ("inf", "double", false),
            ("300", "byte", false),
            ("-1", "unsignedByte", false),
            ("99999999999999999999999999999999999999999", "integer", true),
            ("99999999999999999999999999999999999999999", "negativeInteger", false),
            ("-99999999999999999999999999999999999999999", "negativeInteger", true),
            ("yes", "boolean", false),
            ("anything", "string", true),
            ("anything", "unknown", true),
        ] {
            assert_eq!(is_well_typed(&literal(text, local)), expected, "{text} {local}");
        }
        let other = Literal::new_typed_literal("x", NamedNode::new_unchecked("http://e/t"));
        assert!(is_well_typed(&other));
    }

    #[test]
    fn values_are_compared_across_datatypes_where_they_can_be() {
        let order = |a: (&str, &str), b: (&str, &str)| compare(&literal(a.0, a.1), &literal(b.0, b.1));
        assert_eq!(order(("2.50", "decimal"), ("2.5", "double")), Some(Ordering::Equal));
        assert_eq!(order(("10", "integer"), ("9", "integer")), Some(Ordering::Greater));
        assert_eq!(order(("NaN", "double"), ("1", "integer")), None);
        assert_eq!(order(("2031-05-02", "date"), ("2031-05-03", "date")), Some(Ordering::Less));
        assert_eq!(order(("2031-05-02", "date"), ("2031-05-03T00:00:00", "dateTime")), None);
        let unclear = (("2031-05-02T10:00:00", "dateTime"), ("2031-05-02T10:00:00Z", "dateTime"));
        assert_eq!(order(unclear.0, unclear.1), None, "without a time zone it may be before or after");
        assert_eq!(order(("a", "string"), ("b", "string")), Some(Ordering::Less));
        assert_eq!(order(("a", "string"), ("1", "integer")), None);
        assert_eq!(order(("oops", "integer"), ("1", "integer")), None);
    }
}
