//! Stores once what many dialogues share: names of cases, reasons and scores.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::Scores;

/// The scores of all dialogues. Those of a task have one of few sets of names, so only the values are stored for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    /// By the hash of the names, so that the names are not joined for every dialogue.
    numbers: HashMap<u64, Vec<u32>>,
    shapes: Vec<Vec<String>>,
    values: Vec<f64>,
}

/// Where the scores of a dialogue are: the number of its names, and the place of its first value. The default has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScorePlace {
    shape: u32,
    first: u32,
}

impl Default for ScorePlace {
    fn default() -> Self {
        Self { shape: u32::MAX, first: 0 }
    }
}

impl Shapes {
    pub(super) fn take(&mut self, scores: &Scores) -> ScorePlace {
        let mut hasher = DefaultHasher::new();
        let first = self.values.len();
        for (group, name, value) in leaves(scores) {
            (group, name).hash(&mut hasher);
            self.values.push(value);
        }
        let count = self.values.len() - first;
        let alike = self.numbers.entry(hasher.finish()).or_default();
        let same = |shape: &&u32| {
            let names = self.shapes.get(**shape as usize).map_or(&[][..], Vec::as_slice);
            let mut pairs = names.iter().zip(leaves(scores));
            names.len() == count && pairs.all(|(known, (group, name, _))| is_name(known, group, name))
        };
        let shape = alike.iter().find(same).copied().unwrap_or_else(|| {
            let number = self.shapes.len() as u32;
            alike.push(number);
            let name = |(group, name, _): (Option<&str>, &str, f64)| match group {
                Some(group) => format!("{group}.{name}"),
                None => name.to_owned(),
            };
            self.shapes.push(leaves(scores).map(name).collect());
            number
        });
        ScorePlace { shape, first: first as u32 }
    }

    fn names(&self, place: ScorePlace) -> &[String] {
        self.shapes.get(place.shape as usize).map_or(&[], Vec::as_slice)
    }

    /// Names and values.
    pub(super) fn of(&self, place: ScorePlace) -> impl Iterator<Item = (&str, f64)> {
        let values = self.values.iter().skip(place.first as usize).copied();
        self.names(place).iter().map(String::as_str).zip(values)
    }

    pub(super) fn find(&self, place: ScorePlace, name: &str) -> Option<f64> {
        let at = self.names(place).iter().position(|known| known == name)?;
        self.values.get(place.first as usize + at).copied()
    }
}

/// Group, name and value of every score that is a number.
pub(crate) fn leaves(scores: &Scores) -> impl Iterator<Item = (Option<&str>, &str, f64)> {
    scores.iter().flat_map(|(name, value)| {
        let group = value.as_object();
        let single = group.is_none().then(|| value.as_f64()).flatten();
        let of_group = group
            .into_iter()
            .flatten()
            .filter_map(move |(score, value)| Some((Some(name.as_str()), score.as_str(), value.as_f64()?)));
        single.map(|value| (None, name.as_str(), value)).into_iter().chain(of_group)
    })
}

/// Whether a name is that of this score in this group.
fn is_name(known: &str, group: Option<&str>, name: &str) -> bool {
    match group {
        None => known == name,
        Some(group) => {
            let rest = known.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
            rest == Some(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scores(value: serde_json::Value) -> Scores {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn equal_names_are_one_shape_and_other_names_another() {
        let mut shapes = Shapes::default();
        let mut take = |scores_given| {
            let place = shapes.take(&scores(scores_given));
            (place.shape, shapes.of(place).map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>())
        };
        let first = take(json!({ "f1": 1, "max": { "f1": 0.5 }, "said": "text" }));
        assert_eq!(first.1, [("f1".to_owned(), 1.0), ("max.f1".to_owned(), 0.5)]);
        let again = take(json!({ "f1": 0, "max": { "f1": 0 }, "said": 7 }));
        assert_ne!(again.0, first.0, "a number where there was a text");
        assert_eq!(take(json!({ "f1": 0, "max": { "f1": 0 } })).0, first.0);
        assert_eq!(
            take(json!({ "f1": 0, "max.f1": 1 })).1,
            [("f1".to_owned(), 0.0), ("max.f1".to_owned(), 1.0)]
        );
        assert_eq!(shapes.of(ScorePlace::default()).count(), 0);
    }
}
