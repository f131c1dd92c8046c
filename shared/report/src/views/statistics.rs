//! The statistics of every model on every task, and of every model over all tasks.

use crate::analysis::cells;
use crate::analysis::placing::{self, PlacedColumn, ranks};
use crate::dialogues::Dialogues;
use crate::stats::Interval;
use crate::table::{Cell, Table};
use crate::views::costs::spending;
use crate::views::{View, costs};

/// See [`by_task`].
pub static VIEW: View = View {
    name: "statistics",
    about: "Every model on every task: n, mean, deviation, median, interval, what is not scored, rounds, tokens, time",
    table: |all, options| options.order.of(by_task(all)),
};

/// See [`by_model`].
pub static BY_MODEL: View = View {
    name: "models",
    about: "Every model over all tasks: mean with interval, dialogues, rounds, tokens, money, time",
    table: |all, options| options.order.of(by_model(all)),
};

/// One row per task and model.
pub fn by_task(all: &Dialogues) -> Table {
    let mut table = Table::default()
        .left(["task", "score", "model", "exercises"])
        .right(["n", "mean", "sd", "median", "low", "high", "planned", "not scored"])
        .left(["reasons"])
        .right(["rounds", "prompt tokens", "answer tokens", "seconds"])
        .titled("Statistics");
    let headings = all.headings();
    for cell in cells::statistics(all) {
        let reasons: Vec<String> =
            cell.unscored.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let (low, high) = ends(cell.interval);
        let summary = cell.summary;
        table.row([
            Cell::from(all.tasks[cell.task].label.as_str()),
            Cell::from(all.tasks[cell.task].headline.as_str()),
            Cell::from(headings[cell.column].as_str()),
            Cell::from(all.columns[cell.column].exercises.short()),
            Cell::Count(summary.map_or(0, |summary| summary.n as u64)),
            Cell::number(summary.map(|summary| summary.mean), 3),
            Cell::number(summary.and_then(|summary| summary.sd), 3),
            Cell::number(summary.map(|summary| summary.median), 3),
            low,
            high,
            Cell::Count(cell.planned),
            Cell::Number(cell.unscored_share(), 3),
            Cell::from(reasons.join(", ")),
            Cell::number(cell.rounds, 2),
            Cell::number(cell.prompt_tokens, 0),
            Cell::number(cell.completion_tokens, 0),
            Cell::number(cell.seconds, 2),
        ]);
    }
    table
        .notes
        .push("low, high: 95 % interval of the mean, for the same task with other exercises or, where it has one, for other \
         answers to it; sd: of the sample.".to_owned());
    table
}

/// One row per model, the best first among those on the same exercises that can be ranked, the others below.
pub fn by_model(all: &Dialogues) -> Table {
    let mut table = Table::default()
        .left(["model"])
        .right(["mean of tasks", "low", "high", "best rank", "worst rank"])
        .left(["family"])
        .right(["size in B", "active in B"])
        .left(["exercises"])
        .right(["tasks", "dialogues", "planned", "scored"])
        .right(["first answer", "best answer", "rounds", "prompt tokens", "answer tokens"])
        .right([costs::named("cost", all.prices.currency()), "seconds".to_owned()])
        .titled("Models");
    let headings = all.headings();
    let (totals, ranks) = (cells::totals(all), ranks(all));
    let placed = placing::by_mean(all);
    for place in &placed {
        let (total, rank) = (&totals[place.column], ranks[place.column]);
        let column = &all.columns[total.column];
        // Of what is not ranked the bounds are told: an interval would speak of what was asked by chance.
        let (low, high) = ends(total.interval().filter(|_| !place.is_unranked()));
        table.row([
            Cell::from(headings[total.column].as_str()),
            mean_of(place, total.mean),
            low,
            high,
            Cell::count(rank.map(|rank| rank.best as u64)),
            Cell::count(rank.map(|rank| rank.worst as u64)),
            Cell::from(column.family.as_str()),
            Cell::number(column.size, 1),
            Cell::number(column.active, 1),
            Cell::from(column.exercises.short()),
            Cell::Count(total.tasks as u64),
            Cell::Count(total.dialogues),
            Cell::Count(total.contender.planned),
            Cell::Count(total.contender.covered),
            Cell::number(total.gain.map(|(first, _)| first), 3),
            Cell::number(total.gain.map(|(_, best)| best), 3),
            Cell::number(total.rounds, 2),
            Cell::count(total.prompt_tokens),
            Cell::count(total.completion_tokens),
            costs::cell(spending(all, total.column).and_then(|found| found.money)),
            Cell::number(total.seconds, 0),
        ]);
    }
    table.notes.extend(placing::unranked(&placed, &headings));
    table.notes.extend(ABOUT_MODELS.map(str::to_owned));
    table
}

/// What the columns of models say.
const ABOUT_MODELS: [&str; 3] = [
    "low, high: 95 % interval of the mean of tasks, for these tasks with other exercises.",
    "best rank: one more than the number of models that are better; worst rank: the number of models that are not worse; both at \
     95 % confidence, by differences on the same questions, corrected by Holm for all pairs. Between equal ranks the order is chance. Models are ranked that have \
     scores for about as much of their plan as the farthest one: at most one point of a hundred less.",
    "first answer, best answer: over tasks whose score is the best of several answers; tokens and seconds: sums; cost: at list \
     prices, as the table of costs says.",
];

/// The mean; of a model that is not ranked, with what it covers.
fn mean_of(place: &PlacedColumn, mean: Option<f64>) -> Cell {
    match mean.filter(|_| place.is_unranked()) {
        Some(value) => Cell::Told(format!("{value:.3} ({}/{})", place.covered, place.planned), mean),
        None => Cell::number(mean, 3),
    }
}

fn ends(interval: Option<Interval>) -> (Cell, Cell) {
    let end = |of: fn(Interval) -> f64| Cell::number(interval.map(of), 3);
    (end(|interval| interval.low), end(|interval| interval.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn the_best_from_a_part_of_its_plan_stands_below_without_a_rank() {
        let mut all = matrix(&["early", "a", "b"], &["t"], 3, |model, _, _| [1.0, 0.5, 0.4][model]);
        all.plan(0, 0, 20);
        let table = by_model(&all);
        let row = |at: usize| table.rows()[at][..6].iter().map(Cell::shown).collect::<Vec<_>>();
        assert_eq!(row(2), ["early", "1.000 (3/20)", "-", "-", "-", "-"]);
        assert_eq!((row(0)[0].as_str(), row(1)[0].as_str()), ("a", "b"));
        let note = "Not ranked, because they have less of their plan than others: early (3 of 20 scores): from 0.150 if";
        assert!(table.notes[0].starts_with(note), "{:?}", table.notes);
    }
}
