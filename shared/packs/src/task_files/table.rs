//! Tables of a task file: checked against their keys first, then read.

use std::ops::{Range, RangeInclusive};

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::task_files::mistake::{MistakeList, hint};

/// A text of the file with its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) place: Range<usize>,
}

/// A table whose keys were checked; what it lacks is taken from a table of the same keys, that of a preset.
#[derive(Clone, Debug)]
pub(crate) struct FileSection<'a> {
    table: &'a DeTable<'a>,
    preset: Option<&'a DeTable<'a>>,
    /// Where it begins.
    pub(crate) place: Range<usize>,
}

impl<'a> FileSection<'a> {
    pub(crate) fn new(table: &'a DeTable<'a>, place: Range<usize>) -> Self {
        Self { table, preset: None, place }
    }

    pub(crate) fn completed_from(self, preset: &'a DeTable<'a>) -> Self {
        Self { preset: Some(preset), ..self }
    }

    /// The value of a key. One that a preset gives has the place of the section.
    fn get(&self, key: &str) -> Option<(&'a DeValue<'a>, Range<usize>)> {
        if let Some(value) = self.table.get(key) {
            return Some((value.get_ref(), value.span()));
        }
        let value = self.preset?.get(key)?;
        Some((value.get_ref(), self.place.clone()))
    }

    /// Whether the file itself gives a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The place of a key in the file, or else of the section.
    pub(crate) fn place_of(&self, key: &str) -> Range<usize> {
        self.get(key).map_or_else(|| self.place.clone(), |(_, place)| place)
    }

    pub(crate) fn text(&self, key: &str) -> Option<Placed<&'a str>> {
        let (value, place) = self.get(key)?;
        Some(Placed { value: value.as_str()?, place })
    }

    pub(crate) fn number(&self, key: &str) -> Option<Placed<f64>> {
        let (value, place) = self.get(key)?;
        Some(Placed { value: number(value)?, place })
    }

    pub(crate) fn whole(&self, key: &str) -> Option<Placed<usize>> {
        let (value, place) = self.get(key)?;
        Some(Placed { value: whole(value)?, place })
    }

    /// A whole number that must be in a range. One that is not goes to the list.
    pub(crate) fn whole_within(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
        mistakes: &MistakeList<'_>,
    ) -> Option<usize> {
        let found = self.whole(key)?;
        if !range.contains(&found.value) {
            let (least, most) = range.into_inner();
            let message = format!("`{key}` is {}; it must be between {least} and {most}", found.value);
            mistakes.at(&found.place, message);
        }
        Some(found.value)
    }

    /// A number from 0 to 1. One that is not goes to the list.
    pub(crate) fn share(&self, key: &str, mistakes: &MistakeList<'_>) -> Option<f64> {
        let found = self.number(key)?;
        if found.value > 1.0 {
            mistakes.at(&found.place, format!("`{key}` is {}; it must be between 0 and 1", found.value));
        }
        Some(found.value)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(|(value, _)| value.as_bool()).unwrap_or(false)
    }

    /// A flag that is on unless it is given.
    pub(crate) fn flag_or_true(&self, key: &str) -> bool {
        self.get(key).and_then(|(value, _)| value.as_bool()).unwrap_or(true)
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<Placed<&'a str>> {
        let list = self.get(key).and_then(|(value, _)| value.as_array());
        let texts = list.into_iter().flat_map(|items: &DeArray<'_>| items.iter());
        texts
            .filter_map(|text| Some(Placed { value: text.get_ref().as_str()?, place: text.span() }))
            .collect()
    }

    pub(crate) fn section(&self, key: &str) -> Option<FileSection<'a>> {
        let (value, place) = self.get(key)?;
        Some(FileSection::new(value.as_table()?, place))
    }

    pub(crate) fn sections(&self, key: &str) -> Vec<FileSection<'a>> {
        let Some((value, outer)) = self.get(key) else { return Vec::new() };
        let of_file = self.has(key);
        let list = value.as_array().into_iter().flat_map(|items: &DeArray<'_>| items.iter());
        let place = |span: Range<usize>| if of_file { span } else { outer.clone() };
        list.filter_map(|item| Some(FileSection::new(item.get_ref().as_table()?, place(item.span()))))
            .collect()
    }

    /// Names and values of a table with free names, in the order of the file.
    pub(crate) fn by_name(&self, key: &str) -> Vec<(&'a str, Placed<&'a DeValue<'a>>)> {
        let table = self.get(key).and_then(|(value, _)| value.as_table());
        let entries = table.into_iter().flatten();
        entries
            .map(|(name, value)| {
                (name.get_ref().as_ref(), Placed { value: value.get_ref(), place: name.span() })
            })
            .collect()
    }

    pub(crate) fn texts_by_name(&self, key: &str) -> Vec<(&'a str, Placed<&'a str>)> {
        let texts = self.by_name(key).into_iter();
        texts
            .filter_map(|(name, text)| {
                Some((name, Placed { value: text.value.as_str()?, place: text.place }))
            })
            .collect()
    }

    /// All of it as a row of data.
    pub(crate) fn row(&self) -> Map<String, Value> {
        row(self.table)
    }
}

