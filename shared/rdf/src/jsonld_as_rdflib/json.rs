//! JSON values as Python writes them.

use serde_json::Value;

use crate::literal::python_float;

/// A value as `json.dumps` writes it: without blanks, with its keys in order.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Number(number) => plain_number(number),
        Value::Array(list) => format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(",")),
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), written(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// A value as `str` writes it.
pub(super) fn in_python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => plain_number(number),
        Value::String(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let mut quoted = String::from(quote);
            for c in text.chars() {
                match c {
                    '\n' => quoted.push_str("\\n"),
                    '\r' => quoted.push_str("\\r"),
                    '\t' => quoted.push_str("\\t"),
                    '\\' => quoted.push_str("\\\\"),
                    c if c == quote => quoted.extend(['\\', c]),
                    c => quoted.push(c),
                }
            }
            quoted.push(quote);
            quoted
        }
        Value::Array(list) => format!("[{}]", list.iter().map(in_python).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let entries = object
                .iter()
                .map(|(key, value)| format!("{}: {}", in_python(&key.as_str().into()), in_python(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn plain_number(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(double) => python_float(double),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        let value: Value =
            serde_json::from_str(r#"{"b":[1,2.0,1e30,true,null],"a":"it's \"so\"\n"}"#).unwrap();
        assert_eq!(written(&value), r#"{"a":"it's \"so\"\n","b":[1,2.0,1e+30,true,null]}"#);
        assert_eq!(in_python(&value), r#"{'b': [1, 2.0, 1e+30, True, None], 'a': 'it\'s "so"\n'}"#);
        assert_eq!(in_python(&Value::from("it's")), r#""it's""#);
    }
}
