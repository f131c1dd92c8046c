//! The order of models: those that can be ranked, the best first, then those that have too little behind them. The rule is that of
//! [`domain::ranking`], within each set of exercises.

use domain::control::Better;
use domain::ranking::{Bounds, Contender, ranked};

use super::cells::totals;
use crate::dialogues::{ColumnId, Dialogues};
use crate::words::bounds;

/// Where a column stands among those on the same exercises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedColumn {
    pub column: ColumnId,
    /// From 1; `None` if it covers too little of its plan, or has no value.
    pub rank: Option<u64>,
    /// Scores in its value.
    pub covered: u64,
    /// Scores planned.
    pub planned: u64,
    /// Between what its value lies, whatever is missing.
    pub bounds: Option<Bounds>,
}

impl PlacedColumn {
    /// Whether it has a value, and too little behind it to be ranked by it.
    pub fn is_unranked(&self) -> bool {
        self.rank.is_none() && self.covered > 0
    }
}

/// All columns in their order, set of exercises by set.
pub fn placed(
    all: &Dialogues,
    contender: impl Fn(ColumnId) -> Contender,
    better: Better,
) -> Vec<PlacedColumn> {
    all.exercise_sets().iter().flat_map(|(_, columns)| among(columns, &contender, better)).collect()
}

/// Columns on the same exercises in their order.
pub fn among(
    columns: &[ColumnId],
    contender: impl Fn(ColumnId) -> Contender,
    better: Better,
) -> Vec<PlacedColumn> {
    let contenders: Vec<Contender> = columns.iter().map(|&column| contender(column)).collect();
    let places = ranked(&contenders, better).into_iter().map(|place| {
        let Contender { covered, planned, bounds, .. } = contenders[place.contender];
        PlacedColumn { column: columns[place.contender], rank: place.rank, covered, planned, bounds }
    });
    places.collect()
}

/// All models by their mean of tasks.
pub fn by_mean(all: &Dialogues) -> Vec<PlacedColumn> {
    let totals = totals(all);
    placed(all, |column| totals[column].contender, Better::Higher)
}

/// Models that a sentence names; the others are counted.
const NAMED_MAX: usize = 5;

/// Who is not ranked, and between what each lies; `None` if everybody is.
pub fn unranked(placed: &[PlacedColumn], headings: &[String]) -> Option<String> {
    let left_out: Vec<&PlacedColumn> = placed.iter().filter(|placed| placed.is_unranked()).collect();
    let told = |placed: &&PlacedColumn| {
        let name = format!("{} ({} of {} scores)", headings[placed.column], placed.covered, placed.planned);
        match placed.bounds {
            Some(found) => format!("{name}: {}", bounds(found)),
            None => name,
        }
    };
    let mut names: Vec<String> = left_out.iter().take(NAMED_MAX).map(told).collect();
    if left_out.len() > NAMED_MAX {
        names.push(format!("and {} more", left_out.len() - NAMED_MAX));
    }
    let names = names.join("; ");
    (!left_out.is_empty())
        .then(|| format!("Not ranked, because they have less of their plan than others: {names}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn the_best_from_three_of_twenty_stands_below() {
        let mut all =
            matrix(&["good", "early"], &["s", "t"], 20, |model, _, _| if model == 1 { 1.0 } else { 0.6 });
        assert_eq!(by_mean(&all).iter().map(|placed| placed.column).collect::<Vec<_>>(), [1, 0]);
        for task in 0..2 {
            all.plan(1, task, 140);
        }
        let found = by_mean(&all);
        assert_eq!((found[0].column, found[0].rank, found[1].rank), (0, Some(1), None));
        assert!(found[1].is_unranked() && !found[0].is_unranked());
        let Bounds { low, high } = found[1].bounds.unwrap();
        assert!((low - 20.0 / 140.0).abs() < 1e-12 && (high - 1.0).abs() < 1e-12, "{low} {high}");
    }
}
