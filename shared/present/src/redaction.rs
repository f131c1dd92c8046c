//! What stands in the place of a text that may not be shown: its length in characters, in one spelling for people and one for
//! programs.

use serde_json::{Value, json};

/// A text as people see it: `[12 characters]`.
pub fn redacted(text: &str) -> String {
    format!("[{} characters]", text.chars().count())
}

/// Whether [`redacted`] made this text.
pub fn is_redacted(text: &str) -> bool {
    let number = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(" characters]"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// A value as programs see it, every text as `{"redacted_chars": 12}`.
pub fn redacted_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "redacted_chars": text.chars().count() }),
        Value::Array(items) => items.iter().map(redacted_value).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), redacted_value(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_count_characters_and_hold_no_text() {
        assert_eq!(redacted("Zoë"), "[3 characters]");
        assert!(is_redacted(&redacted("any")) && !is_redacted("[some characters]"));
        let value = json!({ "a": ["Zoë", 1, null], "b": true });
        assert_eq!(redacted_value(&value), json!({ "a": [{ "redacted_chars": 3 }, 1, null], "b": true }));
    }
}
