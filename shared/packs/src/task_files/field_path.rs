//! Paths of fields in rows of data: `a.b`, `a[0]`, `a[language=de].string`, `a[*].value`.

use serde_json::Value;

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Place(usize),
    /// The first item of a list with this value at this key.
    Item(String, String),
    /// Every item of a list.
    All,
}

/// A path to a value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldPath(Vec<Step>);

impl FieldPath {
    /// Reads a path. A key that stands in the row as a whole is taken as it is, see [`value`](Self::value).
    ///
    /// # Errors
    /// A bracket is not closed, or empty.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, mut brackets) = part.split_at(part.find('[').unwrap_or(part.len()));
            if !key.is_empty() {
                steps.push(Step::Key(key.to_owned()));
            } else if brackets.is_empty() {
                return Err(format!("`{text}` has an empty step"));
            }
            while !brackets.is_empty() {
                let inside = brackets.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                let (inside, rest) =
                    inside.ok_or_else(|| format!("`{text}` has a bracket that is not closed"))?;
                steps.push(match (inside, inside.parse(), inside.split_once('=')) {
                    ("*", ..) => Step::All,
                    (_, Ok(place), _) => Step::Place(place),
                    (_, _, Some((key, value))) => Step::Item(key.to_owned(), value.to_owned()),
                    _ => return Err(format!("`[{inside}]` is no step; use [0], [key=value] or [*]")),
                });
                brackets = rest;
            }
        }
        Ok(Self(steps))
    }

    /// The value at the path; `None` if there is nothing.
    pub(crate) fn value(&self, row: &Value) -> Option<Value> {
        // A column of a table may be called `question.en`.
        let keys: Option<Vec<&str>> = self
            .0
            .iter()
            .map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                _ => None,
            })
            .collect();
        if let Some(whole) = keys.and_then(|keys| row.get(keys.join("."))) {
            return Some(whole.clone()).filter(|value| !value.is_null());
        }
        follow(row, &self.0).filter(|value| !value.is_null())
    }
}

fn follow(value: &Value, steps: &[Step]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    match step {
        Step::Key(key) => follow(value.get(key)?, rest),
        Step::Place(place) => follow(value.get(place)?, rest),
        Step::Item(key, wanted) => {
            let has = |item: &&Value| item.get(key).is_some_and(|found| plain(found) == *wanted);
            follow(value.as_array()?.iter().find(has)?, rest)
        }
        Step::All => value.as_array()?.iter().map(|item| follow(item, rest)).collect(),
    }
}

/// A plain value as text.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The paths that a row has, for messages: keys of its tables, two levels deep.
pub(crate) fn paths_of(row: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (key, value) in row.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(inner) => paths.extend(inner.keys().map(|below| format!("{key}.{below}"))),
            None => paths.push(key.clone()),
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_tables_and_lists() {
        let row = json!({
            "id": 4, "a.b": "whole",
            "question": [{"language": "en", "string": "Who?"}, {"language": "de", "string": "Wer?"}],
            "query": {"sparql": "ASK {}"}, "values": [{"value": 1}, {"value": 2}],
        });
        let at = |path: &str| FieldPath::parse(path).unwrap().value(&row);
        assert_eq!(at("question[language=de].string"), Some(json!("Wer?")));
        assert_eq!(at("question[0].string"), Some(json!("Who?")));
        assert_eq!(at("values[*].value"), Some(json!([1, 2])));
        assert_eq!((at("query.sparql"), at("a.b")), (Some(json!("ASK {}")), Some(json!("whole"))));
        assert_eq!((at("query.none"), at("values[9]"), at("question.de")), (None, None, None));
        for wrong in ["a[", "a[x]", "a..b", ""] {
            assert!(FieldPath::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(paths_of(&json!({"id": 1, "question": {"en": ""}})), ["id", "question.en"]);
    }
}
