//! Functions whose value in rdflib, computed by Python, differs from the standard.

use super::arithmetic::{Operation, computed, negated};
use super::pattern::{FLAGS, Patterns, substituted};
use super::terms::resolve;
use crate::literal::{is_numeric, rdflib_lexical};
use crate::python_forms;
use crate::query::carrier::stated_text;
use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use spargebra::algebra::{Expression, Function};

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

/// The beginning of the names of functions that return literals in the form that they give them.
const CAST: &str = "urn:kgfleet:cast:";
const IRI: &str = "urn:kgfleet:iri";
pub(super) const ADD: &str = "urn:kgfleet:cast:add";
pub(super) const SUBTRACT: &str = "urn:kgfleet:cast:subtract";
pub(super) const MULTIPLY: &str = "urn:kgfleet:cast:multiply";
pub(super) const DIVIDE: &str = "urn:kgfleet:cast:divide";
pub(super) const NEGATE: &str = "urn:kgfleet:cast:negate";
const STR: &str = "urn:kgfleet:str";
const DAY: &str = "urn:kgfleet:day";
const MOMENT: &str = "urn:kgfleet:moment";

/// The functions by their names in the algebra, each with the function of SPARQL that it replaces.
pub(super) const CALLS: [(&str, Option<Function>, PythonFunction); 24] = [
    ("urn:kgfleet:regex", Some(Function::Regex), regex),
    ("urn:kgfleet:replace", Some(Function::Replace), replace),
    ("urn:kgfleet:substr", Some(Function::SubStr), substr),
    (IRI, Some(Function::Iri), iri),
    ("urn:kgfleet:ceil", Some(Function::Ceil), |arguments, _| rounded(arguments, f64::ceil)),
    ("urn:kgfleet:floor", Some(Function::Floor), |arguments, _| rounded(arguments, f64::floor)),
    // Halves are rounded up.
    ("urn:kgfleet:round", Some(Function::Round), |arguments, _| {
        rounded(arguments, |number| (number + 0.5).floor())
    }),
    ("urn:kgfleet:cast:integer", None, |arguments, _| cast(arguments, integer)),
    ("urn:kgfleet:cast:decimal", None, |arguments, _| cast(arguments, decimal)),
    ("urn:kgfleet:cast:double", None, |arguments, _| {
        cast(arguments, |text| float(text, xsd::DOUBLE.into_owned()))
    }),
    ("urn:kgfleet:cast:float", None, |arguments, _| {
        cast(arguments, |text| float(text, xsd::FLOAT.into_owned()))
    }),
    ("urn:kgfleet:cast:boolean", None, |arguments, _| cast(arguments, boolean)),
    ("urn:kgfleet:cast:string", None, |arguments, _| {
        written(arguments.first()).map(|text| stated_text(&text).into())
    }),
    ("urn:kgfleet:cast:dateTime", None, |arguments, _| date_time(arguments)),
    ("urn:kgfleet:cast:typed", Some(Function::StrDt), typed),
    ("urn:kgfleet:cast:abs", Some(Function::Abs), |arguments, _| absolute(arguments)),
    (ADD, None, |arguments, _| of_two(arguments, Operation::Add)),
    (SUBTRACT, None, |arguments, _| of_two(arguments, Operation::Subtract)),
    (MULTIPLY, None, |arguments, _| of_two(arguments, Operation::Multiply)),
    (DIVIDE, None, |arguments, _| of_two(arguments, Operation::Divide)),
    (NEGATE, None, |arguments, _| arguments.first().and_then(negated).map(Term::from).ok_or(Error)),
    (STR, None, |arguments, _| written(arguments.first()).map(|text| Literal::from(text).into())),
    (DAY, None, |arguments, _| of_type(arguments, &[xsd::DATE, xsd::DATE_TIME])),
    (MOMENT, None, |arguments, _| of_type(arguments, &[xsd::DATE_TIME])),
];

/// The function of a name in the algebra.
pub(super) fn custom(name: &str) -> Function {
    Function::Custom(NamedNode::new_unchecked(name))
}

/// The function that replaces one of SPARQL's.
pub(super) fn in_place_of(function: Function) -> Function {
    let own = CALLS.iter().find(|(_, replaced, _)| replaced.as_ref() == Some(&function));
    own.map_or(function, |(name, ..)| custom(name))
}

/// The arguments of a function as rdflib takes them.
pub(super) fn arguments_of(function: &Function, arguments: Vec<Expression>) -> Vec<Expression> {
    let name = match function {
        Function::Year | Function::Month | Function::Day => DAY,
        Function::Hours | Function::Minutes | Function::Seconds | Function::Timezone | Function::Tz => MOMENT,
        _ => return arguments,
    };
    let taken = |argument| Expression::FunctionCall(custom(name), vec![argument]);
    arguments.into_iter().map(taken).collect()
}

