//! The check `rows`: what a query finds is compared with what the reference query found.
//!
//! Models name, order and number columns as they like. So each expected column is given the column of the answer that shares
//! most values with it, such that the sum is greatest; further columns are not looked at. Rows are compared as sets.

use std::collections::{BTreeSet, HashMap};

use rdf::literal::numeric_text;
use rdf::{ExecutionError, PreparedQuery, QueryAnswer, QueryGraph, QueryLimits, Solutions, Value};
use serde::{Deserialize, Serialize};

use super::scores::{CheckScores, share_scores};
use crate::families::declared::spec::RowComparison;

/// Most columns of an expected result.
pub const EXPECTED_COLUMNS_MAX: usize = 16;

/// Columns of an answer that are looked at.
const COLUMNS_MAX: usize = 32;

/// A result, as packs hold expected ones: cells as texts, `<IRI>` in angle brackets, texts in quotes, numbers by value and
/// without; `null` where nothing is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResultTable {
    pub columns: usize,
    pub rows: BTreeSet<Vec<Option<String>>>,
}

impl ResultTable {
    /// The result of a query.
    ///
    /// # Errors
    /// The query cannot be run within the limits.
    pub fn of(
        query: &PreparedQuery,
        graph: &QueryGraph,
        limits: &QueryLimits,
    ) -> Result<Self, ExecutionError> {
        Ok(match query.answer(graph, limits)? {
            QueryAnswer::Rows(solutions) => Self::of_solutions(solutions),
            QueryAnswer::Truth(truth) => {
                Self { columns: 1, rows: BTreeSet::from([vec![Some(quoted(&truth.to_string()))]]) }
            }
        })
    }

    fn of_solutions(solutions: Solutions) -> Self {
        let cell = |value: Option<Value>| value.map(|value| cell_text(&value));
        let rows = solutions.rows.into_iter().map(|row| row.into_iter().map(cell).collect());
        Self { columns: solutions.variables.len(), rows: rows.collect() }
    }

    /// The texts of the first column, without quotes and angle brackets.
    pub fn first_column(&self) -> Vec<String> {
        let cells = self.rows.iter().filter_map(|row| row.first()?.as_deref());
        cells.map(|cell| unquoted(cell).to_owned()).collect()
    }

    fn cells(&self) -> BTreeSet<&str> {
        self.rows.iter().flatten().filter_map(Option::as_deref).map(unquoted).collect()
    }

    /// How often each value stands in a column.
    fn counts(&self, column: usize) -> HashMap<&str, u32> {
        let mut counts = HashMap::new();
        for cell in self.rows.iter().filter_map(|row| row.get(column)?.as_deref()) {
            *counts.entry(cell).or_default() += 1;
        }
        counts
    }

    /// The rows with these columns only.
    fn projected(&self, columns: &[Option<usize>]) -> BTreeSet<Vec<Option<&str>>> {
        fn cell(row: &[Option<String>], column: Option<usize>) -> Option<&str> {
            row.get(column?)?.as_deref()
        }
        self.rows.iter().map(|row| columns.iter().map(|column| cell(row, *column)).collect()).collect()
    }
}

/// Compares two results. Nothing found is worth nothing, unless nothing is expected and `empty_ok`.
pub(super) fn compare(
    found: &ResultTable,
    expected: &ResultTable,
    comparison: RowComparison,
    empty_ok: bool,
) -> CheckScores {
    let mut scores = match comparison {
        RowComparison::Cells => share_scores(&found.cells(), &expected.cells(), empty_ok),
        RowComparison::Rows => {
            let columns = assigned(found, expected);
            let all: Vec<Option<usize>> = (0..expected.columns).map(Some).collect();
            share_scores(&found.projected(&columns), &expected.projected(&all), empty_ok)
        }
    };
    scores.info("found", found.rows.len());
    if comparison == RowComparison::Rows && found.columns > expected.columns {
        scores.info("columnsIgnored", found.columns - expected.columns);
    }
    scores.empty = found.rows.is_empty() && !expected.rows.is_empty();
    scores
}

/// The column of the answer for each expected one.
fn assigned(found: &ResultTable, expected: &ResultTable) -> Vec<Option<usize>> {
    let (rows, columns) = (expected.columns, found.columns.min(COLUMNS_MAX));
    let of_found: Vec<_> = (0..columns).map(|column| found.counts(column)).collect();
    // The place breaks ties: it can never outweigh one more shared value.
    let places = rows as i64 + 1;
    let worth: Vec<Vec<i64>> = (0..rows)
        .map(|row| {
            let wanted = expected.counts(row);
            let shared = |counts: &HashMap<&str, u32>| -> i64 {
                let common =
                    wanted.iter().map(|(cell, count)| (*count).min(counts.get(cell).copied().unwrap_or(0)));
                common.map(i64::from).sum()
            };
            let worth = of_found.iter().enumerate();
            worth.map(|(column, counts)| shared(counts) * places + i64::from(column == row)).collect()
        })
        .collect();
    best_assignment(&worth, columns)
}

