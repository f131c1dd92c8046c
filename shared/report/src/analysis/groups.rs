//! Groups of tasks compared on one score, as table 4 of Meyer et al. (2024) does: all values of the tasks of one aspect
//! against all of another, by Welch's test.

use domain::glob::Glob;

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue};
use crate::stats::{TTest, effect, welch};

/// A named set of tasks, such as those that show a graph in Turtle.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub name: String,
    globs: Vec<Glob>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupComparison {
    pub n: (usize, usize),
    pub means: (Option<f64>, Option<f64>),
    pub test: Option<TTest>,
    /// Hedges' g, positive for the first group.
    pub g: Option<f64>,
}

impl TaskGroup {
    /// Reads `NAME=GLOB,GLOB`; a task whose label matches one of the globs is in the group.
    ///
    /// # Errors
    /// The name or the globs are missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, globs)) if !name.trim().is_empty() && !globs.trim().is_empty() => {
                let globs = globs.split(',').map(|glob| Glob::new(glob.trim())).collect();
                Ok(Self { name: name.trim().to_owned(), globs })
            }
            _ => Err(format!("`{text}` is no group; expected NAME=GLOB or NAME=GLOB,GLOB")),
        }
    }

    fn has(&self, label: &str) -> bool {
        self.globs.iter().any(|glob| glob.matches(label))
    }

    /// Labels of its tasks.
    pub fn tasks<'d>(&self, all: &'d Dialogues) -> Vec<&'d str> {
        all.tasks.iter().map(|task| task.label.as_str()).filter(|label| self.has(label)).collect()
    }
}

/// Whether any dialogue of these groups has the score.
pub fn is_there(all: &Dialogues, groups: &[TaskGroup], score: &str) -> bool {
    let of_groups =
        |dialogue: &ReportedDialogue| groups.iter().any(|group| group.has(&all.tasks[dialogue.task].label));
    all.iter().any(|dialogue| of_groups(dialogue) && all.score(dialogue, score).is_some())
}

/// Compares two groups over these columns together, on one score, or on the headline of each task.
pub fn compare(
    all: &Dialogues,
    columns: &[ColumnId],
    groups: (&TaskGroup, &TaskGroup),
    score: Option<&str>,
) -> GroupComparison {
    let value = |dialogue: &ReportedDialogue| match score {
        Some(score) => all.score(dialogue, score),
        None => dialogue.headline,
    };
    let values = |group: &TaskGroup| -> Vec<f64> {
        let members: Vec<bool> = all.tasks.iter().map(|task| group.has(&task.label)).collect();
        all.iter()
            .filter(|dialogue| columns.contains(&dialogue.column) && members[dialogue.task])
            .filter_map(value)
            .collect()
    };
    let (a, b) = (values(groups.0), values(groups.1));
    let mean = crate::stats::describe::mean;
    GroupComparison {
        n: (a.len(), b.len()),
        means: (mean(&a), mean(&b)),
        test: welch(&a, &b),
        g: effect::hedges_g(&a, &b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn tasks_of_two_aspects_are_pooled_over_models() {
        let all = matrix(&["a", "b"], &["X-schema", "Y-schema", "X-subgraph"], 10, |model, task, n| {
            f64::from(n % 2) / 10.0 + model as f64 / 100.0 + if task == 2 { 0.5 } else { 0.0 }
        });
        let group = |text: &str| TaskGroup::parse(text).unwrap();
        let (graph, schema) = (group("graph=*-subgraph"), group("schema=X-schema, Y-schema"));
        let found = compare(&all, &[0, 1], (&graph, &schema), Some("f1"));
        assert_eq!(found.n, (20, 40));
        assert!(found.test.unwrap().p < 1e-9 && found.g.unwrap() > 5.0);
        assert_eq!(found, compare(&all, &[0, 1], (&graph, &schema), None), "the headline is f1");
        assert_eq!(compare(&all, &[0], (&group("no=none"), &schema), Some("f1")).test, None);
        assert_eq!(schema.tasks(&all), ["X-schema", "Y-schema"]);
        for text in ["", "name", "=glob", "name="] {
            assert!(TaskGroup::parse(text).is_err(), "{text}");
        }
    }
}
