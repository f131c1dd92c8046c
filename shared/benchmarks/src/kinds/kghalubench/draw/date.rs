//! Dates of known precision: a year, a month or a day. The state of a graph and the end of a model's training data are such
//! dates, and tables compare them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A year, a month or a day: `2024`, `2024-06`, `2024-06-30`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Date(String);

/// The text is no date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no date: write YYYY, YYYY-MM or YYYY-MM-DD")]
pub struct DateError(String);

impl Date {
    /// Whether it is certainly before another date; compared at the coarser precision of the two.
    pub fn is_before(&self, other: &Self) -> bool {
        let common = self.0.len().min(other.0.len());
        self.0.get(..common) < other.0.get(..common)
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let number = |part: &str, digits: usize| {
            let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<u32>().ok()).flatten()
        };
        let parts: Vec<&str> = text.split('-').collect();
        let is_date = match parts.as_slice() {
            [year] => number(year, 4).is_some_and(|year| year > 0),
            [year, month] => number(year, 4)
                .zip(number(month, 2))
                .is_some_and(|(year, month)| year > 0 && (1..=12).contains(&month)),
            [year, month, day] => {
                let date = number(year, 4).zip(number(month, 2)).zip(number(day, 2));
                date.is_some_and(|((year, month), day)| year > 0 && (1..=days_of(year, month)).contains(&day))
            }
            _ => false,
        };
        if is_date { Ok(Self(text.to_owned())) } else { Err(DateError(text.to_owned())) }
    }
}

/// How many days a month has; 0 of a month that there is not.
fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

impl TryFrom<String> for Date {
    type Error = DateError;

    fn try_from(text: String) -> Result<Self, DateError> {
        text.parse()
    }
}

impl From<Date> for String {
    fn from(date: Date) -> Self {
        date.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn dates_are_compared_as_far_as_they_are_known() {
        for (first, second, before) in [
            ("2023-12", "2024-01", true),
            ("2023", "2024-06-30", true),
            ("2024", "2024-06", false),
            ("2024-06", "2024", false),
            ("2024-06-29", "2024-06-30", true),
            ("2024-06-30", "2024-06-30", false),
            ("2025", "2024-12", false),
        ] {
            assert_eq!(date(first).is_before(&date(second)), before, "{first} {second}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["", "24", "2024-6", "2024-13", "2024-00", "2024-06-32", "2024-06-30-01", "June 2024", "2024-"]
        {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        // Days that the calendar does not have.
        for text in
            ["2024-02-30", "2023-02-29", "1900-02-29", "2024-04-31", "2024-02-31", "2024-06-00", "0000-01"]
        {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        for text in ["2024-02-29", "2000-02-29", "2024-12-31", "2024-04-30"] {
            assert!(text.parse::<Date>().is_ok(), "{text}");
        }
    }
}
