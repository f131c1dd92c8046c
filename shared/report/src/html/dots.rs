//! All models at one glance: a dot for each mean, a bar for its interval. A table, so that it sorts, filters, prints and fits a
//! phone like one.

use domain::ranking::Bounds;
use maud::{Markup, html};

use crate::stats::Interval;
use crate::table::printable;
use crate::words::bounds;

/// Steps between marks of the axis, of which the first is taken that gives at most [`MARKS_MAX`].
const STEPS: [f64; 3] = [0.05, 0.1, 0.2];

const MARKS_MAX: f64 = 6.0;

/// A model.
pub struct Dot<'a> {
    pub name: &'a str,
    /// Its place, or the places that it may have.
    pub rank: Option<String>,
    pub mean: f64,
    pub reach: Option<DotReach>,
}

/// What a bar shows.
#[derive(Clone, Copy)]
pub enum DotReach {
    /// Of the mean.
    Interval(Interval),
    /// Of a model that is not ranked: what its mean may still become.
    Bounds(Bounds),
}

impl DotReach {
    fn ends(self) -> (f64, f64) {
        match self {
            Self::Interval(Interval { low, high }) | Self::Bounds(Bounds { low, high }) => (low, high),
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
        let ends = dots.iter().map(|dot| dot.reach.map_or((dot.mean, dot.mean), DotReach::ends));
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
}

/// The dots in the order given; `mean` is the heading of the numbers.
pub fn dots(title: &str, mean: &str, models: &[Dot<'_>]) -> Markup {
    let axis = Axis::around(models);
    let marks = axis.marks();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(printable(title)) { table.sortable.dots {
            thead { tr {
                th scope="col" { button type="button" { "model" } }
                th.number scope="col" { button type="button" { (mean) } }
                th.number scope="col" { button type="button" title="the places that it may have" { "rank" } }
                th scope="col" { span.unseen { "95 % interval" }
                    svg.kgf.axis width="100%" height="16" aria-hidden="true" {
                        @for (number, mark) in marks.iter().enumerate() {
                            text x=(axis.at(*mark)) y="12" font-size="11" text-anchor=(anchor(number, marks.len())) class="soft" { (format!("{mark:.2}")) }
                        }
                    } }
            } }
            tbody { @for dot in models { tr {
                th scope="row" { (printable(dot.name)) }
                td.number data-v=(dot.mean) { (format!("{:.3}", dot.mean)) }
                td.number data-v=[dot.rank.as_deref().and_then(first)] { (dot.rank.as_deref().unwrap_or("-")) }
                td.bar { (bar(&axis, &marks, dot)) }
            } } }
        } }
    }
}

/// Marks at the ends stand inside.
fn anchor(number: usize, count: usize) -> &'static str {
    match number {
        0 => "start",
        last if last + 1 == count => "end",
        _ => "middle",
    }
}

/// The best place, for sorting.
fn first(rank: &str) -> Option<u64> {
    rank.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn bar(axis: &Axis, marks: &[f64], dot: &Dot<'_>) -> Markup {
    let told = match dot.reach {
        None => "no interval: fewer than two answers".to_owned(),
        Some(DotReach::Interval(Interval { low, high })) => format!("{low:.3} to {high:.3}"),
        Some(DotReach::Bounds(found)) => format!("not ranked: {}", bounds(found)),
    };
    html! {
        svg.kgf width="100%" height="20" role="img" aria-label=(told) {
            title { (told) }
            @for mark in marks { line class="faint" x1=(axis.at(*mark)) x2=(axis.at(*mark)) y1="0" y2="20" {} }
            @if let Some(reach) = dot.reach {
                @let (low, high) = reach.ends();
                @match reach {
                    DotReach::Interval(_) => line class="accent" stroke-width="5" x1=(axis.at(low)) x2=(axis.at(high)) y1="10" y2="10" {},
                    DotReach::Bounds(_) => line class="line" stroke-width="1.5" stroke-dasharray="4 3" x1=(axis.at(low)) x2=(axis.at(high)) y1="10" y2="10" {},
                }
            }
            circle class="dot" cx=(axis.at(dot.mean)) cy="10" r="3.5" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_dot_and_the_axis_holds_all_intervals() {
        let reach = Some(DotReach::Interval(Interval { low: 0.41, high: 0.58 }));
        let models = [
            Dot { name: "<a>", rank: Some("1–2".to_owned()), mean: 0.5, reach },
            Dot { name: "b", rank: None, mean: 0.66, reach: None },
        ];
        let axis = Axis::around(&models);
        assert!(axis.low <= 0.41 && axis.low > 0.3 && axis.high >= 0.66 && axis.high < 0.8);
        let page = dots("Models", "mean of tasks", &models).into_string();
        assert_eq!(page.matches("<circle").count(), 2);
        assert!(
            page.contains("&lt;a&gt;") && page.contains("0.410 to 0.580") && page.contains("no interval")
        );
        assert_eq!((first("12–14"), first("-")), (Some(12), None));
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_value_has_a_length() {
        for models in [vec![], vec![Dot { name: "a", rank: None, mean: 1.0, reach: None }]] {
            let axis = Axis::around(&models);
            assert!(axis.high > axis.low && axis.marks().len() < 9, "{} {}", axis.low, axis.high);
        }
    }
}
