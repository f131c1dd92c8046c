//! Replaces the texts of protected runs by their lengths in exports.

use domain::{Outcome, Record};
use present::redaction::redacted;
use serde_json::Value;

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
