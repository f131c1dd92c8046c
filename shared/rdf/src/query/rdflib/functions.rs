//! Functions that express in the algebra what SPARQL cannot.

use super::aggregates::{self, order};
use super::algebra::rewrite;
use super::pattern::Patterns;
use super::python::{self, NoValue};
use super::raised::{FAILED, NOTHING, Raised};
use crate::literal::is_numeric;
use crate::query::carrier::{carried, uncarried};
use crate::query::compared::is_compared;
use crate::value;
use oxrdf::{Literal, NamedNode, Term, Variable};
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression, Function};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const RAISE: &str = "urn:kgfleet:raise";
const ADDEND: &str = "urn:kgfleet:cast:addend";
const SORTABLE: &str = "urn:kgfleet:sortable";
const KIND: &str = "urn:kgfleet:kind";
const AMONG: &str = "urn:kgfleet:among";
const TWO_TYPES: &str = "urn:kgfleet:two-types";
const UNKNOWN: &str = "urn:kgfleet:unknown";
const AGGREGATE: &str = "urn:kgfleet:aggregate:";

/// An expression at which rdflib raises.
pub(super) fn raise() -> Expression {
    call(RAISE, Vec::new())
}

/// The value of an expression; rdflib raises if there is none.
pub(super) fn or_raise(expression: Expression) -> Expression {
    Expression::Coalesce(vec![expression, raise()])
}

/// The value of an expression in SUM: rdflib raises if the value is not a number, or if there is none, except for a
/// variable without DISTINCT.
pub(super) fn addend(expression: Expression, distinct: bool) -> Expression {
    let otherwise = match expression {
        Expression::Variable(_) if !distinct => Literal::from(0).into(),
        _ => raise(),
    };
    Expression::Coalesce(vec![call(ADDEND, vec![expression]), otherwise])
}

/// The value of an expression, or [`FAILED`], which MIN and MAX cannot compare; for an unbound variable [`NOTHING`].
pub(super) fn or_failed(expression: Expression) -> Expression {
    match expression {
        variable @ Expression::Variable(_) => or_nothing(variable),
        other => Expression::Coalesce(vec![other, NamedNode::new_unchecked(FAILED).into()]),
    }
}

/// The value of an expression, or [`NOTHING`], which our aggregates ignore.
pub(super) fn or_nothing(expression: Expression) -> Expression {
    Expression::Coalesce(vec![expression, NamedNode::new_unchecked(NOTHING).into()])
}

/// The value of an expression in ORDER BY. Python cannot compare an error with anything, so rdflib raises if one of
/// several rows has no value. `number` identifies the expression in its query.
pub(super) fn sortable(number: usize, expression: Expression) -> Expression {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    call(SORTABLE, vec![Literal::from(number).into(), or_nothing(expression)])
}

/// The kind of an expression's value as a sort key. Terms are sorted by it first, as in rdflib; the engine's own
/// comparison of different kinds is not a total order.
pub(super) fn kind(expression: Expression) -> Expression {
    call(KIND, vec![or_nothing(expression)])
}

/// Whether a value is one of the terms of a list. An expression without a value is in no list, unless it is a variable.
pub(super) fn among(value: Expression, list: Vec<Expression>) -> Expression {
    let elements = list.into_iter().map(or_nothing);
    let value = match value {
        variable @ Expression::Variable(_) => variable,
        other => or_nothing(other),
    };
    call(AMONG, std::iter::once(value).chain(elements).collect())
}

/// Whether two values are literals of two datatypes; an error for those of one.
pub(super) fn of_two_types(left: Expression, right: Expression) -> Expression {
    call(TWO_TYPES, vec![left, right])
}

/// Whether a comparison holds for an order.
type Holds = fn(Ordering) -> bool;

/// Comparisons other than for equality in rdflib's order of literals, see [`order`]: the name of each, and which orders hold.
const COMPARISONS: [(&str, Holds); 4] = [
    (LESS, Ordering::is_lt),
    (LESS_OR_EQUAL, Ordering::is_le),
    (GREATER, Ordering::is_gt),
    (GREATER_OR_EQUAL, Ordering::is_ge),
];

pub(super) const LESS: &str = "urn:kgfleet:less";
pub(super) const LESS_OR_EQUAL: &str = "urn:kgfleet:less-or-equal";
pub(super) const GREATER: &str = "urn:kgfleet:greater";
pub(super) const GREATER_OR_EQUAL: &str = "urn:kgfleet:greater-or-equal";

/// Whether an expression is a comparison in rdflib's order of literals.
pub(in super::super) fn is_comparison(expression: &Expression) -> bool {
    matches!(expression, Expression::FunctionCall(Function::Custom(name), _)
        if COMPARISONS.iter().any(|(known, _)| *known == name.as_str()))
}

/// A call of an unknown function: an error of its expression.
pub(super) fn unknown() -> Function {
    python::custom(UNKNOWN)
}

/// The placeholder of an aggregate until its SELECT is translated. One that remains is misplaced.
pub(super) fn aggregate(number: usize) -> Expression {
    call(&format!("{AGGREGATE}{number}"), Vec::new())
}

