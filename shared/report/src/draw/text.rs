//! The width of texts, estimated without a font: advance widths of a wide sans-serif font (DejaVu Sans), so that text
//! in the narrower fonts of most systems fits too. And where names stand beside points, so that none hides another and none is
//! left out: a name without room is a number, which a key below explains.

/// Advance widths of the characters from space to tilde, in thousandths of the size.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
    500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// Width of any other character: that of an ideograph, the widest in common use.
const OTHER: u16 = 1000;

/// The width of a text in the unit of its size.
pub fn width(text: &str, size: f64) -> f64 {
    let advance = |c: char| {
        let place = (c as usize).checked_sub(32);
        f64::from(place.and_then(|place| WIDTHS.get(place)).copied().unwrap_or(OTHER))
    };
    text.chars().map(advance).sum::<f64>() * size / 1000.0
}

/// The text, cut with an ellipsis if it is wider than `most`.
pub fn fitted(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let room = most - width("…", size);
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, size) > room {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// The text in lines, each cut if one word is wider than `most`.
pub fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fitted(line, size, most)).collect()
}

/// The width of the widest of some texts, at most `most`.
pub fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: f64, most: f64) -> f64 {
    texts.into_iter().map(|text| width(text, size)).fold(0.0, f64::max).min(most)
}

/// Height of a line of text.
const LINE: f64 = 12.0;

/// Shifts of the baseline of a name from the middle of its point, the nearest first.
const SHIFTS: [f64; 7] = [4.0, 16.0, -8.0, 28.0, -20.0, 40.0, -32.0];

/// Where a label stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Label {
    /// The whole name, with the beginning of its baseline.
    Name((f64, f64)),
    /// A number for the key, with the beginning of its baseline.
    Number(usize, (f64, f64)),
}

/// The part of the line that a text takes.
#[derive(Clone, Copy)]
struct Taken {
    left: f64,
    right: f64,
    line: f64,
}

impl Taken {
    fn is_clear_of(self, other: Self) -> bool {
        self.left > other.right || self.right < other.left || (self.line - other.line).abs() >= LINE
    }
}

/// Places the names of points, in their order, between the left and the right end of the plot.
pub fn placed(points: &[(f64, f64)], names: &[String], size: f64, ends: (f64, f64)) -> Vec<Label> {
    let circles: Vec<Taken> =
        points.iter().map(|&(x, y)| Taken { left: x - 6.0, right: x + 6.0, line: y + 4.0 }).collect();
    let mut taken: Vec<Taken> = Vec::new();
    let mut numbers = 0;
    let mut labels = Vec::with_capacity(points.len());
    for (&(x, y), name) in points.iter().zip(names) {
        let find = |text: &str, taken: &[Taken]| {
            let length = width(text, size);
            let begins = [x + 9.0, x - 9.0 - length];
            let spots = SHIFTS.into_iter().flat_map(|shift| begins.map(|left| (left, y + shift)));
            let mut spots = spots.map(|(left, line)| Taken { left, right: left + length, line });
            spots.find(|spot| {
                let is_inside = spot.left >= ends.0 && spot.right <= ends.1;
                is_inside && circles.iter().chain(taken).all(|other| spot.is_clear_of(*other))
            })
        };
        if let Some(spot) = find(name, &taken) {
            taken.push(spot);
            labels.push(Label::Name((spot.left, spot.line)));
            continue;
        }
        numbers += 1;
        // A number without room of its own stands on its point all the same.
        let text = numbers.to_string();
        let beside = Taken { left: x + 7.0, right: x + 7.0 + width(&text, size), line: y + 4.0 };
        let spot = find(&text, &taken).unwrap_or(beside);
        taken.push(spot);
        labels.push(Label::Number(numbers, (spot.left, spot.line)));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_texts_have_several_lines_and_no_word_is_lost() {
        let text = "box: quartiles, line: median, whiskers: furthest value";
        let lines = wrapped(text, 11.0, 150.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 11.0) <= 150.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrapped(text, 11.0, 900.0).len(), 1);
    }

    #[test]
    fn what_is_cut_fits() {
        assert_eq!(fitted("short", 12.0, 100.0), "short");
        let cut = fitted(&"wide ".repeat(50), 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(fitted("any", 12.0, 0.0), "…");
        assert!(width("iiii", 12.0) < width("MMMM", 12.0));
    }

    #[test]
    fn names_stand_beside_their_points_and_crowds_have_numbers() {
        let names: Vec<String> = (0..40).map(|n| format!("a long name of model {n}")).collect();
        let apart = placed(&[(50.0, 50.0), (50.0, 90.0)], &names[..2], 11.0, (0.0, 500.0));
        assert_eq!(apart, [Label::Name((59.0, 54.0)), Label::Name((59.0, 94.0))]);
        let crowd = placed(&[(250.0, 50.0); 40], &names, 11.0, (0.0, 500.0));
        let numbers = crowd.iter().filter(|label| matches!(label, Label::Number(..))).count();
        assert!(crowd.len() == 40 && numbers > 20, "{numbers}");
    }

    proptest! {
        #[test]
        fn no_name_hides_another_and_every_point_has_a_label(
            points in prop::collection::vec((10.0..490.0_f64, 10.0..390.0_f64), 0..50),
        ) {
            let names: Vec<String> = (0..points.len()).map(|n| format!("model {n}")).collect();
            let labels = placed(&points, &names, 11.0, (0.0, 500.0));
            prop_assert_eq!(labels.len(), points.len());
            let spots: Vec<Taken> = labels.iter().zip(&names).filter_map(|(label, name)| match label {
                Label::Name((left, line)) => Some(Taken { left: *left, right: left + width(name, 11.0), line: *line }),
                Label::Number(..) => None,
            }).collect();
            for (at, spot) in spots.iter().enumerate() {
                prop_assert!(spots[..at].iter().all(|other| spot.is_clear_of(*other)));
                prop_assert!(spot.left >= 0.0 && spot.right <= 500.0);
            }
        }
    }
}
