//! The check `schema`: a subset of JSON Schema 2020-12. What is not in the subset is refused and never passed over, because a
//! keyword that is not looked at would make wrong answers right.

use serde_json::{Map, Number, Value};

use crate::exercise::CaseError;

/// Deepest nesting of schemas.
const NESTING_MAX: usize = 64;

/// The types of values.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// The keywords that say nothing about values.
const REMARKS: [&str; 5] = ["$schema", "$id", "title", "description", "$comment"];

/// A schema that is ready to judge.
#[derive(Debug, Default)]
pub(super) struct JsonSchema {
    types: Vec<String>,
    properties: Vec<(String, JsonSchema)>,
    required: Vec<String>,
    /// Whether properties without a schema are allowed.
    additional: bool,
    items: Option<Box<JsonSchema>>,
    /// Values one of which it must be.
    values: Option<Vec<Value>>,
    /// The keywords that bound the items of a list or the characters of a text, with their bounds.
    counts: Vec<(String, u64)>,
    least: Option<f64>,
    most: Option<f64>,
}

impl JsonSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// It is no JSON, or has what is not in the subset.
    pub(super) fn read(text: &str) -> Result<Self, CaseError> {
        let wrong = |message: String| CaseError::Reference { field: "schema", message };
        let value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        Self::of(&value, 0).map_err(wrong)
    }

    fn of(value: &Value, depth: usize) -> Result<Self, String> {
        let mut schema = Self { additional: true, ..Self::default() };
        let table = match value {
            Value::Bool(true) => return Ok(schema),
            Value::Object(table) if depth <= NESTING_MAX => table,
            Value::Object(_) => return Err(format!("schemas nest deeper than {NESTING_MAX} levels")),
            _ => return Err("a schema is an object".to_owned()),
        };
        for (keyword, value) in table {
            schema.take(keyword, value, depth).map_err(|message| match message {
                Some(message) => message,
                None => format!("`{keyword}` cannot have this value"),
            })?;
        }
        Ok(schema)
    }

    /// Takes a keyword; an error without a message is about its value.
    fn take(&mut self, keyword: &str, value: &Value, depth: usize) -> Result<(), Option<String>> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let inner = |value: &Value| Self::of(value, depth + 1).map_err(Some);
        match keyword {
            "type" => {
                let one = value.as_str().map(|name| vec![name.to_owned()]);
                self.types = one.or_else(|| texts(value)).ok_or(None)?;
                if !self.types.iter().all(|name| TYPES.contains(&name.as_str())) {
                    return Err(None);
                }
            }
            "properties" => {
                let table: &Map<String, Value> = value.as_object().ok_or(None)?;
                for (name, value) in table {
                    self.properties.push((name.clone(), inner(value)?));
                }
            }
            "required" => self.required = texts(value).ok_or(None)?,
            "additionalProperties" => self.additional = value.as_bool().ok_or(None)?,
            "items" => self.items = Some(Box::new(inner(value)?)),
            "enum" => self.values = Some(value.as_array().ok_or(None)?.clone()),
            "const" => self.values = Some(vec![value.clone()]),
            "minItems" | "maxItems" | "minLength" | "maxLength" => {
                self.counts.push((keyword.to_owned(), value.as_u64().ok_or(None)?));
            }
            "minimum" => self.least = Some(value.as_f64().ok_or(None)?),
            "maximum" => self.most = Some(value.as_f64().ok_or(None)?),
            remark if REMARKS.contains(&remark) => {}
            other => return Err(Some(format!("version 1 has no `{other}` in schemas"))),
        }
        Ok(())
    }

    /// Why a value is not of this schema: the keyword, and where; `None` if it is.
    pub(super) fn violated_by(&self, value: &Value) -> Option<String> {
        self.at(value, String::new())
    }

    fn at(&self, value: &Value, place: String) -> Option<String> {
        let says =
            |keyword: &str| Some(format!("{keyword} at {}", if place.is_empty() { "/" } else { &place }));
        if !self.types.is_empty() && !self.types.iter().any(|name| is_of_type(value, name)) {
            return says("type");
        }
        if self.values.as_ref().is_some_and(|values| !values.iter().any(|one| equal(one, value))) {
            return says("enum");
        }
        if let Some(number) = value.as_f64() {
            if self.least.is_some_and(|least| number < least) {
                return says("minimum");
            }
            if self.most.is_some_and(|most| number > most) {
                return says("maximum");
            }
        }
        for (keyword, bound) in &self.counts {
            let count = match value {
                Value::Array(items) if keyword.ends_with("Items") => items.len() as u64,
                Value::String(text) if keyword.ends_with("Length") => text.chars().count() as u64,
                _ => continue,
            };
            let is_broken = if keyword.starts_with("min") { count < *bound } else { count > *bound };
            if is_broken {
                return says(keyword);
            }
        }
        if let (Some(inner), Value::Array(items)) = (&self.items, value) {
            let mut items = items.iter().enumerate();
            if let Some(found) = items.find_map(|(number, item)| inner.at(item, format!("{place}/{number}")))
            {
                return Some(found);
            }
        }
        let Value::Object(table) = value else { return None };
        if !self.required.iter().all(|name| table.contains_key(name)) {
            return says("required");
        }
        if !self.additional
            && !table.keys().all(|name| self.properties.iter().any(|(known, _)| known == name))
        {
            return says("additionalProperties");
        }
        let mut properties =
            self.properties.iter().filter_map(|(name, inner)| Some((name, inner, table.get(name)?)));
        properties.find_map(|(name, inner, value)| inner.at(value, format!("{place}/{name}")))
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    let is_whole = |number: &Number| {
        number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
    };
    match (name, value) {
        ("integer", Value::Number(number)) => is_whole(number),
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_)) => true,
        _ => false,
    }
}

