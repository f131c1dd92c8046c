//! What stands in the place of a text that may not be shown: its length in characters, in one spelling for people and one for
//! programs.

use serde_json::{Value, json};

use crate::{Outcome, Record};

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

/// How to write prompts, answers and everything that quotes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Unchanged.
    Keep,
    /// Replaced by their length: for runs on protected packs.
    Redact,
}

/// Replaces every text that comes from an exercise or a model by its length in code points.
pub fn redact(record: &mut Record) {
    record.system.iter_mut().for_each(redact_text);
    for round in &mut record.rounds {
        redact_text(&mut round.prompt.text);
        redact_text(&mut round.answer.text);
        if let Some(reasoning) = &mut round.answer.reasoning {
            redact_text(reasoning);
        }
        round.failed_calls.iter_mut().for_each(|call| redact_text(&mut call.message));
    }
    record.failed_calls.iter_mut().for_each(|call| redact_text(&mut call.message));
    match &mut record.outcome {
        // Infos quote answers, queries and reference results.
        Outcome::Scored { infos, .. } => infos.values_mut().for_each(redact_value),
        Outcome::Unscored { infos, message, .. } => {
            infos.values_mut().for_each(redact_value);
            redact_text(message);
        }
        Outcome::Failed { message, .. } => redact_text(message),
    }
}

/// Replaces a text by its length in code points.
pub fn redact_text(text: &mut String) {
    *text = redacted(text);
}

/// Replaces every text in a value by its length in code points.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(fields) => fields.values_mut().for_each(redact_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
