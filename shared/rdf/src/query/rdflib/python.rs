//! Functions whose value in rdflib, computed by Python, differs from the standard.

use super::pattern::{FLAGS, Patterns, substituted};
use crate::literal::{is_numeric, rdflib_lexical};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use spargebra::algebra::Function;

/// Why a function has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoValue {
    /// It is an error of the expression.
    Error,
    /// Python raises an exception that rdflib does not catch: the query has no result.
    Raise,
}

use NoValue::{Error, Raise};

type Outcome<T = Term> = Result<T, NoValue>;

/// Computes a function.
pub(super) type PythonFunction = fn(&[Term], &Patterns) -> Outcome;

const REGEX: &str = "urn:kgfleet:regex";
const REPLACE: &str = "urn:kgfleet:replace";
const SUBSTR: &str = "urn:kgfleet:substr";
const IRI: &str = "urn:kgfleet:iri";
const CEIL: &str = "urn:kgfleet:ceil";
const FLOOR: &str = "urn:kgfleet:floor";
const ROUND: &str = "urn:kgfleet:round";
const INTEGER: &str = "urn:kgfleet:cast:integer";
const DECIMAL: &str = "urn:kgfleet:cast:decimal";
const DOUBLE: &str = "urn:kgfleet:cast:double";
const FLOAT: &str = "urn:kgfleet:cast:float";
const BOOLEAN: &str = "urn:kgfleet:cast:boolean";

/// The functions by their names in the algebra.
pub(super) const CALLS: [(&str, PythonFunction); 12] = [
    (REGEX, regex),
    (REPLACE, replace),
    (SUBSTR, substr),
    (IRI, iri),
    (CEIL, |arguments, _| rounded(arguments, f64::ceil)),
    (FLOOR, |arguments, _| rounded(arguments, f64::floor)),
    // Halves are rounded up.
    (ROUND, |arguments, _| rounded(arguments, |number| (number + 0.5).floor())),
    (INTEGER, |arguments, _| cast(arguments, integer)),
    (DECIMAL, |arguments, _| cast(arguments, decimal)),
    (DOUBLE, |arguments, _| cast(arguments, |text| float(text, xsd::DOUBLE.into_owned()))),
    (FLOAT, |arguments, _| cast(arguments, |text| float(text, xsd::FLOAT.into_owned()))),
    (BOOLEAN, |arguments, _| cast(arguments, boolean)),
];

/// The function that replaces one of SPARQL's.
pub(super) fn in_place_of(function: Function) -> Function {
    let name = match function {
        Function::Regex => REGEX,
        Function::Replace => REPLACE,
        Function::SubStr => SUBSTR,
        Function::Iri => IRI,
        Function::Ceil => CEIL,
        Function::Floor => FLOOR,
        Function::Round => ROUND,
        other => return other,
    };
    Function::Custom(NamedNode::new_unchecked(name))
}

/// The function that casts to a type of XML Schema; `None` for those that need no function of their own.
pub(super) fn cast_to(local: &str) -> Option<Function> {
    let name = match local {
        "integer" => INTEGER,
        "decimal" => DECIMAL,
        "double" => DOUBLE,
        "float" => FLOAT,
        "boolean" => BOOLEAN,
        _ => return None,
    };
    Some(Function::Custom(NamedNode::new_unchecked(name)))
}

fn literal(term: Option<&Term>) -> Outcome<&Literal> {
    match term {
        Some(Term::Literal(literal)) => Ok(literal),
        _ => Err(Error),
    }
}

/// A text with or without a language.
fn text(term: Option<&Term>) -> Outcome<&Literal> {
    let literal = literal(term)?;
    if literal.language().is_some() || literal.datatype() == xsd::STRING { Ok(literal) } else { Err(Error) }
}

/// Another text in the language of this one.
fn like(text: &Literal, value: String) -> Term {
    match text.language() {
        Some(language) => Literal::new_language_tagged_literal_unchecked(value, language).into(),
        None => Literal::new_simple_literal(value).into(),
    }
}

fn flags(term: Option<&Term>) -> &str {
    match term {
        Some(Term::Literal(literal)) => literal.value(),
        _ => "",
    }
}

fn regex(arguments: &[Term], patterns: &Patterns) -> Outcome {
    let (text, pattern) = (text(arguments.first())?, text(arguments.get(1))?);
    let pattern = patterns.get(pattern.value(), flags(arguments.get(2))).ok_or(Raise)?;
    let found = pattern.is_match(text.value()).map_err(|_| Raise)?;
    Ok(Literal::from(found).into())
}

