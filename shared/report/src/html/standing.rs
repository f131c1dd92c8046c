//! Who is better, and how sure that is: a sentence, a dot with its interval for each model, then the table.
//!
//! The dots are a table, so that it sorts, filters, prints and fits a phone like one.

use domain::ranking::Bounds;
use maud::{Markup, html};

use crate::analysis::cells::totals;
use crate::analysis::placing::RankInterval;
use crate::analysis::placing::{self, PlacedColumn, ranks};
use crate::dialogues::{ColumnId, Dialogues};
use crate::html::ReportPage;
use crate::html::tables::{CellLook, ShownTable, folded};
use crate::table::{Cell, Table, printable};
use crate::views::{combined, statistics};
use crate::words::bounds;

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
        let bounds = place.bounds.filter(|_| place.is_unranked());
        let interval = totals[column].interval();
        Some(Dot {
            name: &headings[column],
            rank: ranks[column],
            mean: totals[column].mean?,
            ends: bounds.map(|of| (of.low, of.high)).or(interval.map(|of| (of.low, of.high))),
            is_bounded: bounds.is_some(),
        })
    };
    let found: Vec<Dot<'_>> = placed.iter().filter_map(dot).collect();
    html! { @if !found.is_empty() { (dots(&found)) } }
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

/// Steps between marks of the axis, of which the first is taken that gives at most [`MARKS_MAX`].
const STEPS: [f64; 3] = [0.05, 0.1, 0.2];

const MARKS_MAX: f64 = 6.0;

/// A model.
struct Dot<'a> {
    name: &'a str,
    rank: Option<RankInterval>,
    mean: f64,
    /// Of its interval.
    ends: Option<(f64, f64)>,
    /// Whether it is not ranked, so that its ends are those between which the mean will lie.
    is_bounded: bool,
}

impl Dot<'_> {
    /// Its ends in words.
    fn told(&self) -> String {
        match self.ends {
            None => "no interval: fewer than two answers".to_owned(),
            Some((low, high)) if self.is_bounded => format!("not ranked: {}", bounds(Bounds { low, high })),
            Some((low, high)) => format!("{low:.3} to {high:.3}"),
        }
    }
}

/// The part of the scale from 0 to 1 that is shown.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Round ends around all intervals.
    fn around(dots: &[Dot<'_>]) -> Self {
        let ends = dots.iter().map(|dot| dot.ends.unwrap_or((dot.mean, dot.mean)));
        let (low, high) = ends.fold((1.0_f64, 0.0_f64), |(low, high), end| (low.min(end.0), high.max(end.1)));
        let span = (high - low).max(0.0);
        let step = STEPS.into_iter().find(|step| span / step <= MARKS_MAX).unwrap_or(0.2);
        let (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        Self { low, high: high.max(low + step), step }
    }

    /// The position of a value, in per cent of the width.
    fn at(&self, value: f64) -> String {
        // Some room at both ends for the marks.
        format!("{:.2}%", 2.0 + 96.0 * ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    fn marks(&self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(|number| self.low + f64::from(number) * self.step).collect()
    }

    /// Its marks, those at the ends inside of it.
    fn drawing(&self, marks: &[f64]) -> Markup {
        let anchor = |number: usize| match number {
            0 => "start",
            last if last + 1 == marks.len() => "end",
            _ => "middle",
        };
        html! {
            svg.kgf.axis width="100%" height="16" aria-hidden="true" {
                @for (number, mark) in marks.iter().enumerate() {
                    text x=(self.at(*mark)) y="12" font-size="11" text-anchor=(anchor(number)) class="soft" { (format!("{mark:.2}")) }
                }
            }
        }
    }
}

/// The dots in the order given.
fn dots(models: &[Dot<'_>]) -> Markup {
    let axis = Axis::around(models);
    let marks = axis.marks();
    let columns = Table::default().left(["model"]).right(["mean of tasks", "rank", INTERVAL]);
    let mut table = columns.titled("Means and their intervals");
    for dot in models {
        table.row([
            Cell::from(dot.name),
            Cell::Number(dot.mean, 3),
            dot.rank.map_or(Cell::Empty, |rank| Cell::Told(rank.to_string(), Some(rank.best as f64))),
            Cell::Told(dot.told(), dot.ends.map(|(low, _)| low)),
        ]);
    }
    let is_drawn = |column: usize| table.headings()[column].name == INTERVAL;
    ShownTable {
        class: "dots",
        aside: &|column| {
            if is_drawn(column) {
                axis.drawing(&marks)
            } else {
                html! {}
            }
        },
        look: &|row, column| CellLook {
            content: is_drawn(column).then(|| bar(&axis, &marks, &models[row])),
            ..CellLook::default()
        },
        ..ShownTable::of(&table)
    }
    .markup()
}

/// The column that is drawn.
const INTERVAL: &str = "95 % interval";

fn bar(axis: &Axis, marks: &[f64], dot: &Dot<'_>) -> Markup {
    html! {
        svg.kgf width="100%" height="20" role="img" aria-label=(dot.told()) {
            title { (dot.told()) }
            @for mark in marks { line class="faint" x1=(axis.at(*mark)) x2=(axis.at(*mark)) y1="0" y2="20" {} }
            @if let Some((low, high)) = dot.ends {
                @if dot.is_bounded { line class="line" stroke-width="1.5" stroke-dasharray="4 3" x1=(axis.at(low)) x2=(axis.at(high)) y1="10" y2="10" {} }
                @else { line class="accent" stroke-width="5" x1=(axis.at(low)) x2=(axis.at(high)) y1="10" y2="10" {} }
            }
            circle class="dot" cx=(axis.at(dot.mean)) cy="10" r="3.5" {}
        }
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

    #[test]
    fn every_model_has_a_dot_and_the_axis_holds_all_intervals() {
        let dot = |name, mean, ends| Dot { name, rank: None, mean, ends, is_bounded: false };
        let models = [
            Dot { rank: Some(RankInterval { best: 1, worst: 2 }), ..dot("<a>", 0.5, Some((0.41, 0.58))) },
            dot("b", 0.66, None),
        ];
        let axis = Axis::around(&models);
        assert!(axis.low <= 0.41 && axis.low > 0.3 && axis.high >= 0.66 && axis.high < 0.8);
        let page = dots(&models).into_string();
        assert_eq!(page.matches("<circle").count(), 2);
        assert!(
            page.contains("&lt;a&gt;") && page.contains("0.410 to 0.580") && page.contains("no interval")
        );
        assert!(page.contains("data-v=\"1\">1–2<"), "{page}");
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_value_has_a_length() {
        for models in [vec![], vec![Dot { name: "a", rank: None, mean: 1.0, ends: None, is_bounded: false }]]
        {
            let axis = Axis::around(&models);
            assert!(axis.high > axis.low && axis.marks().len() < 9, "{} {}", axis.low, axis.high);
        }
    }
}
