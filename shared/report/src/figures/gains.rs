//! The effect of feedback: first answer and best answer, over tasks in which a model may correct itself.

use crate::figures::rows::Rows;
use crate::figures::scale::{Scale, short, ticks};
use crate::figures::svg::{Anchor, Breadth, Svg};
use domain::control::Better;
use domain::ranking::Contender;

use super::{colours, mixed};
use crate::analysis::cells::totals;
use crate::analysis::placing::placed;
use crate::dialogues::Dialogues;
use crate::plot::{DrawnPlot, PagePlace, Plot};

/// See [`gains`].
pub static PLOT: Plot = Plot {
    heading: "First answer and best answer",
    place: |all| match totals(all).iter().any(|total| total.gain.is_some()) {
        true => PagePlace::Folded,
        false => PagePlace::Nowhere,
    },
    draw: |all, _, breadth| DrawnPlot::one("gains", gains(all, breadth)),
};

const ROW: f64 = 22.0;
const TOP: f64 = 58.0;
const NUMBERS: f64 = 110.0;

/// One line per model, from its mean first answer to its mean best one; the best model first.
fn gains(all: &Dialogues, breadth: Breadth) -> Svg {
    let headings = all.headings();
    let colours = colours(all);
    let mut rows: Vec<(usize, f64, f64)> = totals(all)
        .iter()
        .filter_map(|total| total.gain.map(|(first, best)| (total.column, first, best)))
        .collect();
    let best = |column: usize| rows.iter().find(|row| row.0 == column).map(|row| row.2);
    let contender = |column: usize| Contender { value: best(column), ..totals(all)[column].contender };
    let order = placed(all, contender, Better::Higher);
    rows.sort_by_key(|row| order.iter().position(|place| place.column == row.0));
    let places = Rows::new(breadth, (TOP, ROW, NUMBERS), rows.iter().map(|row| headings[row.0].as_str()));
    let bottom = places.bottom(rows.len());
    let mut svg = Svg::new(breadth.width(), bottom, "First answer and best answer");
    let x = Scale::linear((0.0, 1.0), places.ends);
    for tick in ticks((0.0, 1.0)) {
        svg.line((x.at(tick), TOP - 6.0), (x.at(tick), bottom), "faint");
        svg.text((x.at(tick), TOP - 12.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    if breadth == Breadth::Wide {
        svg.text((breadth.width() - 12.0, TOP - 12.0), Anchor::End, 11.0, "soft", "gain");
    }
    for (number, (column, first, best)) in rows.iter().enumerate() {
        let (y, colour) = (places.middle(number), colours[*column]);
        let name = &headings[*column];
        let tip = format!("{name}: first {first:.3}, best {best:.3}");
        svg.of_model(name, |svg| {
            places.label(svg, number, name, &format!("{:+.3}", best - first));
            svg.stroke((x.at(*first), y), (x.at(*best), y), colour, 3.0);
            svg.circle((x.at(*first), y), 4.5, None, &tip);
            svg.circle((x.at(*best), y), 5.0, Some(colour), &tip);
        });
    }
    let marks = "open: mean of first answers, filled: mean of best answers; tasks that give feedback, values from 0 to 1";
    svg.legend(&[Some(marks), mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}
