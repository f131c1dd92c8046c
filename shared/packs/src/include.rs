//! Texts in separate files: `{ file = "documents/shop.ttl" }` anywhere in a task stands for the text of that entry.
//! Documents, queries and prompts stay readable and are written once, however many cases use them.

use serde_json::Value;

use crate::error::PackError;
use crate::parts::Parts;

/// Replaces every table that has `file` as its only key by the text of that entry.
///
/// # Errors
/// There is no such entry, or it is not a text.
pub(crate) fn resolve(value: &mut Value, parts: &Parts) -> Result<(), PackError> {
    match value {
        Value::Object(table) => {
            let only = if table.len() == 1 { table.get("file").and_then(Value::as_str) } else { None };
            if let Some(path) = only {
                *value = parts.text(path)?.into();
                return Ok(());
            }
            table.values_mut().try_for_each(|inner| resolve(inner, parts))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|inner| resolve(inner, parts)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn file_tables_become_texts_at_any_depth_and_other_tables_stay() {
        let mut parts = Parts::new("p");
        parts.insert("a.ttl", *b"text\n").unwrap();
        let mut value =
            json!({"x": [{"file": "a.ttl"}], "y": {"file": "a.ttl", "more": 1}, "z": {"file": 3}});
        resolve(&mut value, &parts).unwrap();
        assert_eq!(value, json!({"x": ["text\n"], "y": {"file": "a.ttl", "more": 1}, "z": {"file": 3}}));
        let error = resolve(&mut json!({"file": "b.ttl"}), &parts).unwrap_err();
        assert!(matches!(&error, PackError::MissingEntry { entry, .. } if entry == "b.ttl"), "{error}");
    }
}
