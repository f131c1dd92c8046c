//! Maps values to positions.

/// Maps a range of values to a range of positions.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    values: (f64, f64),
    places: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    pub fn linear(values: (f64, f64), places: (f64, f64)) -> Self {
        Self { values, places, logarithmic: false }
    }

    /// A logarithmic scale: equal ratios get equal lengths. Values must be positive.
    pub fn logarithmic(values: (f64, f64), places: (f64, f64)) -> Self {
        Self { values: (values.0.ln(), values.1.ln()), places, logarithmic: true }
    }

    /// The position of a value; values outside the range get its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.ln() } else { value };
        let length = self.values.1 - self.values.0;
        let share = if length == 0.0 { 0.5 } else { ((value - self.values.0) / length).clamp(0.0, 1.0) };
        self.places.0 + share * (self.places.1 - self.places.0)
    }
}

/// A range with some room around values; 0 to 1 if all of them are in it.
pub fn around(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((0.0_f64, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    (low, high)
}

/// Round values for about five marks within a range, including its ends if they are round.
pub fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let length = high - low;
    if length <= 0.0 || !length.is_finite() {
        return vec![low];
    }
    let rough = length / 5.0;
    let unit = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Powers of ten, and their multiples by two and five, within a range.
pub fn decades((low, high): (f64, f64)) -> Vec<f64> {
    let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = exponents.flat_map(|exponent| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(exponent)));
    all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
}

/// The label of a mark on an axis.
pub fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_round() {
        let near = |found: Vec<f64>, expected: &[f64]| {
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        };
        near(ticks((0.0, 1.0)), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        near(ticks((-1.0, 1.0)), &[-1.0, -0.5, 0.0, 0.5, 1.0]);
        near(ticks((3.0, 3.0)), &[3.0]);
        near(decades((0.5, 70.0)), &[0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(around([f64::NAN, 0.5]), (0.0, 1.0));
        assert_eq!(Scale::linear((2.0, 2.0), (0.0, 10.0)).at(2.0), 5.0);
    }

    proptest! {
        #[test]
        fn marks_lie_within_and_are_few(low in -1e6..1e6_f64, length in 1e-6..1e6_f64) {
            let marks = ticks((low, low + length));
            prop_assert!(!marks.is_empty() || length < 1e-3);
            prop_assert!(marks.len() <= 12);
            let slack = length * 1e-6 + low.abs() * 1e-9;
            prop_assert!(marks.iter().all(|mark| *mark >= low - slack && *mark <= low + length + slack));
        }
    }
}