/// rdflib passes the flags to Python as the number of matches to replace.
fn replace(arguments: &[Term], patterns: &Patterns) -> Outcome {
    let (text_, pattern) = (text(arguments.first())?, text(arguments.get(1))?);
    let replacement = text(arguments.get(2))?;
    let pattern = patterns.get(pattern.value(), "").ok_or(Raise)?;
    let flags = flags(arguments.get(3));
    let count = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, number)| number).sum();
    let replaced = substituted(&pattern, text_.value(), replacement.value(), count).ok_or(Raise)?;
    Ok(like(text_, replaced))
}

/// A Python slice: negative positions count from the end.
fn substr(arguments: &[Term], _: &Patterns) -> Outcome {
    let text = text(arguments.first())?;
    let whole = |term: Option<&Term>| {
        let literal = literal(term)?;
        if !is_numeric(literal.datatype().as_str()) {
            return Err(Error);
        }
        // Slices take integers only.
        literal.value().parse::<i64>().map_err(|_| Raise)
    };
    let characters: Vec<char> = text.value().chars().collect();
    let place = |position: i64| {
        let length = i64::try_from(characters.len()).unwrap_or(i64::MAX);
        let position = if position < 0 { position.saturating_add(length) } else { position };
        usize::try_from(position.clamp(0, length)).unwrap_or_default()
    };
    let start = whole(arguments.get(1))?.saturating_sub(1);
    let end = match arguments.get(2) {
        Some(_) => place(whole(arguments.get(2))?.saturating_add(start)),
        None => characters.len(),
    };
    let start = place(start);
    Ok(like(text, characters[start.min(end)..end].iter().collect()))
}

/// rdflib does not check whether the text is an IRI.
fn iri(arguments: &[Term], _: &Patterns) -> Outcome {
    match arguments.first() {
        Some(Term::NamedNode(node)) => Ok(node.clone().into()),
        Some(Term::Literal(literal)) => Ok(NamedNode::new_unchecked(literal.value()).into()),
        _ => Err(Error),
    }
}

/// A whole number, written without a fraction even if it is a double.
fn rounded(arguments: &[Term], round: fn(f64) -> f64) -> Outcome {
    let literal = literal(arguments.first())?;
    if !is_numeric(literal.datatype().as_str()) {
        return Err(Error);
    }
    if literal.value().parse::<i64>().is_ok() {
        return Ok(literal.clone().into());
    }
    let number: f64 = literal.value().parse().map_err(|_| Raise)?;
    if !number.is_finite() {
        return Err(Raise);
    }
    // Integers have no negative zero.
    let digits = format!("{:.0}", round(number) + 0.0);
    Ok(Literal::new_typed_literal(digits, xsd::INTEGER).into())
}

/// Casts the text of a literal as Python writes it.
fn cast(arguments: &[Term], to: fn(&str) -> Option<Literal>) -> Outcome {
    let literal = literal(arguments.first())?;
    let datatype = literal.datatype();
    if datatype == xsd::DATE_TIME {
        return Err(Error);
    }
    to(&rdflib_lexical(literal.value(), datatype.as_str())).map(Term::from).ok_or(Error)
}

fn integer(text: &str) -> Option<Literal> {
    let digits = text.trim().trim_start_matches(['+', '-']);
    let signs = text.trim().len() - digits.len();
    let is_whole = signs < 2 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| Literal::new_typed_literal(text.trim().trim_start_matches('+'), xsd::INTEGER))
}

fn decimal(text: &str) -> Option<Literal> {
    let is_decimal = !text.contains(['e', 'E']) && text.trim().parse::<f64>().is_ok_and(f64::is_finite);
    is_decimal.then(|| Literal::new_typed_literal(text.trim(), xsd::DECIMAL))
}

fn float(text: &str, datatype: NamedNode) -> Option<Literal> {
    let number = text.trim().parse::<f64>().ok()?;
    Some(Literal::new_typed_literal(crate::literal::python_float(number), datatype))
}

fn boolean(text: &str) -> Option<Literal> {
    match text.to_lowercase().as_str() {
        "1" | "true" => Some(Literal::from(true)),
        "0" | "false" => Some(Literal::from(false)),
        _ => None,
    }
}
