//! Arithmetic as Python does it: whole numbers and decimals exactly, decimals to 28 digits with the zeros that they have.

use std::cmp::Ordering;

use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};

use crate::literal::{is_numeric, python_float};
use crate::python_forms;

/// Digits of a result, the precision of Python's decimals.
const PRECISION: usize = 28;
/// Most digits of a number that is computed with. The exact value of a float has up to 1 074.
const DIGITS_MAX: usize = 1100;

/// An operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// The result of an operation; `None` if one of the terms is no number or the result none.
pub(super) fn computed(operation: Operation, left: &Term, right: &Term) -> Option<Literal> {
    let (left, right) = (Number::of(left)?, Number::of(right)?);
    let is_product = matches!(operation, Operation::Multiply | Operation::Divide);
    let is_float = |number: &Number| matches!(number.kind, Kind::Float | Kind::Double);
    // A product is a float only if its second number is one; the first becomes an exact decimal.
    if is_float(&right) || !is_product && is_float(&left) {
        let (a, b) = (left.float()?, right.float()?);
        let value = match operation {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            Operation::Multiply => a * b,
            Operation::Divide if b == 0.0 => return None,
            Operation::Divide => a / b,
        };
        let datatype =
            if !is_product && left.kind.max(right.kind) == Kind::Float { xsd::FLOAT } else { xsd::DOUBLE };
        return Some(Literal::new_typed_literal(python_float(value), datatype));
    }
    let is_whole = left.kind == Kind::Integer && right.kind == Kind::Integer;
    let (a, b) = (left.decimal()?, right.decimal()?);
    let exact = match operation {
        Operation::Add => a.plus(&b)?,
        Operation::Subtract => a.plus(&b.negated())?,
        Operation::Multiply => a.times(&b),
        Operation::Divide => return Some(b.divides(&a)?.literal()),
    };
    if is_whole && !is_product {
        return Some(Literal::new_typed_literal(exact.text(), xsd::INTEGER));
    }
    Some(exact.rounded().literal())
}

/// A number with the other sign, in the form that it has.
pub(super) fn negated(term: &Term) -> Option<Literal> {
    let Term::Literal(literal) = term else { return None };
    if !is_numeric(literal.datatype().as_str()) {
        return None;
    }
    let text = literal.value();
    let text = match text.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        // Only floats have a negative zero.
        None if Number::of(term)?.kind < Kind::Float
            && text.bytes().all(|byte| matches!(byte, b'0' | b'.')) =>
        {
            text.to_owned()
        }
        None => format!("-{}", text.strip_prefix('+').unwrap_or(text)),
    };
    Some(Literal::new_typed_literal(text, literal.datatype()))
}

/// In the order in which the type of a sum is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Integer,
    Decimal,
    Float,
    Double,
}

struct Number<'a> {
    text: &'a str,
    kind: Kind,
}

impl<'a> Number<'a> {
    fn of(term: &'a Term) -> Option<Self> {
        let Term::Literal(literal) = term else { return None };
        let datatype = literal.datatype();
        if !is_numeric(datatype.as_str()) {
            return None;
        }
        let kind = match datatype {
            xsd::DECIMAL => Kind::Decimal,
            xsd::FLOAT => Kind::Float,
            xsd::DOUBLE => Kind::Double,
            _ => Kind::Integer,
        };
        Some(Self { text: literal.value(), kind })
    }

    fn float(&self) -> Option<f64> {
        self.text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
    }

    fn decimal(&self) -> Option<Decimal> {
        match self.kind {
            Kind::Float | Kind::Double => Decimal::of_float(self.float()?),
            Kind::Integer | Kind::Decimal => Decimal::of_text(self.text),
        }
    }
}

