//! Groups of tasks compared on one score, as table 4 of Meyer et al. (2024) does: all values of the tasks of one group
//! against all of another, by Welch's test.

use domain::glob::Glob;

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue};
use crate::stats::{TwoSamples, holm};
use crate::table::{Cell, Table};
use crate::views::{View, ViewError, ViewOptions};

/// The groups that are compared if none are named.
const USUAL: [&str; 2] = ["Turtle=*-turtle*", "JSON-LD=*-jsonld*"];

/// See [`table`].
pub static VIEW: View = View {
    name: "groups",
    about: "Welch's tests between groups of tasks on one score, over all models together",
    table: |all, options| options.order.of(compared(all, options)?),
};

fn compared(all: &Dialogues, options: &ViewOptions<'_>) -> Result<Table, ViewError> {
    if let Some(empty) = options.groups.iter().find(|group| group.tasks(all).is_empty()) {
        return Err(ViewError::Group(empty.name.clone()));
    }
    let usual: Vec<TaskGroup> = USUAL.iter().filter_map(|group| TaskGroup::parse(group).ok()).collect();
    let groups = if options.groups.is_empty() { &usual } else { options.groups };
    if let Some(score) = options.score.filter(|score| options.is_wanted && !is_there(all, groups, score)) {
        return Err(ViewError::Score(score.to_owned()));
    }
    Ok(table(all, groups, options.score))
}

/// Digits of p values, as in the published table.
const P_PLACES: usize = 5;

/// One row per pair of groups, over all models on the same exercises together. Positive differences favour the first.
pub fn table(all: &Dialogues, groups: &[TaskGroup], score: Option<&str>) -> Table {
    let mut table = Table::default()
        .left(["A", "B", "exercises"])
        .right(["models", "n A", "n B", "mean A", "mean B", "difference", "low", "high"])
        .right(["t", "df", "p", "p Holm", "Hedges g"])
        .titled("Groups of tasks");
    let pairs = groups.iter().enumerate().flat_map(|(at, a)| groups[at + 1..].iter().map(move |b| (a, b)));
    let pairs: Vec<(&TaskGroup, &TaskGroup)> = pairs.collect();
    for (exercises, columns) in all.exercise_sets() {
        let found: Vec<_> = pairs.iter().map(|&pair| compare(all, &columns, pair, score)).collect();
        let ps = found.iter().map(|found| found.test.map(|test| test.p));
        for (((a, b), found), corrected) in pairs.iter().zip(&found).zip(holm(ps)) {
            let test = found.test;
            let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
            table.row([
                Cell::from(a.name.as_str()),
                Cell::from(b.name.as_str()),
                Cell::from(exercises.short()),
                Cell::Count(columns.len() as u64),
                Cell::Count(found.n.0 as u64),
                Cell::Count(found.n.1 as u64),
                Cell::number(found.means.0, 3),
                Cell::number(found.means.1, 3),
                Cell::number(test.map(|test| test.difference), 3),
                Cell::number(test.map(|test| test.interval.0), 3),
                Cell::number(test.map(|test| test.interval.1), 3),
                Cell::number(finite(test.map(|test| test.t)), 2),
                Cell::number(finite(test.map(|test| test.df)), 1),
                Cell::small(test.map(|test| test.p), P_PLACES),
                Cell::small(corrected, P_PLACES),
                Cell::number(found.g, 2),
            ]);
        }
    }
    table.notes.push(format!(
        "Welch's tests of all values of {} in the tasks of A against those of B, models pooled; Holm corrects for the pairs.",
        score.map_or("the headline score".to_owned(), |score| format!("`{score}`"))
    ));
    for group in groups {
        let tasks = group.tasks(all);
        let tasks = if tasks.is_empty() { "no task".to_owned() } else { tasks.join(", ") };
        table.notes.push(format!("{}: {tasks}", group.name));
    }
    table
}

/// A named set of tasks, such as those that show a graph in Turtle.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub name: String,
    globs: Vec<Glob>,
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
) -> TwoSamples {
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
    TwoSamples::of(&values(groups.0), &values(groups.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    /// What `scipy.stats.ttest_ind(a, b, equal_var=False)` gives for these values.
    #[test]
    fn tests_equal_those_of_scipy() {
        let graph = [0.2, 0.4, 0.4, 0.9, 1.0, 1.0, 0.7, 0.3];
        let schema = [0.1, 0.0, 0.5, 0.2, 0.9, 0.1, 0.3, 0.0];
        let all = matrix(&["m"], &["X-graph", "X-schema", "X-iris"], 8, |_, task, n| {
            if task == 1 { schema[n as usize] } else { graph[n as usize] }
        });
        let groups =
            ["graph=*-graph", "schema=*-schema", "iris=*-iris"].map(|text| TaskGroup::parse(text).unwrap());
        let table = table(&all, &groups, Some("f1"));
        let cells = |row: usize| table.rows()[row][11..14].iter().map(Cell::shown).collect::<Vec<_>>();
        assert_eq!(table.rows().len(), 3);
        assert_eq!(cells(0), ["2.21", "13.9", "0.04453"]);
        assert_eq!(cells(1), ["0.00", "14.0", "1.00000"]);
        assert_eq!(table.notes[2], "schema: X-schema");
    }

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
