//! Stores once what many dialogues share: names of cases, reasons and scores.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::Scores;

use super::ReportedDialogue;

/// The names of scores. Dialogues of a task have one of few sets of names, so each dialogue stores only its values.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    /// By the hash of the names, so that the names are not joined for every dialogue.
    numbers: HashMap<u64, Vec<u32>>,
    shapes: Vec<Vec<String>>,
}

impl Shapes {
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn take(&mut self, scores: &Scores) -> (u32, Box<[f64]>) {
        let mut hasher = DefaultHasher::new();
        let mut values = Vec::new();
        for (group, name, value) in leaves(scores) {
            (group, name).hash(&mut hasher);
            values.push(value);
        }
        let alike = self.numbers.entry(hasher.finish()).or_default();
        let same = |shape: &&u32| {
            let names = self.shapes.get(**shape as usize).map_or(&[][..], Vec::as_slice);
            names.len() == values.len()
                && names
                    .iter()
                    .zip(leaves(scores))
                    .all(|(known, (group, name, _))| is_name(known, group, name))
        };
        let number = alike.iter().find(same).copied().unwrap_or_else(|| {
            let number = self.shapes.len() as u32;
            alike.push(number);
            let name = |(group, name, _): (Option<&str>, &str, f64)| match group {
                Some(group) => format!("{group}.{name}"),
                None => name.to_owned(),
            };
            self.shapes.push(leaves(scores).map(name).collect());
            number
        });
        (number, values.into_boxed_slice())
    }

    pub(super) fn names(&self, shape: u32) -> &[String] {
        self.shapes.get(shape as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn find(&self, dialogue: &ReportedDialogue, name: &str) -> Option<f64> {
        let place = self.names(dialogue.shape).iter().position(|known| known == name)?;
        dialogue.values.get(place).copied()
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
        let first = shapes.take(&scores(json!({ "f1": 1, "max": { "f1": 0.5 }, "said": "text" })));
        assert_eq!(&*first.1, [1.0, 0.5]);
        assert_eq!(shapes.names(first.0), ["f1", "max.f1"]);
        let again = shapes.take(&scores(json!({ "f1": 0, "max": { "f1": 0 }, "said": 7 })));
        assert_ne!(again.0, first.0, "a number where there was a text");
        assert_eq!(shapes.take(&scores(json!({ "f1": 0, "max": { "f1": 0 } }))).0, first.0);
        assert_ne!(shapes.take(&scores(json!({ "f1": 0, "max.f1": 0 }))).0, u32::MAX);
        assert!(shapes.names(Shapes::NONE).is_empty());
    }
}
