//! Sorts rows by a column.

use std::cmp::Ordering;

use domain::spelling;

use super::{Cell, Table};

/// The column with the exercises. Rows on different exercises are never ranked together.
const EXERCISES: &str = "exercises";

impl Table {
    /// Sorts the rows by the column with this heading: numbers from the highest, texts from A; `reversed` the other way
    /// round. Rows without a value come last, then the total. Rows on different exercises stay apart.
    ///
    /// # Errors
    /// There is no such column; the message lists the columns.
    pub fn sort_by(&mut self, column: &str, reversed: bool) -> Result<(), String> {
        let place = |name: &str| self.headings.iter().position(|heading| heading.name == name);
        let Some(at) = place(column) else {
            let offered = spelling::offer(column, self.headings.iter().map(|heading| heading.name.as_str()));
            return Err(format!("there is no column `{column}`; {offered}"));
        };
        let exercises = place(EXERCISES);
        let mut sets: Vec<Cell> = Vec::new();
        for row in &self.rows {
            if let Some(set) = exercises.and_then(|at| row.get(at))
                && !sets.contains(set)
            {
                sets.push(set.clone());
            }
        }
        let set =
            |row: &[Cell]| exercises.and_then(|at| sets.iter().position(|set| row.get(at) == Some(set)));
        let end = self.body().len();
        self.rows[..end].sort_by(|a, b| {
            let (x, y) = (a.get(at).unwrap_or(&Cell::Empty), b.get(at).unwrap_or(&Cell::Empty));
            set(a).cmp(&set(b)).then_with(|| order(x, y, reversed))
        });
        Ok(())
    }
}

/// Compares two cells; empty cells come last in both directions.
fn order(a: &Cell, b: &Cell, reversed: bool) -> Ordering {
    let turned = |order: Ordering| if reversed { order.reverse() } else { order };
    match (a.value(), b.value()) {
        (Some(a), Some(b)) => turned(b.total_cmp(&a)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => match (text(a), text(b)) {
            (Some(a), Some(b)) => turned(a.cmp(&b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        },
    }
}

fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text.clone().into_owned()).filter(|text| !text.is_empty()),
        Cell::Told(text, _) => Some(text.clone()).filter(|text| !text.is_empty()),
        Cell::Flag(flag) => Some(flag.to_string()),
        Cell::Time(time) => Some(time.to_string()),
        Cell::Empty | Cell::Count(_) | Cell::Number(..) | Cell::Placed(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::table::{Cell, Table};

    fn table() -> Table {
        let mut table = Table::default().left(["model", "exercises"]).right(["mean"]);
        for (model, exercises, mean) in
            [("b", "x", Some(0.1)), ("c", "y", Some(0.9)), ("a", "x", None), ("d", "x", Some(0.2))]
        {
            table.row([Cell::from(model), Cell::from(exercises), Cell::number(mean, 1)]);
        }
        table.total([Cell::from("all"), Cell::Empty, Cell::Number(1.0, 1)]);
        table
    }

    fn models(table: &Table) -> String {
        table.rows().iter().map(|row| row[0].shown()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_are_ordered_within_their_exercises_and_the_total_stays_last() {
        let mut table = table();
        table.sort_by("mean", false).unwrap();
        assert_eq!(models(&table), "d b a c all");
        table.sort_by("mean", true).unwrap();
        assert_eq!(models(&table), "b d a c all");
        table.sort_by("model", false).unwrap();
        assert_eq!(models(&table), "a b d c all");
        assert!(table.sort_by("size", false).unwrap_err().contains("model, exercises, mean"));
    }
}
