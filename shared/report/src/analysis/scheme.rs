//! Schemes: which scores of which tasks make up a category, and which categories a combined score or a compass.

use domain::glob::Glob;
use domain::spelling;
use serde::Deserialize;

use crate::analysis::compare::{QuestionKey, asked};
use crate::dialogues::{ColumnId, Dialogues, TaskId};

/// The schemes that come with the program.
const BUNDLED: &str = include_str!("../../schemes.toml");

/// A set of categories.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scheme {
    pub name: String,
    /// For people.
    pub title: String,
    #[serde(default)]
    pub weighting: Weighting,
    pub categories: Vec<Category>,
}

/// What counts the same in a combined score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// Every value.
    #[default]
    Pooled,
    /// Every category, however many values it has.
    Categories,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Category {
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub parts: Vec<SchemePart>,
}

/// A score of some tasks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SchemePart {
    /// Globs of task labels.
    pub tasks: Vec<String>,
    /// Globs of task labels that are left out.
    #[serde(default)]
    pub except: Vec<String>,
    /// Its name, such as `f1` or `max.combined`.
    pub score: String,
}

/// A file of schemes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scheme: Vec<Scheme>,
}

/// Why a scheme cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemeError {
    #[error("not a file of schemes: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("scheme `{0}` has no categories")]
    Empty(String),
    #[error("there is no scheme `{name}`; {offered}")]
    Unknown { name: String, offered: String },
}

/// Reads schemes.
pub fn parse(text: &str) -> Result<Vec<Scheme>, SchemeError> {
    let File { scheme } = toml::from_str(text)?;
    match scheme.iter().find(|scheme| scheme.categories.is_empty()) {
        Some(empty) => Err(SchemeError::Empty(empty.name.clone())),
        None => Ok(scheme),
    }
}

/// The schemes that come with the program.
pub fn bundled() -> Vec<Scheme> {
    // A test reads them.
    parse(BUNDLED).unwrap_or_default()
}

/// The scheme of a name.
pub fn named(schemes: &[Scheme], name: &str) -> Result<Scheme, SchemeError> {
    schemes.iter().find(|scheme| scheme.name == name).cloned().ok_or_else(|| {
        let offered = spelling::offer(name, schemes.iter().map(|scheme| scheme.name.as_str()));
        SchemeError::Unknown { name: name.to_owned(), offered }
    })
}

/// A value of a category, with the question that it is about and the part of the category that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchemeValue {
    pub task: TaskId,
    pub part: usize,
    pub question: QuestionKey,
    pub value: f64,
}

impl Category {
    /// Every value of a model in this category, task by task.
    pub fn values(&self, all: &Dialogues, column: ColumnId) -> Vec<SchemeValue> {
        let chosen: Vec<Vec<bool>> = self.parts.iter().map(|part| part.chosen(all)).collect();
        let mut found = Vec::new();
        for task in (0..all.tasks.len()).filter(|task| chosen.iter().any(|chosen| chosen[*task])) {
            for (question, dialogue) in asked(all, column, task) {
                let parts = self.parts.iter().enumerate().filter(|(part, _)| chosen[*part][task]);
                found.extend(parts.filter_map(|(part, SchemePart { score, .. })| {
                    Some(SchemeValue { task, part, question, value: all.score(dialogue, score)? })
                }));
            }
        }
        found
    }

    /// The tasks that go in.
    pub fn task_ids(&self, all: &Dialogues) -> Vec<TaskId> {
        let chosen: Vec<Vec<bool>> = self.parts.iter().map(|part| part.chosen(all)).collect();
        (0..all.tasks.len()).filter(|&task| chosen.iter().any(|chosen| chosen[task])).collect()
    }

    /// The labels of the tasks that go in.
    pub fn tasks<'a>(&self, all: &'a Dialogues) -> Vec<&'a str> {
        self.task_ids(all).into_iter().map(|task| all.tasks[task].label.as_str()).collect()
    }
}

impl SchemePart {
    /// For every task whether it goes in.
    fn chosen(&self, all: &Dialogues) -> Vec<bool> {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
        let (wanted, except) = (globs(&self.tasks), globs(&self.except));
        let matches = |globs: &[Glob], label: &str| globs.iter().any(|glob| glob.matches(label));
        all.tasks.iter().map(|task| matches(&wanted, &task.label) && !matches(&except, &task.label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn the_bundled_schemes_can_be_read() {
        let schemes = parse(BUNDLED).unwrap();
        let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name.as_str()).collect();
        assert_eq!(names, ["sparql", "semantic", "sparql-a", "sparql-b", "sparql-c"]);
        assert!(schemes.iter().all(|scheme| scheme.categories.len() == 5));
        let error = named(&schemes, "x").unwrap_err().to_string();
        assert!(error.contains("sparql-b"), "{error}");
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let error = parse("[[scheme]]\nname = 'a'\ntitle = 'b'\ncategories = []\ncolour = 1\n").unwrap_err();
        assert!(error.to_string().contains("colour"), "{error}");
        let error = parse("[[scheme]]\nname = 'a'\ntitle = 'b'\ncategories = []\n").unwrap_err();
        assert!(error.to_string().contains("`a`"), "{error}");
    }

    #[test]
    fn a_category_takes_its_tasks_and_leaves_the_exceptions() {
        let all = matrix(&["m"], &["A-1", "A-2", "B-1"], 2, |_, task, _| task as f64 / 10.0);
        let part = SchemePart { tasks: vec!["A-*".into()], except: vec!["*-2".into()], score: "f1".into() };
        let category = Category { name: "c".into(), description: String::new(), parts: vec![part] };
        assert_eq!(category.tasks(&all), ["A-1"]);
        assert_eq!(category.values(&all, 0).len(), 2);
    }
}