/// STR of an expression that computes: numbers are as rdflib writes them.
pub(super) fn text_of_computed() -> Function {
    custom(STR)
}

/// Whether a function reads the forms of literals and returns none.
pub(super) fn reads_forms(name: &str) -> bool {
    name == STR
}

/// The function that casts to one of the types of XML Schema that rdflib casts to.
pub(super) fn cast_to(local: &str) -> Function {
    custom(&format!("{CAST}{local}"))
}

/// Whether a function is IRI.
pub(super) fn is_iri(function: &Function) -> bool {
    matches!(function, Function::Iri) || matches!(function, Function::Custom(name) if name.as_str() == IRI)
}

/// Whether a function returns literals in the form that it gives them: the casts and arithmetic.
pub(super) fn is_cast(name: &str) -> bool {
    name.starts_with(CAST)
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

/// Any text is an IRI. The second argument is the BASE of the query, if it has one.
fn iri(arguments: &[Term], _: &Patterns) -> Outcome {
    match arguments {
        [Term::NamedNode(node), ..] => Ok(node.clone().into()),
        [Term::Literal(literal), Term::Literal(base)] => {
            let resolved = resolve(base.value(), literal.value());
            Ok(NamedNode::new_unchecked(resolved.unwrap_or_else(|| literal.value().to_owned())).into())
        }
        [Term::Literal(literal), ..] => Ok(NamedNode::new_unchecked(literal.value()).into()),
        _ => Err(Error),
    }
}

/// The text of an IRI or literal, numbers and times as rdflib writes them.
fn written(term: Option<&Term>) -> Outcome<String> {
    match term {
        Some(Term::NamedNode(node)) => Ok(node.as_str().to_owned()),
        Some(Term::Literal(literal)) => {
            let datatype = literal.datatype();
            let is_rewritten = [xsd::DOUBLE, xsd::FLOAT, xsd::DATE_TIME].contains(&datatype);
            Ok(if is_rewritten {
                rdflib_lexical(literal.value(), datatype.as_str()).into_owned()
            } else {
                literal.value().to_owned()
            })
        }
        _ => Err(Error),
    }
}

/// A text with a datatype, whatever both are.
fn typed(arguments: &[Term], _: &Patterns) -> Outcome {
    let text = match arguments.first() {
        Some(Term::NamedNode(node)) => node.as_str(),
        Some(Term::Literal(literal)) => literal.value(),
        _ => return Err(Error),
    };
    let datatype = match arguments.get(1) {
        Some(Term::NamedNode(node)) => node.as_str(),
        Some(Term::Literal(literal)) => literal.value(),
        _ => return Err(Error),
    };
    if datatype == xsd::STRING.as_str() {
        return Ok(stated_text(text).into());
    }
    let text = rdflib_lexical(text, datatype);
    Ok(Literal::new_typed_literal(text, NamedNode::new_unchecked(datatype)).into())
}

fn of_two(arguments: &[Term], operation: Operation) -> Outcome {
    let [left, right] = arguments else { return Err(Error) };
    computed(operation, left, right).map(Term::from).ok_or(Error)
}

/// A number without its sign, in the form that it has.
fn absolute(arguments: &[Term]) -> Outcome {
    let literal = literal(arguments.first())?;
    if !is_numeric(literal.datatype().as_str()) {
        return Err(Error);
    }
    let text = literal.value();
    Ok(Literal::new_typed_literal(text.strip_prefix('-').unwrap_or(text), literal.datatype()).into())
}

fn date_time(arguments: &[Term]) -> Outcome {
    let literal = literal(arguments.first())?;
    let is_read = literal.datatype() == xsd::DATE_TIME || literal.datatype() == xsd::STRING;
    let moment = is_read.then(|| python_forms::date_time(literal.value())).flatten().ok_or(Error)?;
    Ok(Literal::new_typed_literal(moment, xsd::DATE_TIME).into())
}

/// The argument, if it is a literal of one of these types.
fn of_type(arguments: &[Term], types: &[NamedNodeRef<'_>]) -> Outcome {
    let literal = literal(arguments.first())?;
    if types.contains(&literal.datatype()) { Ok(literal.clone().into()) } else { Err(Error) }
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
    let written = rdflib_lexical(text, xsd::INTEGER.as_str());
    let digits = written.strip_prefix('-').unwrap_or(&written);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| Literal::new_typed_literal(written, xsd::INTEGER))
}

fn decimal(text: &str) -> Option<Literal> {
    let written = (!text.contains(['e', 'E'])).then(|| python_forms::decimal(text)).flatten()?;
    Some(Literal::new_typed_literal(written, xsd::DECIMAL))
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
