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
        // A month and a year as their first day.
        let day = match text.len() {
            4 => format!("{text}-01-01"),
            7 => format!("{text}-01"),
            _ => text.to_owned(),
        };
        let is_digit = |(place, byte): (usize, u8)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        let is_date = day.len() == 10
            && day.bytes().enumerate().all(is_digit)
            && !day.starts_with("0000")
            && day.parse::<jiff::civil::Date>().is_ok();
        if is_date { Ok(Self(text.to_owned())) } else { Err(DateError(text.to_owned())) }
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
