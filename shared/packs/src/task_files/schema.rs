//! The JSON Schema of task files (draft 7): what each key may hold and what it is for. Editors complete and check files by it, and
//! reading refuses by it, so both agree.

use std::sync::LazyLock;

use serde_json::Value;

/// The schema of a task file.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("schema.json")).unwrap_or_default());
    &SCHEMA
}

/// The schema of a task.
pub(crate) fn of_task() -> &'static Value {
    &schema()["properties"]["task"]["items"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema_with_its_meaning() {
        let task = of_task();
        assert_eq!(task["properties"]["rounds"]["type"], "integer");
        assert!(
            task["properties"]["check"]["items"]["properties"]["kind"]["enum"].as_array().unwrap().len() > 5
        );
        assert!(!schema().to_string().contains("oneOf"), "editors misjudge it");
        let mut tables = vec![schema()];
        while let Some(table) = tables.pop() {
            let parts = [&table["items"], &table["additionalProperties"]].into_iter();
            tables.extend(parts.filter(|part| part.is_object()));
            let Some(properties) = table["properties"].as_object() else { continue };
            assert_eq!(table["additionalProperties"], false);
            for (name, key) in properties {
                assert!(key["description"].is_string() && key["type"].is_string(), "{name}");
                tables.push(key);
            }
        }
    }
}
