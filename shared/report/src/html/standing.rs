//! Who is better, and how sure that is: a sentence, a dot with its interval for each model, then the table.

use maud::{Markup, html};

use super::ReportPage;
use super::dots::{Dot, DotReach, dots};
use super::tables::folded;
use crate::analysis::cells::totals;
use crate::analysis::placing::{self, PlacedColumn};
use crate::analysis::ranks::ranks;
use crate::dialogues::{ColumnId, Dialogues};
use crate::table::printable;
use crate::views::{combined, statistics};

/// Leaders that a sentence names; of more, it says how many there are.
const NAMED_MAX: usize = 5;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!all.is_empty()).then(|| {
        let (sets, placed) = (all.exercise_sets(), placing::by_mean(all));
        html! {
            @for (exercises, columns) in &sets {
                @if sets.len() > 1 { h3 { (printable(&exercises.to_string())) } }
                @let placed: Vec<PlacedColumn> = placed.iter().filter(|place| columns.contains(&place.column)).copied().collect();
                @if let Some(words) = leading(all, &placed) { p.leading { (printable(&words)) } }
                (of_set(all, &placed))
            }
            (folded(statistics::by_model(all)))
            @let combined = combined::table(all, report.combined);
            @if !combined.rows().is_empty() { h3 { (printable(&report.combined.title)) } (folded(combined)) }
        }
    })
}

fn of_set(all: &Dialogues, placed: &[PlacedColumn]) -> Markup {
    let (headings, totals, ranks) = (all.headings(), totals(all), ranks(all));
    let dot = |place: &PlacedColumn| {
        let column = place.column;
        let reach = match place.bounds.filter(|_| place.is_unranked()) {
            Some(bounds) => Some(DotReach::Bounds(bounds)),
            None => totals[column].interval().map(DotReach::Interval),
        };
        let rank = ranks[column].map(|rank| rank.to_string());
        Some(Dot { name: &headings[column], rank, mean: totals[column].mean?, reach })
    };
    let found: Vec<Dot<'_>> = placed.iter().filter_map(dot).collect();
    if found.is_empty() {
        html! {}
    } else {
        dots("Means and their intervals", "mean of tasks", &found)
    }
}

/// Who leads, as far as 95 % intervals tell it; `None` where there is nobody to compare with.
fn leading(all: &Dialogues, placed: &[PlacedColumn]) -> Option<String> {
    let (headings, ranks) = (all.headings(), ranks(all));
    let may_lead = |column: ColumnId| ranks[column].is_some_and(|rank| rank.best == 1);
    let first = placed.iter().map(|place| place.column).filter(|column| may_lead(*column));
    let names: Vec<&str> = first.map(|column| headings[column].as_str()).collect();
    let are_all_ranked = !placed.iter().any(PlacedColumn::is_unranked);
    match names.as_slice() {
        [] => None,
        [one] if are_all_ranked => Some(format!("{one} is better than all others, at 95 % confidence.")),
        [one] => Some(format!("{one} is better than all others that are ranked, at 95 % confidence.")),
        [rest @ .., last] if names.len() <= NAMED_MAX => {
            Some(format!("Which one is best is not known at 95 % confidence: {} or {last}.", rest.join(", ")))
        }
        many => Some(format!(
            "Which one is best is not known at 95 % confidence: it may be any of {} models, of which {} has the highest mean.",
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
            leading(&all, &placing::by_mean(&all))
        };
        assert_eq!(told(&[0.2, 0.9]).unwrap(), "b is better than all others, at 95 % confidence.");
        assert_eq!(
            told(&[0.5, 0.5, 0.1]).unwrap(),
            "Which one is best is not known at 95 % confidence: a or b."
        );
        assert!(told(&[0.5; 7]).unwrap().contains("any of 7 models"));
        assert_eq!(told(&[0.5]), None);
    }

    #[test]
    fn who_has_a_part_of_its_plan_does_not_lead_and_shows_its_bounds() {
        let mut all =
            matrix(&["early", "a", "b"], &["s", "t", "u"], 20, |model, _, _| [1.0, 0.6, 0.1][model]);
        (0..3).for_each(|task| all.plan(0, task, 140));
        let placed = placing::by_mean(&all);
        let told = leading(&all, &placed).unwrap();
        assert!(!told.contains("early"), "{told}");
        let page = of_set(&all, &placed).into_string();
        assert!(page.find("early") > page.find(">b<"), "{page}");
        assert!(
            page.contains("not ranked: from 0.143 if all that is missing is wrong to 1.000 if it is right")
        );
    }
}
