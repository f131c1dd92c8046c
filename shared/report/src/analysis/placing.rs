//! The order of models, and which places a model may have in it.
//!
//! First those that can be ranked, the best first, then those that have too little behind them. The rule is that of
//! [`domain::ranking`], within each set of exercises.
//!
//! An interval of ranks says which places a model may have. Every two models are compared on the questions that both answered,
//! task by task, by the interval of their mean difference.
//! Holm's correction over all these comparisons keeps the chance of any wrong one among them below 0.05. A model stands below
//! those that are better at 95 % confidence and above those that are worse at 95 % confidence; which of the places between is its own is not
//! known (Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks", 2024).

use std::fmt;

use domain::control::Better;
use domain::ranking::{Bounds, Contender, ranked};

use crate::analysis::ALPHA;
use crate::analysis::cells::totals;
use crate::analysis::compare::Answers;
use crate::dialogues::{ColumnId, Dialogues};
use crate::stats::{TaskValues, ValueRange, holm, mean_and_p};
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

/// The best and the worst place that a model may have, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInterval {
    pub best: usize,
    pub worst: usize,
}

/// For people: `2`, or `2–4`.
impl fmt::Display for RankInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.best == self.worst {
            true => write!(f, "{}", self.best),
            false => write!(f, "{}\u{2013}{}", self.best, self.worst),
        }
    }
}

/// The places of every column among those on the same exercises that can be ranked; `None` of the others, and of one without
/// others.
pub fn ranks(all: &Dialogues) -> &[Option<RankInterval>] {
    all.memo.ranks.get_or_init(|| {
        let answers: Vec<Answers> = (0..all.columns.len()).map(|column| Answers::of(all, column)).collect();
        let mut ranks = vec![None; all.columns.len()];
        let placed = by_mean(all);
        let is_ranked =
            |column: &ColumnId| placed.iter().any(|place| place.column == *column && place.rank.is_some());
        for (_, columns) in all.exercise_sets() {
            let columns: Vec<ColumnId> = columns.into_iter().filter(is_ranked).collect();
            if columns.len() < 2 {
                continue;
            }
            let of_set: Vec<&Answers> = columns.iter().map(|column| &answers[*column]).collect();
            for (column, rank) in columns.iter().zip(within(&of_set, all.tasks.len())) {
                ranks[*column] = Some(rank);
            }
        }
        ranks
    })
}

fn within(answers: &[&Answers], tasks: usize) -> Vec<RankInterval> {
    let models = answers.len();
    let pairs: Vec<(usize, usize)> = (0..models).flat_map(|a| (a + 1..models).map(move |b| (a, b))).collect();
    let differences: Vec<Option<(f64, f64)>> =
        pairs.iter().map(|&(a, b)| difference(answers[a], answers[b], tasks)).collect();
    let corrected = holm(differences.iter().map(|found| found.map(|(_, p)| p)));
    // Counts for each model how many are better and worse at 95 % confidence.
    let mut ranks = vec![RankInterval { best: 1, worst: models }; models];
    for ((&(a, b), found), p) in pairs.iter().zip(&differences).zip(&corrected) {
        let Some((mean, _)) = found.filter(|_| p.is_some_and(|p| p < ALPHA)) else { continue };
        let (better, worse) = if mean > 0.0 { (b, a) } else { (a, b) };
        ranks[better].worst -= 1;
        ranks[worse].best += 1;
    }
    ranks
}

/// The second's mean of tasks less the first's, and its p. Models that were asked different tasks have means of different things, so they
/// have no difference.
fn difference(a: &Answers, b: &Answers, tasks: usize) -> Option<(f64, f64)> {
    if (0..tasks).any(|task| (a.number(task) == 0) != (b.number(task) == 0)) {
        return None;
    }
    let of_task = |task: usize| TaskValues {
        weight: 1.0,
        values: a.paired(b, task).map(|(question, a, b)| (question.case, b - a)).collect(),
    };
    mean_and_p(&(0..tasks).map(of_task).collect::<Vec<_>>(), ValueRange::DIFFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::{entry, matrix};

    const TASKS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

    #[test]
    fn models_that_cannot_be_told_apart_share_their_places() {
        let skill = [0.1, 0.5, 0.5, 0.9];
        let all = matrix(&["low", "left", "right", "high"], &TASKS, 20, |model, task, n| {
            // What is easy for one of the two in the middle is hard for the other.
            let aside = if (task + n as usize) % 2 == model % 2 { 0.05 } else { -0.05 };
            skill[model] + aside
        });
        let shown: Vec<String> = ranks(&all).iter().map(|rank| rank.unwrap().to_string()).collect();
        assert_eq!(shown, ["4", "2–3", "2–3", "1"]);
    }

    #[test]
    fn who_was_asked_something_else_may_have_any_place_and_who_has_no_score_has_none() {
        let mut all = matrix(&["a", "b"], &TASKS, 20, |model, _, _| 0.1 + 0.8 * model as f64);
        let task = all.task("only", "RdfFriendCount", &["f1"]);
        let scores = serde_json::json!({ "f1": 1.0 });
        all.add(entry(0, task, 0), "c", Ok(scores.as_object().unwrap()));
        let none = all.column(crate::dialogues::testing::column("none", crate::dialogues::Origin::Published));
        assert_eq!(ranks(&all)[0], Some(RankInterval { best: 1, worst: 2 }));
        assert_eq!((ranks(&all)[1], ranks(&all)[none]), (ranks(&all)[0], None));
        assert_eq!(ranks(&Dialogues::default()), []);
    }
}