/// Gives the placeholders of misplaced aggregates the variables that their group binds. Without them the engine may come to one where
/// a part of the group has rows and the group has none.
pub(super) fn in_group(expression: Expression, variables: &[Variable]) -> Expression {
    rewrite(expression, &mut |part| {
        let number = aggregate_number(part)?;
        let bound = variables.iter().cloned().map(Expression::from).collect();
        Some(call(&format!("{AGGREGATE}{number}"), bound))
    })
}

/// The number of the aggregate whose placeholder this is.
pub(super) fn aggregate_number(expression: &Expression) -> Option<usize> {
    match expression {
        Expression::FunctionCall(Function::Custom(name), _) => {
            name.as_str().strip_prefix(AGGREGATE)?.parse().ok()
        }
        _ => None,
    }
}

/// A call of the function of a name in the algebra.
pub(super) fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    Expression::FunctionCall(python::custom(name), arguments)
}

/// The rows sorted by one expression.
#[derive(Debug, Default)]
struct SortedRows {
    several: bool,
    one_failed: bool,
}

/// An evaluator with these functions and aggregates; `separators` are those of the query's GROUP_CONCATs.
pub(in super::super) fn evaluator(raised: &Raised, separators: &[String]) -> QueryEvaluator {
    let number = |arguments: &[Term]| match uncarried(arguments.first()?.clone()) {
        Term::Literal(literal) if is_numeric(literal.datatype().as_str()) => Some(carried(literal.into())),
        _ => None,
    };
    let (raise, addend) = (raised.clone(), raised.clone());
    let mut evaluator = QueryEvaluator::new();
    for (name, holds) in COMPARISONS {
        let compare = move |arguments: &[Term]| match arguments {
            [Term::Literal(one), Term::Literal(other)] if !is_compared(one) && !is_compared(other) => None,
            [left @ Term::Literal(one), right @ Term::Literal(other)] => {
                let numbers = is_numeric(one.datatype().as_str()) && is_numeric(other.datatype().as_str());
                let by_value = if numbers { value::compare(one, other) } else { None };
                Some(Literal::from(holds(by_value.or_else(|| order(left, right))?)).into())
            }
            _ => None,
        };
        evaluator = evaluator.with_custom_function(NamedNode::new_unchecked(name), compare);
    }
    let patterns = Patterns::default();
    for (name, _, compute) in python::CALLS {
        let (raised, patterns) = (raised.clone(), patterns.clone());
        evaluator = evaluator.with_custom_function(NamedNode::new_unchecked(name), move |arguments| {
            let arguments: Vec<Term> = arguments.iter().cloned().map(uncarried).collect();
            match compute(&arguments, &patterns) {
                Ok(value) => Some(carried(value)),
                Err(NoValue::Error) => None,
                Err(NoValue::Raise) => raised.set(),
            }
        });
    }
    let (sorting, sorted) = (raised.clone(), Mutex::new(HashMap::<Term, SortedRows>::new()));
    aggregates::register(evaluator, separators, raised)
        .with_custom_function(NamedNode::new_unchecked(KIND), |arguments| {
            Some(Literal::new_simple_literal(aggregates::kind(arguments.first()?)).into())
        })
        .with_custom_function(NamedNode::new_unchecked(SORTABLE), move |arguments| {
            let [number, value] = arguments else { return None };
            let mut sorted = sorted.lock().unwrap_or_else(PoisonError::into_inner);
            let known = sorted.contains_key(number);
            let rows = sorted.entry(number.clone()).or_default();
            rows.several |= known;
            rows.one_failed |= aggregates::is_nothing(value);
            if rows.several && rows.one_failed { sorting.set() } else { Some(value.clone()) }
        })
        .with_custom_function(NamedNode::new_unchecked(AMONG), |arguments| {
            let (value, list) = arguments.split_first()?;
            Some(Literal::from(!aggregates::is_nothing(value) && list.contains(value)).into())
        })
        .with_custom_function(NamedNode::new_unchecked(TWO_TYPES), |arguments| match arguments {
            [Term::Literal(left), Term::Literal(right)] if left.datatype() != right.datatype() => {
                Some(Literal::from(true).into())
            }
            _ => None,
        })
        .with_custom_function(NamedNode::new_unchecked(RAISE), move |_| raise.set())
        .with_custom_function(NamedNode::new_unchecked(ADDEND), move |arguments| {
            number(arguments).or_else(|| addend.set())
        })
}

/// Whether a function returns literals whose form the engine changes, as carriers.
pub(in super::super) fn hands_on_forms(name: &NamedNode) -> bool {
    python::is_cast(name.as_str())
}

/// Whether a function reads the forms of literals.
pub(in super::super) fn takes_forms(name: &NamedNode) -> bool {
    name.as_str() == AMONG || python::reads_forms(name.as_str())
}

/// Registers an unknown function: it fails, or raises if it is the placeholder of an aggregate.
pub(in super::super) fn register(
    raised: &Raised,
    evaluator: QueryEvaluator,
    name: NamedNode,
) -> QueryEvaluator {
    let raised = name.as_str().starts_with(AGGREGATE).then(|| raised.clone());
    evaluator.with_custom_function(name, move |_| raised.as_ref().and_then(Raised::set))
}
