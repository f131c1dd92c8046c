//! The width of texts, estimated without a font: advance widths of a wide sans-serif font (DejaVu Sans), so that text
//! in the narrower fonts of most systems fits too.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
