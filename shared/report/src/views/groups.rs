//! Welch's tests between groups of tasks, as table 4 of Meyer et al. (2024) has them.

use crate::analysis::groups::{TaskGroup, compare, is_there};
use crate::dialogues::Dialogues;
use crate::stats::holm;
use crate::table::{Cell, Table};
use crate::view::{View, ViewError, ViewOptions};

/// The groups that are compared if none are named.
const USUAL: [&str; 2] = ["Turtle=*-turtle*", "JSON-LD=*-jsonld*"];

/// See [`table`].
pub static VIEW: View = View {
    name: "groups",
    about: "Welch's tests between groups of tasks on one score, over all models together",
    is_summary: true,
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
        let ps: Vec<f64> = found.iter().map(|found| found.test.map_or(f64::NAN, |test| test.p)).collect();
        for (((a, b), found), corrected) in pairs.iter().zip(&found).zip(holm(&ps)) {
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
                Cell::small(finite(Some(corrected)), P_PLACES),
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
}
