//! Arithmetic as Python does it: whole numbers and decimals exactly, decimals to 28 digits with the zeros that they have.

use std::cmp::Ordering;

use num_bigint::BigUint;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};

use crate::literal::{is_numeric, python_float, signed};
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

/// A decimal: its digits as a whole number, and the power of ten of the last one. Zero may have a sign, too.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: BigUint,
    exponent: i64,
}

impl Decimal {
    fn of_text(text: &str) -> Option<Self> {
        let plain = python_forms::decimal(text)?;
        let (sign, number) = signed(&plain);
        let after = number.split_once('.').map_or(0, |(_, after)| after.len());
        let digits = number.replace('.', "");
        if digits.len() > DIGITS_MAX {
            return None;
        }
        Some(Self { is_negative: sign == "-", digits: digits.parse().ok()?, exponent: -(after as i64) })
    }

    /// The exact value of a float.
    fn of_float(value: f64) -> Option<Self> {
        let bits = value.abs().to_bits();
        let (power, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        let (mantissa, power) = match power {
            0 => (fraction, -1074_i64),
            power => (fraction | 1 << 52, power as i64 - 1075),
        };
        let is_negative = value.is_sign_negative();
        if mantissa == 0 {
            return Some(Self { is_negative, digits: BigUint::ZERO, exponent: 0 });
        }
        let even = mantissa.trailing_zeros();
        let power = power + i64::from(even);
        let factor: u8 = if power < 0 { 5 } else { 2 };
        let scale = BigUint::from(factor).pow(u32::try_from(power.unsigned_abs()).ok()?);
        Some(Self { is_negative, digits: scale * (mantissa >> even), exponent: power.min(0) })
    }

    fn negated(&self) -> Self {
        Self { is_negative: !self.is_negative, ..self.clone() }
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |number: &Self| {
            let zeros = usize::try_from(number.exponent - exponent).ok();
            Some(&number.digits * power_of_ten(zeros.filter(|zeros| *zeros <= DIGITS_MAX)?))
        };
        let (a, b) = (aligned(self)?, aligned(other)?);
        let (is_negative, digits) = match a.cmp(&b) {
            _ if self.is_negative == other.is_negative => (self.is_negative, a + b),
            Ordering::Equal => (false, BigUint::ZERO),
            Ordering::Greater => (self.is_negative, a - b),
            Ordering::Less => (other.is_negative, b - a),
        };
        Some(Self { is_negative, digits, exponent })
    }

    fn times(&self, other: &Self) -> Self {
        Self {
            is_negative: self.is_negative != other.is_negative,
            digits: &self.digits * &other.digits,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Another number divided by this one.
    fn divides(&self, other: &Self) -> Option<Self> {
        if self.digits == BigUint::ZERO {
            return None;
        }
        let is_negative = self.is_negative != other.is_negative;
        let ideal = other.exponent - self.exponent;
        if other.digits == BigUint::ZERO {
            return Some(Self { is_negative, digits: BigUint::ZERO, exponent: ideal });
        }
        let shift = (self.length() + PRECISION + 1) as i64 - other.length() as i64;
        let scale = power_of_ten(usize::try_from(shift.unsigned_abs()).ok()?);
        let (dividend, divisor) = match shift < 0 {
            true => (other.digits.clone(), &self.digits * scale),
            false => (&other.digits * scale, self.digits.clone()),
        };
        let (mut digits, rest) = (&dividend / &divisor, dividend % divisor);
        let mut exponent = ideal - shift;
        if rest != BigUint::ZERO {
            // The last digit tells that something follows it.
            if &digits % 5_u8 == BigUint::ZERO {
                digits += 1_u8;
            }
        } else {
            while exponent < ideal && &digits % 10_u8 == BigUint::ZERO {
                digits /= 10_u8;
                exponent += 1;
            }
        }
        Some(Self { is_negative, digits, exponent }.rounded())
    }

    /// Number of digits.
    fn length(&self) -> usize {
        self.digits.to_string().len()
    }

    /// To the precision; a half goes to the even digit.
    fn rounded(self) -> Self {
        let dropped = self.length().saturating_sub(PRECISION);
        if dropped == 0 {
            return self;
        }
        let unit = power_of_ten(dropped);
        let (mut digits, rest) = (&self.digits / &unit, &self.digits % &unit);
        let half = (rest * 2_u8).cmp(&unit);
        if half == Ordering::Greater || half == Ordering::Equal && digits.bit(0) {
            digits += 1_u8;
        }
        // What was rounded up may have one digit more.
        Self { digits, exponent: self.exponent + dropped as i64, ..self }.rounded()
    }

    fn text(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let text = format!("{sign}{}e{}", self.digits, self.exponent);
        python_forms::decimal(&text).unwrap_or(text)
    }

    fn literal(&self) -> Literal {
        Literal::new_typed_literal(self.text(), xsd::DECIMAL)
    }
}

fn power_of_ten(exponent: usize) -> BigUint {
    BigUint::from(10_u8).pow(exponent as u32)
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