fn row(table: &DeTable<'_>) -> Map<String, Value> {
    table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref()))).collect()
}

/// A TOML value as JSON; times become texts.
pub(crate) fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(float) => {
            float.as_str().parse().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(row(table)),
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    json(value).as_f64().filter(|number| number.is_finite())
}

fn whole(value: &DeValue<'_>) -> Option<usize> {
    let DeValue::Integer(integer) = value else { return None };
    usize::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Checks that a table has the keys of its schema only, and that each holds what it may. `whose` names the table in messages.
pub(crate) fn check(table: &DeTable<'_>, schema: &Value, whose: &str, mistakes: &MistakeList<'_>) {
    let Some(keys) = schema["properties"].as_object() else { return };
    for (name, value) in table {
        match keys.get(name.get_ref().as_ref()) {
            Some(schema) => check_value(name.get_ref(), value, schema, whose, mistakes),
            None => {
                let near = hint(name.get_ref(), keys.keys().map(String::as_str));
                mistakes.at(&name.span(), format!("unknown key `{}` in {whose}{near}", name.get_ref()));
            }
        }
    }
}

fn check_value(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    schema: &Value,
    whose: &str,
    mistakes: &MistakeList<'_>,
) {
    let (place, value) = (value.span(), value.get_ref());
    let wrong = |expected: &str| {
        mistakes.at(&place, format!("`{name}` is {}; {expected} is expected", kind_of(value)));
    };
    let within = format!("[{}]", inner(whose, name));
    match schema["type"].as_str().unwrap_or_default() {
        "string" => match (value.as_str(), schema["enum"].as_array()) {
            (None, _) => wrong("a text"),
            (Some(text), Some(words)) if !words.iter().any(|word| word == text) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                let near = hint(text, words.iter().copied());
                mistakes.at(&place, format!("`{name}` is `{text}`; it may be: {}{near}", words.join(", ")));
            }
            _ => {}
        },
        "number" if number(value).is_none_or(|number| number < 0.0) => wrong("a number from 0"),
        "integer" if whole(value).is_none() => wrong("a whole number from 0"),
        "boolean" if !value.is_bool() => wrong("true or false"),
        "array" if schema["items"]["type"] == "string" => {
            let are_texts = |items: &DeArray<'_>| items.iter().all(|item| item.get_ref().is_str());
            if !value.as_array().is_some_and(are_texts) {
                wrong("a list of texts");
            }
        }
        "array" => {
            let items = value.as_array().into_iter().flat_map(|items: &DeArray<'_>| items.iter());
            let tables: Vec<Option<&DeTable<'_>>> = items.map(|item| item.get_ref().as_table()).collect();
            if !value.is_array() || tables.iter().any(Option::is_none) {
                wrong("a list of tables");
            }
            for table in tables.into_iter().flatten() {
                check(table, &schema["items"], &format!("[{within}]"), mistakes);
            }
        }
        "object" => match (value.as_table(), plain_values(&schema["additionalProperties"])) {
            (Some(table), Some((_, holds))) if table.iter().all(|(_, value)| holds(value.get_ref())) => {}
            (_, Some((expected, _))) => wrong(expected),
            (None, None) => wrong("a table"),
            (Some(table), None) if schema["properties"].is_object() => {
                check(table, schema, &within, mistakes);
            }
            (Some(table), None) => {
                for (key, value) in table {
                    let whose = format!("[{name}.{}]", key.get_ref());
                    match value.get_ref().as_table() {
                        Some(table) => check(table, &schema["additionalProperties"], &whose, mistakes),
                        None => mistakes.at(
                            &value.span(),
                            format!("{whose} is {}; a table is expected", kind_of(value.get_ref())),
                        ),
                    }
                }
            }
        },
        _ => {}
    }
}

/// Whether a value is one that a table takes.
type IsTaken = fn(&DeValue<'_>) -> bool;

/// What a table with free names holds if not tables, in words and as a test of a value.
fn plain_values(schema: &Value) -> Option<(&'static str, IsTaken)> {
    match &schema["type"] {
        Value::String(kind) if kind == "string" => {
            Some(("a table of texts", |value| matches!(value, DeValue::String(_))))
        }
        Value::String(kind) if kind == "number" => {
            Some(("a table of numbers", |value| number(value).is_some()))
        }
        Value::Array(_) => Some(("a table of plain values", |value| !value.is_table() && !value.is_array())),
        _ => None,
    }
}

/// The name of a table within another one.
fn inner(whose: &str, name: &str) -> String {
    let outer = whose.trim_matches(['[', ']']);
    if whose.starts_with('[') { format!("{outer}.{name}") } else { name.to_owned() }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
