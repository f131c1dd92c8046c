//! The rate of the last hour as a curve.

use domain::control::{BenchmarkView, MINUTES_MAX};
use maud::{Markup, html};

/// Width and height of the drawing in its own units; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 80.0;

/// A curve of fewer minutes shows nothing.
const MINUTES_MIN: usize = 2;

/// Dialogues per minute, the latest minute at the right end.
pub(super) fn curve(view: &BenchmarkView) -> Markup {
    let minutes = &view.per_minute;
    let Some(most) = minutes.iter().max().filter(|most| minutes.len() >= MINUTES_MIN && **most > 0) else {
        return html! {};
    };
    let last = minutes.last().copied().unwrap_or_default();
    let step = WIDTH / (MINUTES_MAX - 1) as f64;
    let left = WIDTH - step * (minutes.len() - 1) as f64;
    let height = |count: u64| HEIGHT - 2.0 - count as f64 / *most as f64 * (HEIGHT - 6.0);
    let points: Vec<String> = minutes
        .iter()
        .enumerate()
        .map(|(minute, count)| format!("{:.1},{:.1}", left + step * minute as f64, height(*count)))
        .collect();
    let words = format!(
        "Dialogues per minute in the last {} minutes: at most {most}, {last} in the last one",
        minutes.len()
    );
    html! {
        figure.curve {
            figcaption { "Dialogues per minute, " (minutes.len()) " minutes; at most " (most) ", last " (last) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(words) preserveAspectRatio="none" {
                line x1="0" x2=(WIDTH) y1=(HEIGHT - 1.0) y2=(HEIGHT - 1.0) {}
                polyline points=(points.join(" ")) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(per_minute: Vec<u64>) -> String {
        curve(&BenchmarkView { per_minute, ..BenchmarkView::default() }).into_string()
    }

    #[test]
    fn the_latest_minute_is_at_the_right_and_nothing_is_drawn_of_nothing() {
        assert!(drawn(vec![]).is_empty() && drawn(vec![7]).is_empty() && drawn(vec![0; 30]).is_empty());
        let two = drawn(vec![10, 40]);
        assert!(two.contains("589.8,59.5 600.0,4.0"), "{two}");
        assert!(two.contains("at most 40, 40 in the last one"), "{two}");
        assert!(drawn(vec![1; MINUTES_MAX]).contains("points=\"0.0,4.0 "));
    }
}