/// A decimal: its digits, the first one not zero, and the power of ten of the last one. Zero has no digit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn new(is_negative: bool, digits: Vec<u8>, exponent: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        Self { is_negative, digits: digits[zeros..].to_vec(), exponent }
    }

    fn of_text(text: &str) -> Option<Self> {
        let plain = python_forms::decimal(text)?;
        let (is_negative, number) = match plain.strip_prefix('-') {
            Some(number) => (true, number),
            None => (false, plain.as_str()),
        };
        let after = number.split_once('.').map_or(0, |(_, after)| after.len());
        let digits: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        (digits.len() <= DIGITS_MAX).then(|| Self::new(is_negative, digits, -(after as i64)))
    }

    /// The exact value of a float.
    fn of_float(value: f64) -> Option<Self> {
        let bits = value.abs().to_bits();
        let (power, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        let (mut mantissa, mut power) = match power {
            0 => (fraction, -1074_i64),
            power => (fraction | 1 << 52, power as i64 - 1075),
        };
        if mantissa == 0 {
            return Some(Self::new(value.is_sign_negative(), Vec::new(), 0));
        }
        let even = mantissa.trailing_zeros();
        mantissa >>= even;
        power += i64::from(even);
        let mut digits: Vec<u8> = mantissa.to_string().bytes().map(|digit| digit - b'0').collect();
        let factor = if power < 0 { 5 } else { 2 };
        for _ in 0..power.unsigned_abs() {
            scale(&mut digits, factor);
        }
        Some(Self::new(value.is_sign_negative(), digits, power.min(0)))
    }

    fn negated(&self) -> Self {
        Self { is_negative: !self.is_negative, ..self.clone() }
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |number: &Self| {
            let zeros =
                usize::try_from(number.exponent - exponent).ok().filter(|zeros| *zeros <= DIGITS_MAX)?;
            let mut digits = number.digits.clone();
            digits.resize(digits.len() + zeros, 0);
            Some(digits)
        };
        let (a, b) = (aligned(self)?, aligned(other)?);
        if self.is_negative == other.is_negative {
            return Some(Self::new(self.is_negative, sum(&a, &b), exponent));
        }
        Some(match compare(&a, &b) {
            Ordering::Equal => Self::new(false, Vec::new(), exponent),
            Ordering::Greater => Self::new(self.is_negative, difference(&a, &b), exponent),
            Ordering::Less => Self::new(other.is_negative, difference(&b, &a), exponent),
        })
    }

    fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0_u32; self.digits.len() + other.digits.len()];
        for (at, left) in self.digits.iter().rev().enumerate() {
            for (place, right) in other.digits.iter().rev().enumerate() {
                let last = digits.len() - 1;
                digits[last - at - place] += u32::from(*left) * u32::from(*right);
            }
        }
        let mut carry = 0;
        for digit in digits.iter_mut().rev() {
            let value = *digit + carry;
            (*digit, carry) = (value % 10, value / 10);
        }
        let digits = digits.into_iter().map(|digit| digit as u8).collect();
        Self::new(self.is_negative != other.is_negative, digits, self.exponent + other.exponent)
    }

    /// Another number divided by this one.
    fn divides(&self, other: &Self) -> Option<Self> {
        if self.digits.is_empty() {
            return None;
        }
        let is_negative = self.is_negative != other.is_negative;
        let ideal = other.exponent - self.exponent;
        if other.digits.is_empty() {
            return Some(Self::new(is_negative, Vec::new(), ideal));
        }
        let shift = (self.digits.len() + PRECISION + 1) as i64 - other.digits.len() as i64;
        let (mut dividend, mut divisor) = (other.digits.clone(), self.digits.clone());
        let wider = if shift < 0 { &mut divisor } else { &mut dividend };
        wider.resize(wider.len() + usize::try_from(shift.unsigned_abs()).ok()?, 0);
        let (mut quotient, has_rest) = divided(&dividend, &divisor);
        let mut exponent = ideal - shift;
        if has_rest {
            // The last digit tells that something follows it.
            if let Some(last) = quotient.last_mut().filter(|last| **last % 5 == 0) {
                *last += 1;
            }
        } else {
            while exponent < ideal && quotient.last() == Some(&0) {
                quotient.pop();
                exponent += 1;
            }
        }
        Some(Self::new(is_negative, quotient, exponent).rounded())
    }

    /// To the precision; a half goes to the even digit.
    fn rounded(mut self) -> Self {
        let Some(dropped) = self.digits.len().checked_sub(PRECISION).filter(|dropped| *dropped > 0) else {
            return self;
        };
        let rest = self.digits.split_off(PRECISION);
        let is_odd = self.digits.last().is_some_and(|last| last % 2 == 1);
        let half = rest[0].cmp(&5).then_with(|| rest[1..].iter().any(|digit| *digit > 0).cmp(&false));
        self.exponent += dropped as i64;
        if half == Ordering::Greater || half == Ordering::Equal && is_odd {
            self.digits = sum(&self.digits, &[1]);
            return Self::new(self.is_negative, self.digits, self.exponent).rounded();
        }
        self
    }

    fn text(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let digits = if digits.is_empty() { "0" } else { &digits };
        let text = format!("{sign}{digits}e{}", self.exponent);
        python_forms::decimal(&text).unwrap_or(text)
    }

    fn literal(&self) -> Literal {
        Literal::new_typed_literal(self.text(), xsd::DECIMAL)
    }
}

