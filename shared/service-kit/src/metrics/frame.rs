//! Series that their source replaces as a whole each time.
//!
//! A counter of the `metrics` crate lives as long as its process. Series of a run or a model server must end with it. A
//! [`Frame`] holds all series that one source has now and replaces the frame before. Values are written as text when
//! they are set, so that a scrape only copies them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{MetricDefinition, MetricKind};

/// Series of one family that one source may state; further ones are left out and counted in
/// [`DROPPED_SERIES`]. A source states what matters most first.
pub const FAMILY_SERIES_MAX: usize = 5_000;

/// Series left out of the latest frames because their family was full.
pub const DROPPED_SERIES: &str = "kgfleet_dropped_series";

/// The series of one source at one time.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    families: BTreeMap<&'static str, Family>,
    dropped: u64,
}

#[derive(Clone, Debug, Default)]
struct Family {
    series: usize,
    lines: String,
}

impl Frame {
    /// States the value of a series. Each may be stated once.
    pub fn set(&mut self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let family = self.families.entry(name).or_default();
        if family.series >= FAMILY_SERIES_MAX {
            self.dropped += 1;
            return;
        }
        family.series += 1;
        write_series(&mut family.lines, name, labels, value);
    }

    /// States one series for each of `words`, as the value of `label`: 1 for the word `now`, 0 for the others.
    pub fn one_of(
        &mut self,
        name: &'static str,
        labels: &[(&'static str, &str)],
        label: &'static str,
        words: &[&str],
        now: &str,
    ) {
        for word in words {
            let labels: Vec<(&'static str, &str)> = labels.iter().copied().chain([(label, *word)]).collect();
            self.set(name, &labels, f64::from(u8::from(*word == now)));
        }
    }

    /// Number of series in a family.
    pub fn series(&self, name: &str) -> usize {
        self.families.get(name).map_or(0, |family| family.series)
    }
}

/// Writes one line of Prometheus's text format.
pub(super) fn write_series(out: &mut String, name: &str, labels: &[(&'static str, &str)], value: f64) {
    out.push_str(name);
    for (at, (label, text)) in labels.iter().enumerate() {
        out.push(if at == 0 { '{' } else { ',' });
        out.push_str(label);
        out.push_str("=\"");
        for c in text.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    if !labels.is_empty() {
        out.push('}');
    }
    // Writing to a String cannot fail. Prometheus reads `inf` and `NaN` as Rust writes them.
    let _ = writeln!(out, " {value}");
}

/// The frames of this process, by source.
static FRAMES: Mutex<BTreeMap<&'static str, Frame>> = Mutex::new(BTreeMap::new());

fn frames() -> MutexGuard<'static, BTreeMap<&'static str, Frame>> {
    // Whole at any moment, also where a panic passed through.
    FRAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces the frame of a source.
pub fn state(source: &'static str, frame: Frame) {
    frames().insert(source, frame);
}

/// All frames in Prometheus's text format, with the help of these definitions.
pub(super) fn render(definitions: &BTreeMap<&'static str, MetricDefinition>, out: &mut String) {
    let frames = frames();
    let names: BTreeSet<&'static str> =
        frames.values().flat_map(|frame| frame.families.keys().copied()).collect();
    for name in names {
        header(out, name, definitions.get(name));
        for family in frames.values().filter_map(|frame| frame.families.get(name)) {
            out.push_str(&family.lines);
        }
    }
    if definitions.contains_key(DROPPED_SERIES) {
        let dropped: u64 = frames.values().map(|frame| frame.dropped).sum();
        header(out, DROPPED_SERIES, definitions.get(DROPPED_SERIES));
        write_series(out, DROPPED_SERIES, &[], dropped as f64);
    }
}

pub(super) fn header(out: &mut String, name: &str, definition: Option<&MetricDefinition>) {
    let kind = definition.map_or(MetricKind::Gauge, |definition| definition.kind).as_str();
    if let Some(MetricDefinition { help, .. }) = definition {
        let _ = writeln!(out, "# HELP {name} {help}");
    }
    let _ = writeln!(out, "# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_a_full_family_says_what_it_left_out() {
        let mut frame = Frame::default();
        frame.set("kgfleet_test", &[("a", "x\\\"\n"), ("b", "é")], 0.25);
        frame.set("kgfleet_other", &[], f64::INFINITY);
        assert_eq!(frame.families["kgfleet_test"].lines, "kgfleet_test{a=\"x\\\\\\\"\\n\",b=\"é\"} 0.25\n");
        assert_eq!(frame.families["kgfleet_other"].lines, "kgfleet_other inf\n");
        for number in 0..FAMILY_SERIES_MAX + 3 {
            frame.set("kgfleet_many", &[("n", &number.to_string())], 1.0);
        }
        assert_eq!((frame.series("kgfleet_many"), frame.dropped), (FAMILY_SERIES_MAX, 3));
    }

    #[test]
    fn exactly_one_of_the_words_holds() {
        let mut frame = Frame::default();
        frame.one_of("kgfleet_test", &[("run", "r")], "phase", &["active", "paused"], "paused");
        assert_eq!(
            frame.families["kgfleet_test"].lines,
            "kgfleet_test{run=\"r\",phase=\"active\"} 0\nkgfleet_test{run=\"r\",phase=\"paused\"} 1\n"
        );
    }
}