/// Assigns columns to rows such that the sum of their worth is greatest: the Hungarian method with potentials, in cubic time.
/// Where there are fewer columns than rows, some rows get none.
fn best_assignment(worth: &[Vec<i64>], columns: usize) -> Vec<Option<usize>> {
    // Places without worth stand for "none", so that every row gets a place.
    let (rows, width) = (worth.len(), columns.max(worth.len()));
    let cost = |row: usize, column: usize| -worth[row].get(column).copied().unwrap_or(0);
    let (mut of_row, mut of_column) = (vec![0_i64; rows + 1], vec![0_i64; width + 1]);
    // The row of each column, counted from 1; column 0 is where a new row starts.
    let mut taken = vec![0_usize; width + 1];
    for row in 1..=rows {
        taken[0] = row;
        let (mut least, mut from) = (vec![i64::MAX; width + 1], vec![0_usize; width + 1]);
        let mut visited = vec![false; width + 1];
        let mut column = 0;
        while taken[column] != 0 {
            visited[column] = true;
            let here = taken[column];
            let (mut step, mut next) = (i64::MAX, 0);
            for other in (1..=width).filter(|other| !visited[*other]).collect::<Vec<_>>() {
                let reduced = cost(here - 1, other - 1) - of_row[here] - of_column[other];
                if reduced < least[other] {
                    (least[other], from[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=width {
                if visited[other] {
                    of_row[taken[other]] += step;
                    of_column[other] -= step;
                } else if least[other] != i64::MAX {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            taken[column] = taken[from[column]];
            column = from[column];
        }
    }
    let mut assigned = vec![None; rows];
    for (column, row) in
        taken.iter().enumerate().skip(1).filter(|(column, row)| **row != 0 && *column <= columns)
    {
        assigned[row - 1] = Some(column - 1);
    }
    assigned
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn unquoted(cell: &str) -> &str {
    let inside = |open: char, close: char| cell.strip_prefix(open)?.strip_suffix(close);
    inside('"', '"').or_else(|| inside('<', '>')).unwrap_or(cell)
}

/// One value as text. All blank nodes are the same, because their labels mean nothing.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Iri(iri) => format!("<{iri}>"),
        Value::Blank(_) => "_:".to_owned(),
        Value::Literal { lexical, datatype, .. } => {
            numeric_text(lexical, datatype).unwrap_or_else(|| quoted(lexical))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(columns: usize, rows: &[&[&str]]) -> ResultTable {
        let row = |cells: &&[&str]| cells.iter().map(|cell| Some((*cell).to_owned())).collect();
        ResultTable { columns, rows: rows.iter().map(row).collect() }
    }

    fn main_of(found: &ResultTable, expected: &ResultTable) -> f64 {
        compare(found, expected, RowComparison::Rows, false).main
    }

    #[test]
    fn columns_may_be_swapped_and_more_than_asked_for() {
        let expected = table(2, &[&["a", "1"], &["b", "2"]]);
        assert_eq!(main_of(&table(2, &[&["1", "a"], &["2", "b"]]), &expected), 1.0);
        let labelled = table(3, &[&["Anna", "1", "a"], &["Bob", "2", "b"]]);
        let scores = compare(&labelled, &expected, RowComparison::Rows, false);
        assert_eq!((scores.main, &scores.infos["columnsIgnored"]), (1.0, &serde_json::json!(1)));
        assert_eq!(main_of(&table(1, &[&["a"], &["b"]]), &expected), 0.0, "a column is missing");
        let half = compare(&table(2, &[&["a", "1"], &["b", "1"]]), &expected, RowComparison::Rows, false);
        assert_eq!((half.main, half.parts), (0.5, vec![("precision".into(), 0.5), ("recall".into(), 0.5)]));
    }

    #[test]
    fn nothing_is_right_only_where_nothing_is_expected() {
        let (empty, one) = (table(1, &[]), table(1, &[&["a"]]));
        let scores = compare(&empty, &one, RowComparison::Rows, true);
        assert_eq!(
            (scores.main, scores.empty, &scores.parts),
            (0.0, true, &vec![("precision".into(), 0.0), ("recall".into(), 0.0)])
        );
        assert_eq!(compare(&empty, &empty, RowComparison::Rows, true).main, 1.0);
        assert_eq!(compare(&empty, &empty, RowComparison::Rows, false).main, 0.0);
        assert_eq!(compare(&one, &empty, RowComparison::Rows, true).main, 0.0);
    }

    #[test]
    fn cells_are_one_set_whatever_their_place() {
        let (rows, column) = (table(2, &[&["<a>", "\"b\""]]), table(1, &[&["<a>"], &["<b>"]]));
        assert_eq!(compare(&rows, &column, RowComparison::Cells, false).main, 1.0);
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_worth_more(worth in prop::collection::vec(prop::collection::vec(0..20_i64, 4), 1..5)) {
            fn best(worth: &[Vec<i64>], used: &mut Vec<bool>) -> i64 {
                let Some((row, rest)) = worth.split_first() else { return 0 };
                (0..row.len()).map(|column| {
                    if std::mem::replace(&mut used[column], true) {
                        return i64::MIN;
                    }
                    let sum = row[column] + best(rest, used);
                    used[column] = false;
                    sum
                }).max().unwrap_or(0)
            }
            let assigned = best_assignment(&worth, 4);
            let sum: i64 = assigned.iter().enumerate().map(|(row, column)| worth[row][column.unwrap()]).sum();
            prop_assert_eq!(sum, best(&worth, &mut vec![false; 4]));
        }
    }
}
