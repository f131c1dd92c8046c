//! Numbers in words, the same on every screen.

use domain::ranking::Bounds;

use crate::stats::{Estimate, Need};

/// How well a number of so many dialogues (`of_each` says of what) is known, and what it takes to know it within `wanted`.
pub fn known(estimate: &Estimate, dialogues: u64, of_each: &str, wanted: f64) -> String {
    let known = format!("known within {:.3}", estimate.reach());
    let Some(Need { exercises, dialogues: times }) = estimate.need(wanted) else { return known };
    let asked = estimate.exercises as u64;
    let more = match times {
        Some(times) => format!(
            "or {times} times as many dialogues about the same ones ({} instead of {dialogues}{of_each})",
            times * dialogues
        ),
        None => "more dialogues about the same ones are not enough".to_owned(),
    };
    format!(
        "{known}; {wanted} takes about {exercises} times as many exercises ({} instead of {asked}), {more}",
        exercises * asked
    )
}

/// Between what the mean of a model lies that is not ranked.
pub fn bounds(Bounds { low, high }: Bounds) -> String {
    format!("from {low:.3} if all that is missing is wrong to {high:.3} if it is right")
}

/// A measured number with two significant digits; further digits of a live value would change all the time. 0 is `0`.
pub fn figure(number: f64) -> String {
    if !number.is_finite() || number <= 0.0 {
        return "0".to_owned();
    }
    // Rounded first: 9.96 has as many digits before the point as 10.
    let digits = |number: f64| number.log10().floor() as i32;
    let unit = 10_f64.powi(digits(number) - 1);
    let rounded = (number / unit).round() * unit;
    let places = usize::try_from(1 - digits(rounded * (1.0 + f64::EPSILON))).unwrap_or_default();
    format!("{rounded:.places$}")
}

/// A duration in at most two units.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().clamp(0.0, 1e12) as u64;
    match (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s:02}s"),
        (0, h, m, _) => format!("{h}h {m:02}m"),
        (d, h, _, _) => format!("{d}d {h:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_numbers_have_two_digits_and_times_two_units() {
        let numbers = [0.0, 0.0123, 0.0996, 0.25, 1.0, 1.56, 9.96, 15.4, 153.0, 9_307_824.940_5];
        let shown = ["0", "0.012", "0.10", "0.25", "1.0", "1.6", "10", "15", "150", "9300000"];
        assert_eq!(numbers.map(figure), shown);
        assert_eq!([5.2, 65.0, 7260.0, 200_000.0].map(duration), ["5s", "1m 05s", "2h 01m", "2d 07h"]);
    }
}
