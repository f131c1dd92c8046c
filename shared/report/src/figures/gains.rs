//! The effect of feedback: first answer and best answer, over tasks in which a model may correct itself.

use domain::control::Better;
use domain::ranking::Contender;
use present::figure::scale::{Scale, short, ticks};
use present::figure::svg::{Anchor, SIZE, Svg};
use present::figure::text::{fitted, widest};

use super::{colours, mixed};
use crate::analysis::cells::totals;
use crate::analysis::placing::placed;
use crate::dialogues::Dialogues;
use crate::plot::{DrawnPlot, PagePlace, Plot};

/// See [`gains`].
pub static PLOT: Plot = Plot {
    heading: "First answer and best answer",
    place: |_| PagePlace::Folded,
    draw: |all, _| DrawnPlot::one("gains", gains(all)),
};

const ROW: f64 = 22.0;
const WIDTH: f64 = 820.0;
const TOP: f64 = 58.0;
const NAMES_MAX: f64 = 260.0;

/// One line per model, from its mean first answer to its mean best one; the best model first.
fn gains(all: &Dialogues) -> Svg {
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
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 46.0, "First answer and best answer");
    let left = 24.0 + widest(rows.iter().map(|row| headings[row.0].as_str()), SIZE, NAMES_MAX);
    let x = Scale::linear((0.0, 1.0), (left, WIDTH - 130.0));
    for tick in ticks((0.0, 1.0)) {
        svg.line((x.at(tick), TOP - 6.0), (x.at(tick), bottom), "faint");
        svg.text((x.at(tick), TOP - 12.0), Anchor::Middle, 11.0, "soft", &short(tick));
    }
    svg.text((WIDTH - 12.0, TOP - 12.0), Anchor::End, 11.0, "soft", "gain");
    for (number, (column, first, best)) in rows.iter().enumerate() {
        let (y, colour) = (TOP + ROW * (number as f64 + 0.5), colours[*column]);
        let name = &headings[*column];
        let tip = format!("{name}: first {first:.3}, best {best:.3}");
        svg.of_model(name, |svg| {
            svg.text((left - 10.0, y + 4.0), Anchor::End, SIZE, "", &fitted(name, SIZE, NAMES_MAX));
            svg.stroke((x.at(*first), y), (x.at(*best), y), colour, 3.0);
            svg.circle((x.at(*first), y), 4.5, None, &tip);
            svg.circle((x.at(*best), y), 5.0, Some(colour), &tip);
            svg.text((WIDTH - 12.0, y + 4.0), Anchor::End, SIZE, "", &format!("{:+.3}", best - first));
        });
    }
    let marks = "open: mean of first answers, filled: mean of best answers; tasks that give feedback, values from 0 to 1";
    svg.legend(&[Some(marks), mixed(all)].into_iter().flatten().collect::<Vec<_>>());
    svg
}
