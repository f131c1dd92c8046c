//! Tables of a task file: checked against their keys first, then read.

use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::de::{DeArray, DeTable, DeValue};

use crate::keys::{Key, Shape};
use crate::mistake::{MistakeList, hint};

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

fn is_text(value: &DeValue<'_>) -> bool {
    value.is_str()
}

fn whole(value: &DeValue<'_>) -> Option<usize> {
    let DeValue::Integer(integer) = value else { return None };
    usize::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Checks that a table has known keys only, and that each holds what it may. `whose` names the table in messages.
pub(crate) fn check(table: &DeTable<'_>, keys: &[Key], whose: &str, mistakes: &MistakeList<'_>) {
    for (name, value) in table {
        let Some(key) = keys.iter().find(|key| key.name == name.get_ref().as_ref()) else {
            let near = hint(name.get_ref(), keys.iter().map(|key| key.name));
            mistakes.at(&name.span(), format!("unknown key `{}` in {whose}{near}", name.get_ref()));
            continue;
        };
        check_value(value.get_ref(), &value.span(), key, whose, mistakes);
    }
}

fn check_value(
    value: &DeValue<'_>,
    place: &Range<usize>,
    key: &Key,
    whose: &str,
    mistakes: &MistakeList<'_>,
) {
    let wrong = |expected: &str| {
        mistakes.at(place, format!("`{}` is {}; {expected} is expected", key.name, kind_of(value)));
    };
    let texts = |value: &DeValue<'_>| {
        value.as_array().is_some_and(|items| items.iter().all(|item| item.get_ref().is_str()))
    };
    let by_name = |holds: fn(&DeValue<'_>) -> bool| {
        value.as_table().is_some_and(|table| table.iter().all(|(_, value)| holds(value.get_ref())))
    };
    let within = format!("[{}]", inner(whose, key.name));
    match key.shape {
        Shape::Text if !value.is_str() => wrong("a text"),
        Shape::Word(words) => match value.as_str() {
            None => wrong("a text"),
            Some(text) if !words.contains(&text) => {
                let near = hint(text, words.iter().copied());
                mistakes
                    .at(place, format!("`{}` is `{text}`; it may be: {}{near}", key.name, words.join(", ")));
            }
            Some(_) => {}
        },
        Shape::Number if number(value).is_none_or(|number| number < 0.0) => wrong("a number from 0"),
        Shape::Whole if whole(value).is_none() => wrong("a whole number from 0"),
        Shape::Flag if !value.is_bool() => wrong("true or false"),
        Shape::Texts if !texts(value) => wrong("a list of texts"),
        Shape::Table(keys) => match value.as_table() {
            Some(table) => check(table, keys, &within, mistakes),
            None => wrong("a table"),
        },
        Shape::Tables(keys) => {
            each_table(value, &wrong, |table| check(table, keys, &format!("[{within}]"), mistakes));
        }
        Shape::Rows => each_table(value, &wrong, |_| {}),
        Shape::TextByName if !by_name(is_text) => wrong("a table of texts"),
        Shape::NumberByName if !by_name(|value| number(value).is_some()) => wrong("a table of numbers"),
        Shape::ValueByName if !by_name(|value| !value.is_table() && !value.is_array()) => {
            wrong("a table of plain values");
        }
        Shape::TableByName(keys) => match value.as_table() {
            None => wrong("a table"),
            Some(table) => {
                for (name, value) in table {
                    let whose = format!("[{}.{}]", key.name, name.get_ref());
                    match value.get_ref().as_table() {
                        Some(table) => check(table, keys, &whose, mistakes),
                        None => mistakes.at(
                            &value.span(),
                            format!("{whose} is {}; a table is expected", kind_of(value.get_ref())),
                        ),
                    }
                }
            }
        },
        Shape::Text
        | Shape::Number
        | Shape::Whole
        | Shape::Flag
        | Shape::Texts
        | Shape::TextByName
        | Shape::NumberByName
        | Shape::ValueByName => {}
    }
}

/// The name of a table within another one.
fn inner(whose: &str, name: &str) -> String {
    let outer = whose.trim_matches(['[', ']']);
    if whose.starts_with('[') { format!("{outer}.{name}") } else { name.to_owned() }
}

fn each_table(value: &DeValue<'_>, wrong: &dyn Fn(&str), mut visit: impl FnMut(&DeTable<'_>)) {
    let Some(items) = value.as_array() else { return wrong("a list of tables") };
    for item in items {
        match item.get_ref().as_table() {
            Some(table) => visit(table),
            None => return wrong("a list of tables"),
        }
    }
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
