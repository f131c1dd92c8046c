//! Who is better, and how sure that is: a sentence, a dot with its interval for each model, then the table.

use maud::{Markup, html};
use present::table::printable;

use super::ReportPage;
use super::dots::{Dot, dots};
use super::tables::folded;
use crate::analysis::cells::totals;
use crate::analysis::ranks::ranks;
use crate::dialogues::{ColumnId, Dialogues};
use crate::views::{combined, statistics};

/// Leaders that a sentence names; of more, it says how many there are.
const NAMED_MAX: usize = 5;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!all.is_empty()).then(|| {
        let sets = all.exercise_sets();
        html! {
            @for (exercises, columns) in &sets {
                @if sets.len() > 1 { h3 { (printable(&exercises.to_string())) } }
                @if let Some(words) = leading(all, columns) { p.leading { (printable(&words)) } }
                (of_set(all, columns))
            }
            (folded(statistics::by_model(all)))
            h3 { (printable(&report.combined.title)) }
            @match combined::table(all, report.combined) {
                found if found.rows().is_empty() => p.note { "No model has values in every category of this score." },
                found => (folded(found)),
            }
        }
    })
}

fn of_set(all: &Dialogues, columns: &[ColumnId]) -> Markup {
    let (headings, totals, ranks) = (all.headings(), totals(all), ranks(all));
    let dot = |&column: &ColumnId| {
        Some(Dot {
            name: &headings[column],
            rank: ranks[column].map(|rank| rank.to_string()),
            mean: totals[column].mean?,
            interval: totals[column].interval,
        })
    };
    let mut found: Vec<Dot<'_>> = columns.iter().filter_map(dot).collect();
    found.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    dots("Means and their intervals", "mean of tasks", &found)
}

/// Who leads, and whether that is certain; `None` where there is nobody to compare with.
fn leading(all: &Dialogues, columns: &[ColumnId]) -> Option<String> {
    let (headings, totals, ranks) = (all.headings(), totals(all), ranks(all));
    let mut first: Vec<ColumnId> =
        columns.iter().copied().filter(|&column| ranks[column].is_some_and(|rank| rank.best == 1)).collect();
    first.sort_by(|&a, &b| totals[b].mean.unwrap_or(0.0).total_cmp(&totals[a].mean.unwrap_or(0.0)));
    let names: Vec<&str> = first.iter().map(|&column| headings[column].as_str()).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("{one} is better than all others, for certain.")),
        [rest @ .., last] if names.len() <= NAMED_MAX => {
            Some(format!("Which one is best is not certain: {} or {last}.", rest.join(", ")))
        }
        many => Some(format!(
            "Which one is best is not certain: it may be any of {} models, of which {} has the highest mean.",
            many.len(),
            many[0]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn who_leads_is_said_as_far_as_it_is_known() {
        let tasks: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
        let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
        let told = |skill: &'static [f64]| {
            let names = &["a", "b", "c", "d", "e", "f", "g"][..skill.len()];
            let all = matrix(names, &tasks, 20, |model, task, n| {
                skill[model] + if (task + n as usize).is_multiple_of(2 + model) { 0.05 } else { 0.0 }
            });
            leading(&all, &(0..skill.len()).collect::<Vec<_>>())
        };
        assert_eq!(told(&[0.2, 0.9]).unwrap(), "b is better than all others, for certain.");
        assert_eq!(told(&[0.5, 0.5, 0.1]).unwrap(), "Which one is best is not certain: a or b.");
        assert!(told(&[0.5; 7]).unwrap().contains("any of 7 models"));
        assert_eq!(told(&[0.5]), None);
    }
}
