//! The table of a scheme's combined scores, with the group of leading models.

use present::table::{Cell, Table};

use crate::analysis::combined::{Combined, combined, test};
use crate::analysis::leaders::rank;
use crate::analysis::scheme::{Scheme, Weighting};
use crate::dialogues::Dialogues;
use crate::view::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "combined",
    about: "Combined scores of a scheme, with the leading group",
    is_summary: true,
    table: |all, options| options.order.of(table(all, options.scheme)),
};

/// One row per model within each set of exercises, best first. A star marks the models of the leading group; a model
/// without others to compare with has none.
pub fn table(all: &Dialogues, scheme: &Scheme) -> Table {
    let mut table = Table::default()
        .left(["", "model", "exercises"])
        .right(["n", "score", "sd", "low", "high", "p", "p Holm"])
        .right(scheme.categories.iter().map(|category| &category.name))
        .titled(&scheme.title);
    let headings = all.headings();
    let found = combined(all, scheme);
    let (mut without, mut is_ranked) = (Vec::new(), false);
    for (exercises, columns) in all.exercise_sets() {
        let (scored, rest): (Vec<&Combined>, Vec<&Combined>) =
            columns.iter().map(|&column| &found[column]).partition(|found| found.mean.is_some());
        without.extend(rest.iter().map(|found| headings[found.column].as_str()));
        let means: Vec<f64> = scored.iter().map(|found| found.mean.unwrap_or(f64::NAN)).collect();
        let has_rivals = means.len() > 1;
        is_ranked |= has_rivals;
        for rank in rank(&means, |best, at| test(scheme, scored[best], scored[at])) {
            let found = scored[rank.item];
            let cells = [
                Cell::from(if rank.leads && has_rivals { "*" } else { "" }),
                Cell::from(headings[found.column].as_str()),
                Cell::from(exercises.short()),
                Cell::Count(found.n as u64),
                Cell::number(found.mean, 3),
                Cell::number(found.sd, 3),
                Cell::number(found.estimate.map(|estimate| estimate.interval.low), 3),
                Cell::number(found.estimate.map(|estimate| estimate.interval.high), 3),
                Cell::p(rank.p),
                Cell::p(rank.corrected),
            ];
            let categories =
                found.categories.iter().map(|score| Cell::number(score.map(|score| score.mean), 3));
            table.row(cells.into_iter().chain(categories));
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
    fn what_lacks_a_category_is_named_and_not_ranked() {
        let all = matrix(&["m"], &["Sparql2AnswerListOrga-turtle"], 5, |_, _, _| 1.0);
        let table = table(&all, &named(&bundled(), "sparql").unwrap());
        assert!(table.rows().is_empty());
        assert!(table.notes.iter().any(|note| note.ends_with("without a score: m")), "{:?}", table.notes);
    }
}