/// Whether two values are the same; `1` and `1.0` are.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_of_a_schema_or_says_where_it_is_not() {
        let schema = json!({
            "type": "object", "required": ["name", "age"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 5},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "tags": {"type": "array", "items": {"enum": ["a", "b", 1]}, "minItems": 1, "maxItems": 2},
                "kind": {"const": {"x": [1.0]}}, "any": true,
            },
        });
        let schema = JsonSchema::read(&schema.to_string()).unwrap();
        for (value, expected) in [
            (json!({"name": "Ada", "age": 36, "tags": ["a", 1.0], "kind": {"x": [1]}, "any": null}), None),
            (json!({"name": "Ada", "age": 36.0}), None),
            (json!([]), Some("type at /")),
            (json!({"name": "Ada"}), Some("required at /")),
            (json!({"name": "", "age": 1}), Some("minLength at /name")),
            (json!({"name": "Adaada", "age": 1}), Some("maxLength at /name")),
            (json!({"name": "Ada", "age": 1.5}), Some("type at /age")),
            (json!({"name": "Ada", "age": -1}), Some("minimum at /age")),
            (json!({"name": "Ada", "age": 151}), Some("maximum at /age")),
            (json!({"name": "Ada", "age": 1, "tags": []}), Some("minItems at /tags")),
            (json!({"name": "Ada", "age": 1, "tags": ["a", "a", "a"]}), Some("maxItems at /tags")),
            (json!({"name": "Ada", "age": 1, "tags": ["c"]}), Some("enum at /tags/0")),
            (json!({"name": "Ada", "age": 1, "kind": {"x": [2]}}), Some("enum at /kind")),
            (json!({"name": "Ada", "age": 1, "more": 1}), Some("additionalProperties at /")),
        ] {
            assert_eq!(schema.violated_by(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_in_the_subset_is_refused() {
        let deep = format!("{}{{}}{}", "{\"items\":".repeat(100), "}".repeat(100));
        for (schema, expected) in [
            ("{\"$ref\": \"#/x\"}", "no `$ref`"),
            ("{\"pattern\": \"a\"}", "no `pattern`"),
            ("{\"type\": \"text\"}", "`type`"),
            ("{\"minItems\": -1}", "`minItems`"),
            ("{\"additionalProperties\": {}}", "`additionalProperties`"),
            ("[]", "is an object"),
            ("{", "EOF"),
            (deep.as_str(), "64 levels"),
        ] {
            let error = JsonSchema::read(schema).unwrap_err().to_string();
            assert!(error.contains(expected), "{schema}: {error}");
        }
    }
}
