//! An amount of money, and how it is written.

use std::fmt;
use std::ops::Add;

/// Amounts below this many units are written with more digits.
const SMALL: f64 = 1.0;

/// Amounts below this are not written with their digits.
const LEAST: f64 = 0.0001;

/// An amount in the currency of its table of prices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Money {
    pub amount: f64,
    /// Whether a part of it is unknown: it is this much at least.
    pub is_least: bool,
}

impl Money {
    /// An amount that is known as a whole.
    pub fn exactly(amount: f64) -> Self {
        Self { amount, is_least: false }
    }

    /// The sum of what is known of some models; `None` if nothing is.
    pub fn total(amounts: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let (mut total, mut unknown) = (None::<Self>, false);
        for amount in amounts {
            match amount {
                Some(amount) => total = Some(total.unwrap_or_default() + amount),
                None => unknown = true,
            }
        }
        total.map(|total| Self { is_least: total.is_least || unknown, ..total })
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { amount: self.amount + other.amount, is_least: self.is_least || other.is_least }
    }
}

/// `12.34`, `0.0123` or, where a part is unknown, `> 12.34`. What is too small for that is no nothing: `< 0.0001`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.amount > 0.0 && self.amount < LEAST && !self.is_least {
            return write!(f, "< {LEAST}");
        }
        let digits = if self.amount == 0.0 || self.amount >= SMALL { 2 } else { 4 };
        let least = if self.is_least { "> " } else { "" };
        write!(f, "{least}{:.digits$}", self.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_nothing() {
        assert_eq!(Money::total([None, None]), None);
        let some = Money::total([Some(Money::exactly(1.5)), None, Some(Money::exactly(2.0))]).unwrap();
        assert_eq!((some.to_string().as_str(), some.is_least), ("> 3.50", true));
        assert_eq!(Money::total([Some(Money::exactly(0.0123))]).unwrap().to_string(), "0.0123");
        assert_eq!(Money::exactly(0.0).to_string(), "0.00");
        assert_eq!(Money::exactly(0.00001).to_string(), "< 0.0001");
    }
}
