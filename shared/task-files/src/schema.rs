//! The JSON Schema of task files, for editors: made from the tables of keys, so that it says what is read.

use serde_json::{Map, Value, json};

use crate::keys::{FILE, Key, Shape};

/// The schema (draft 7) of a task file.
pub fn schema() -> Value {
    let mut schema = table(FILE);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        schema.insert("title".to_owned(), "kgfleet task file".into());
        schema.insert("required".to_owned(), json!(["task_file", "name", "task"]));
    }
    schema
}

fn table(keys: &[Key]) -> Value {
    let property = |key: &Key| {
        let mut shape = shape(key.shape);
        if let Some(shape) = shape.as_object_mut() {
            shape.insert("description".to_owned(), key.about.into());
        }
        (key.name.to_owned(), shape)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn shape(shape: Shape) -> Value {
    let by_name = |value: Value| json!({"type": "object", "additionalProperties": value});
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Number => json!({"type": "number", "minimum": 0}),
        Shape::Whole => json!({"type": "integer", "minimum": 0}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Shape::Table(keys) => table(keys),
        Shape::Tables(keys) => json!({"type": "array", "items": table(keys)}),
        Shape::TextByName => by_name(json!({"type": "string"})),
        Shape::NumberByName => by_name(json!({"type": "number"})),
        Shape::ValueByName => by_name(json!({"type": ["string", "number", "boolean"]})),
        Shape::TableByName(keys) => by_name(table(keys)),
        Shape::Rows => json!({"type": "array", "items": {"type": "object"}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema_with_its_meaning() {
        let schema = schema();
        let task = &schema["properties"]["task"]["items"];
        assert_eq!(task["properties"]["rounds"]["type"], "integer");
        assert_eq!(task["additionalProperties"], false);
        assert!(
            task["properties"]["check"]["items"]["properties"]["kind"]["enum"].as_array().unwrap().len() > 5
        );
        assert!(!schema.to_string().contains("oneOf"), "editors misjudge it");
        for key in FILE {
            assert_eq!(schema["properties"][key.name]["description"], key.about);
        }
    }
}
