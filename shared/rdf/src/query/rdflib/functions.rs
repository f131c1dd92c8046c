//! Functions that stand in an algebra for what SPARQL has no word for.

use super::aggregates::{self, order};
use crate::literal::is_numeric;
use oxrdf::{Literal, NamedNode, Term};
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression, Function};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

const RAISE: &str = "urn:kgfleet:raise";
const ADDEND: &str = "urn:kgfleet:addend";
const AMONG: &str = "urn:kgfleet:among";
/// Stands where an expression has no value.
pub(super) const NOTHING: &str = "urn:kgfleet:nothing";
const UNKNOWN: &str = "urn:kgfleet:unknown";
const AGGREGATE: &str = "urn:kgfleet:aggregate:";

/// An expression that makes rdflib raise.
pub(super) fn raise() -> Expression {
    call(RAISE.to_owned(), Vec::new())
}

/// The value of an expression under SUM: whatever has a value that is no number makes rdflib raise, and so does any
/// expression but a variable that has none.
pub(super) fn addend(expression: Expression) -> Expression {
    let otherwise = match expression {
        Expression::Variable(_) => Literal::from(0).into(),
        _ => raise(),
    };
    Expression::Coalesce(vec![call(ADDEND.to_owned(), vec![expression]), otherwise])
}

/// The value of an expression, or [`NOTHING`], which the aggregates of our own pass over.
pub(super) fn or_nothing(expression: Expression) -> Expression {
    Expression::Coalesce(vec![expression, NamedNode::new_unchecked(NOTHING).into()])
}

/// Whether a value is one of the terms of a list. An element without a value is no term.
pub(super) fn among(value: Expression, list: Vec<Expression>) -> Expression {
    let elements = list.into_iter().map(or_nothing);
    call(AMONG.to_owned(), std::iter::once(value).chain(elements).collect())
}

/// The two values in the order in which rdflib has literals that cannot be compared, see [`order`].
pub(super) fn ordered(relation: Relation, left: Expression, right: Expression) -> Expression {
    call(relation.name().to_owned(), vec![left, right])
}

/// A comparison other than for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    const ALL: [Self; 4] = [Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    fn name(self) -> &'static str {
        match self {
            Self::Less => "urn:kgfleet:less",
            Self::LessOrEqual => "urn:kgfleet:less-or-equal",
            Self::Greater => "urn:kgfleet:greater",
            Self::GreaterOrEqual => "urn:kgfleet:greater-or-equal",
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A call of a function that rdflib does not know: an error of its expression.
pub(super) fn unknown() -> Function {
    Function::Custom(NamedNode::new_unchecked(UNKNOWN))
}

/// What stands for an aggregate until its SELECT is translated. One that stays is where none belongs.
pub(super) fn aggregate(number: usize) -> Expression {
    call(format!("{AGGREGATE}{number}"), Vec::new())
}

/// The number of the aggregate that an expression stands for.
pub(super) fn aggregate_number(expression: &Expression) -> Option<usize> {
    match expression {
        Expression::FunctionCall(Function::Custom(name), _) => {
            name.as_str().strip_prefix(AGGREGATE)?.parse().ok()
        }
        _ => None,
    }
}

fn call(name: String, arguments: Vec<Expression>) -> Expression {
    Expression::FunctionCall(Function::Custom(NamedNode::new_unchecked(name)), arguments)
}

/// Whether something made rdflib raise. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Raised(Arc<AtomicBool>);

impl Raised {
    /// Whether it happened.
    pub(in super::super) fn is_set(&self) -> bool {
        self.0.load(atomic::Ordering::Relaxed)
    }

    fn set(&self) -> Option<Term> {
        self.0.store(true, atomic::Ordering::Relaxed);
        None
    }

    /// An evaluator that knows these functions.
    pub(in super::super) fn evaluator(&self) -> QueryEvaluator {
        let number = |arguments: &[Term]| match arguments.first() {
            Some(Term::Literal(literal)) if is_numeric(literal.datatype().as_str()) => {
                Some(Term::from(literal.clone()))
            }
            _ => None,
        };
        let (raise, addend) = (self.clone(), self.clone());
        let mut evaluator = QueryEvaluator::new();
        for relation in Relation::ALL {
            let compare = move |arguments: &[Term]| match arguments {
                [left, right] => Some(Literal::from(relation.holds(order(left, right)?)).into()),
                _ => None,
            };
            evaluator = evaluator.with_custom_function(NamedNode::new_unchecked(relation.name()), compare);
        }
        aggregates::register(evaluator)
            .with_custom_function(NamedNode::new_unchecked(AMONG), |arguments| {
                let (value, list) = arguments.split_first()?;
                Some(Literal::from(list.contains(value)).into())
            })
            .with_custom_function(NamedNode::new_unchecked(RAISE), move |_| raise.set())
            .with_custom_function(NamedNode::new_unchecked(ADDEND), move |arguments| {
                number(arguments).or_else(|| addend.set())
            })
    }

    /// What a function that the evaluator does not know does: nothing but fail, unless it stands for an aggregate.
    pub(in super::super) fn register(&self, evaluator: QueryEvaluator, name: NamedNode) -> QueryEvaluator {
        let raised = name.as_str().starts_with(AGGREGATE).then(|| self.clone());
        evaluator.with_custom_function(name, move |_| raised.as_ref().and_then(Self::set))
    }
}
