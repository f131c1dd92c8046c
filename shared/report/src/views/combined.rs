//! The table of a scheme's combined scores, with the group of leading models.

use domain::control::Better;

use crate::analysis::combined::{Combined, combined, test};
use crate::analysis::leaders::{Rank, rank};
use crate::analysis::placing::{self, PlacedColumn, placed};
use crate::analysis::scheme::{Scheme, Weighting};
use crate::dialogues::Dialogues;
use crate::table::{Cell, Table};
use crate::view::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "combined",
    about: "Combined scores of a scheme, with the leading group",
    is_summary: true,
    table: |all, options| options.order.of(table(all, options.scheme)),
};

/// One row per model within each set of exercises, best first. A star marks the models of the leading group; a model
/// without others to compare with has none, and neither has one that has too little behind it to be ranked.
pub fn table(all: &Dialogues, scheme: &Scheme) -> Table {
    let mut table = Table::default()
        .left(["", "model", "exercises"])
        .right(["n", "score", "sd", "low", "high", "p", "p Holm"])
        .right(scheme.categories.iter().map(|category| &category.name))
        .titled(&scheme.title);
    let headings = all.headings();
    let found = combined(all, scheme);
    let (mut without, mut unranked, mut is_ranked) = (Vec::new(), Vec::new(), false);
    let places = placed(all, |column| found[column].contender, Better::Higher);
    for (exercises, columns) in all.exercise_sets() {
        let places = || places.iter().filter(|place| columns.contains(&place.column));
        let (scored, rest): (Vec<&PlacedColumn>, Vec<&PlacedColumn>) =
            places().partition(|place| found[place.column].mean.is_some());
        without.extend(rest.iter().map(|place| headings[place.column].as_str()));
        let (scored, low): (Vec<&PlacedColumn>, Vec<&PlacedColumn>) =
            scored.into_iter().partition(|place| place.rank.is_some());
        let scored: Vec<&Combined> = scored.iter().map(|place| &found[place.column]).collect();
        let means: Vec<f64> = scored.iter().map(|found| found.mean.unwrap_or(f64::NAN)).collect();
        let has_rivals = means.len() > 1;
        is_ranked |= has_rivals;
        let mut row = |found: &Combined, rank: Option<&Rank>| {
            let is_leader = rank.is_some_and(|rank| rank.leads && has_rivals);
            // Of what is not ranked the bounds are told: an interval would speak of what was asked by chance.
            let interval = found.estimate.filter(|_| rank.is_some()).map(|estimate| estimate.interval);
            let cells = [
                Cell::from(if is_leader { "*" } else { "" }),
                Cell::from(headings[found.column].as_str()),
                Cell::from(exercises.short()),
                Cell::Count(found.n as u64),
                Cell::number(found.mean, 3),
                Cell::number(found.sd, 3),
                Cell::number(interval.map(|interval| interval.low), 3),
                Cell::number(interval.map(|interval| interval.high), 3),
                Cell::p(rank.and_then(|rank| rank.p)),
                Cell::p(rank.and_then(|rank| rank.corrected)),
            ];
            let categories =
                found.categories.iter().map(|score| Cell::number(score.map(|score| score.mean), 3));
            table.row(cells.into_iter().chain(categories));
        };
        for rank in rank(&means, |best, at| test(scheme, scored[best], scored[at])) {
            row(scored[rank.item], Some(&rank));
        }
        for place in low {
            row(&found[place.column], None);
            unranked.push(*place);
        }
    }
    if is_ranked {
        let tests = match scheme.weighting {
            Weighting::Pooled => "Welch's tests of all values",
            Weighting::Categories => "tests of the weighted mean difference on the same questions",
        };
        table.notes.push(format!(
            "* leads: {tests} against the best, down to the first p < 0.05; p Holm: corrected for all comparisons with the best."
        ));
    }
    table.notes.push(
        "sd: of all values, with n below; low, high: 95 % interval of the score, for these tasks with other exercises.".to_owned(),
    );
    for category in &scheme.categories {
        let tasks = category.tasks(all);
        let tasks = if tasks.is_empty() { "no task".to_owned() } else { tasks.join(", ") };
        table.notes.push(format!("{}: {tasks}", category.name));
    }
    table.notes.extend(placing::unranked(&unranked, &headings));
    if !without.is_empty() {
        table.notes.push(format!("Without values in a category, so without a score: {}", without.join(", ")));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::testing::matrix;

    #[test]
    fn who_has_no_rival_does_not_lead() {
        let stars = |models: &[&str]| {
            let scheme = named(&bundled(), "semantic").unwrap();
            let categories =
                scheme.categories.into_iter().filter(|category| category.name == "R-Ana").collect();
            let scheme = Scheme { categories, ..scheme };
            let all = matrix(models, &["RdfFriendCount-turtle-1"], 5, |_, _, n| f64::from(n) / 4.0);
            let mut csv = Vec::new();
            table(&all, &scheme).write_csv(&mut csv).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            csv.lines().filter(|line| line.starts_with('*')).count()
        };
        assert_eq!((stars(&["m"]), stars(&["m", "n"])), (0, 2));
    }

    #[test]
    fn the_best_from_a_part_of_its_plan_does_not_lead() {
        let scheme = named(&bundled(), "semantic").unwrap();
        let categories = scheme.categories.into_iter().filter(|category| category.name == "R-Ana").collect();
        let scheme = Scheme { categories, ..scheme };
        let score = |model, _, n| f64::from(n % 2) / 4.0 + if model == 0 { 0.75 } else { 0.0 };
        let mut all = matrix(&["early", "m", "n"], &["RdfFriendCount-turtle-1"], 3, score);
        all.plan(0, 0, 20);
        let table = table(&all, &scheme);
        let shown = |column: usize| table.rows().iter().map(|row| row[column].shown()).collect::<Vec<_>>();
        assert_eq!(
            (shown(0), shown(1)),
            (
                vec!["*", "*", ""].into_iter().map(str::to_owned).collect(),
                ["m", "n", "early"].map(str::to_owned).to_vec()
            )
        );
        assert_eq!(table.rows()[2][6].value(), None, "no interval of what was asked by chance");
        let told = table.notes.iter().any(|note| note.contains("early (3 of 20 scores): from 0.125 if"));
        assert!(told, "{:?}", table.notes);
    }

    #[test]
    fn what_lacks_a_category_is_named_and_not_ranked() {
        let all = matrix(&["m"], &["Sparql2AnswerListOrga-turtle"], 5, |_, _, _| 1.0);
        let table = table(&all, &named(&bundled(), "sparql").unwrap());
        assert!(table.rows().is_empty());
        assert!(table.notes.iter().any(|note| note.ends_with("without a score: m")), "{:?}", table.notes);
    }
}