fn scale(digits: &mut Vec<u8>, factor: u8) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let value = *digit * factor + carry;
        (*digit, carry) = (value % 10, value / 10);
    }
    if carry > 0 {
        digits.insert(0, carry);
    }
}

fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let mut digits = vec![0; long.len() + 1];
    let mut carry = 0;
    for at in 0..long.len() {
        let other = short.len().checked_sub(at + 1).map_or(0, |place| short[place]);
        let value = long[long.len() - 1 - at] + other + carry;
        let place = digits.len() - 1 - at;
        (digits[place], carry) = (value % 10, value / 10);
    }
    digits[0] = carry;
    digits
}

/// The difference of two numbers of which the first is not the smaller one.
fn difference(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut digits = a.to_vec();
    let mut borrow = 0;
    for at in 0..a.len() {
        let other = b.len().checked_sub(at + 1).map_or(0, |place| b[place]) + borrow;
        let place = digits.len() - 1 - at;
        borrow = u8::from(digits[place] < other);
        digits[place] = digits[place] + 10 * borrow - other;
    }
    digits
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let plain = |digits: &[u8]| digits.iter().position(|digit| *digit > 0).unwrap_or(digits.len());
    let (a, b) = (&a[plain(a)..], &b[plain(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The whole quotient, and whether something is left.
fn divided(dividend: &[u8], divisor: &[u8]) -> (Vec<u8>, bool) {
    let mut quotient = Vec::with_capacity(dividend.len());
    let mut rest: Vec<u8> = Vec::new();
    for digit in dividend {
        rest.push(*digit);
        let mut times = 0;
        while compare(&rest, divisor) != Ordering::Less {
            rest = difference(&rest, divisor);
            let zeros = rest.iter().take_while(|digit| **digit == 0).count();
            rest.drain(..zeros);
            times += 1;
        }
        quotient.push(times);
    }
    (quotient, rest.iter().any(|digit| *digit > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Term {
        let datatype = match text {
            text if text.contains('e') => xsd::DOUBLE,
            text if text.contains('.') => xsd::DECIMAL,
            _ => xsd::INTEGER,
        };
        Literal::new_typed_literal(text, datatype).into()
    }

    #[test]
    fn results_are_those_of_python() {
        use Operation::{Add, Divide, Multiply, Subtract};
        for (left, operation, right, expected) in [
            ("4.50", Multiply, "2", "9.00 decimal"),
            ("12.50", Add, "1", "13.50 decimal"),
            ("5", Subtract, "2.50", "2.50 decimal"),
            ("1", Divide, "3", "0.3333333333333333333333333333 decimal"),
            ("2", Divide, "3", "0.6666666666666666666666666667 decimal"),
            ("10.0", Divide, "4", "2.5 decimal"),
            ("7", Divide, "2", "3.5 decimal"),
            ("6", Divide, "2", "3 decimal"),
            ("600", Divide, "2", "300 decimal"),
            ("1.00", Divide, "1", "1.00 decimal"),
            ("0", Divide, "5", "0 decimal"),
            ("2.5e0", Multiply, "2", "5.0 decimal"),
            ("2", Multiply, "2.5e0", "5.0 double"),
            ("2.5e0", Add, "1.5", "4.0 double"),
            ("0.1e0", Add, "0.2e0", "0.30000000000000004 double"),
            ("-26.91097e0", Multiply, "2", "-53.82193999999999789451976540 decimal"),
            ("100000000000000000000", Multiply, "10", "1000000000000000000000 decimal"),
            ("99999999999999999999999999999", Add, "1", "100000000000000000000000000000 integer"),
            (
                "9.999999999999999999999999999",
                Add,
                "0.0000000000000000000000000006",
                "10.00000000000000000000000000 decimal",
            ),
            ("3", Add, "-3.00", "0.00 decimal"),
            ("3", Subtract, "5", "-2 integer"),
            ("1", Divide, "0", "none"),
            ("1e0", Divide, "0e0", "none"),
        ] {
            let found = computed(operation, &number(left), &number(right));
            let found = found.map(|literal| {
                let datatype = literal.datatype();
                format!("{} {}", literal.value(), datatype.as_str().rsplit('#').next().unwrap_or_default())
            });
            assert_eq!(found.as_deref().unwrap_or("none"), expected, "{left} {operation:?} {right}");
        }
        let other = |text: &str| negated(&number(text)).map(|literal| literal.value().to_owned());
        assert_eq!(
            ["2.50", "-3", "0", "0.0"].map(other),
            ["-2.50", "3", "0", "0.0"].map(|text| Some(text.to_owned()))
        );
    }
}
