//! Aggregates as in rdflib: they ignore values that they cannot use, which are errors by the standard.

use super::arithmetic::{self, Operation};
use super::raised::{FAILED, NOTHING, Raised};
use crate::literal::is_numeric;
use crate::query::carrier::{carried, uncarried};
use crate::query::compared::has_zone;
use crate::value;
use oxrdf::{Literal, NamedNode, Term, vocab};
use spareval::{AggregateFunctionAccumulator, QueryEvaluator};
use spargebra::algebra::{AggregateExpression, AggregateFunction};
use std::cmp::Ordering;

/// The names in the algebra of aggregates that replace the engine's.
pub(super) const AVERAGE: &str = "urn:kgfleet:average";
pub(super) const SUM: &str = "urn:kgfleet:sum";
pub(super) const LEAST: &str = "urn:kgfleet:least";
pub(super) const GREATEST: &str = "urn:kgfleet:greatest";

const JOINED: &str = "urn:kgfleet:joined:";

/// The name of GROUP_CONCAT with the separator of this number.
pub(super) fn joined_by(separator: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("{JOINED}{separator}"))
}

/// The value of an aggregate over no rows.
pub(super) fn of_nothing(aggregate: &AggregateExpression) -> Option<Literal> {
    match aggregate {
        AggregateExpression::CountSolutions { .. } => Some(Literal::from(0)),
        AggregateExpression::FunctionCall { name, .. } => match name {
            AggregateFunction::Count => Some(Literal::from(0)),
            AggregateFunction::Custom(name) if [AVERAGE, SUM].contains(&name.as_str()) => {
                Some(Literal::from(0))
            }
            AggregateFunction::Custom(name) if name.as_str().starts_with(JOINED) => {
                Some(Literal::new_simple_literal(""))
            }
            _ => None,
        },
    }
}

/// Registers the aggregates with an evaluator.
pub(super) fn register(
    mut evaluator: QueryEvaluator,
    separators: &[String],
    raised: &Raised,
) -> QueryEvaluator {
    let name = |name: &str| NamedNode::new_unchecked(name);
    let extreme = |wanted| {
        let raised = raised.clone();
        move || -> Box<dyn AggregateFunctionAccumulator + Send + Sync> {
            Box::new(Extreme { wanted, value: None, raised: raised.clone() })
        }
    };
    for (index, separator) in separators.iter().enumerate() {
        let separator = separator.clone();
        evaluator = evaluator.with_custom_aggregate_function(joined_by(index), move || {
            Box::new(Joined { separator: separator.clone(), text: None })
        });
    }
    evaluator
        .with_custom_aggregate_function(name(AVERAGE), || {
            Box::new(Total { is_mean: true, ..Total::default() })
        })
        .with_custom_aggregate_function(name(SUM), || Box::<Total>::default())
        .with_custom_aggregate_function(name(LEAST), extreme(Ordering::Less))
        .with_custom_aggregate_function(name(GREATEST), extreme(Ordering::Greater))
}

/// The place of a term's kind among terms: blank nodes, IRIs, literals.
pub(in super::super) fn rank(term: &Term) -> u8 {
    match term {
        Term::BlankNode(_) => 0,
        Term::NamedNode(_) => 1,
        Term::Literal(_) => 2,
    }
}

/// rdflib's order of literals: those of different types are ordered by the names of their types, those with a language
/// after plain ones.
pub(super) fn order(left: &Term, right: &Term) -> Option<Ordering> {
    fn key(literal: &Literal) -> (&str, Option<&str>, &str) {
        let datatype = match literal.language() {
            Some(_) => vocab::xsd::STRING.as_str(),
            None => literal.datatype().as_str(),
        };
        (datatype, literal.language(), literal.value())
    }
    match (left, right) {
        (Term::Literal(left), Term::Literal(right)) => Some(match (number(left), number(right)) {
            (Some(left), Some(right)) => left.total_cmp(&right),
            _ => moments(left, right).unwrap_or_else(|| key(left).cmp(&key(right))),
        }),
        _ => None,
    }
}

/// The order of two times; those without a zone come first.
fn moments(left: &Literal, right: &Literal) -> Option<Ordering> {
    if left.datatype() != right.datatype() {
        return None;
    }
    match (has_zone(left)?, has_zone(right)?) {
        (false, true) => Some(Ordering::Less),
        (true, false) => Some(Ordering::Greater),
        _ => value::compare(left, right),
    }
}

/// The kind of a term as a sort key: no value, blank nodes, IRIs, then literals by the names of their types. All numbers
/// are one kind.
pub(super) fn kind(term: &Term) -> String {
    match term {
        term if is_nothing(term) => "0".to_owned(),
        Term::BlankNode(_) => "1".to_owned(),
        Term::NamedNode(_) => "2".to_owned(),
        Term::Literal(literal) => match (literal.language(), literal.datatype()) {
            (Some(language), _) => format!("3{} {language}", vocab::xsd::STRING.as_str()),
            (None, datatype) if is_numeric(datatype.as_str()) => format!("3{}", vocab::xsd::DECIMAL.as_str()),
            // Times without a zone come first.
            (None, datatype) => {
                let zone = has_zone(literal).map_or("", |has_zone| if has_zone { " 1" } else { " 0" });
                format!("3{}{zone}", datatype.as_str())
            }
        },
    }
}

fn number(literal: &Literal) -> Option<f64> {
    if is_numeric(literal.datatype().as_str()) { literal.value().parse().ok() } else { None }
}

/// Concatenates texts; the concatenation of no texts is empty.
struct Joined {
    separator: String,
    text: Option<String>,
}

impl AggregateFunctionAccumulator for Joined {
    fn accumulate(&mut self, element: Term) {
        if is_nothing(&element) {
            return;
        }
        match &mut self.text {
            None => self.text = Some(plain(&element).to_owned()),
            Some(text) => {
                text.push_str(&self.separator);
                text.push_str(plain(&element));
            }
        }
    }

    fn finish(&mut self) -> Option<Term> {
        Some(Literal::new_simple_literal(self.text.take().unwrap_or_default()).into())
    }
}

/// The least or the greatest term, in the order blank nodes, IRIs, literals. The result is always a literal.
struct Extreme {
    wanted: Ordering,
    value: Option<Term>,
    /// Python cannot compare a value with an error.
    raised: Raised,
}

impl AggregateFunctionAccumulator for Extreme {
    fn accumulate(&mut self, element: Term) {
        let element = uncarried(element);
        if is_nothing(&element) {
            return;
        }
        if let Some(value) = &self.value
            && (is_failed(value) || is_failed(&element))
        {
            self.raised.set();
            return;
        }
        let beats = |value: &Term| {
            let ranks = rank(&element).cmp(&rank(value));
            ranks.then_with(|| order(&element, value).unwrap_or_else(|| plain(&element).cmp(plain(value))))
                == self.wanted
        };
        if self.value.as_ref().is_none_or(beats) {
            self.value = Some(element);
        }
    }

    fn finish(&mut self) -> Option<Term> {
        Some(match self.value.take().filter(|value| !is_failed(value))? {
            Term::NamedNode(node) => Literal::new_simple_literal(node.into_string()).into(),
            Term::BlankNode(node) => Literal::new_simple_literal(node.into_string()).into(),
            literal @ Term::Literal(_) => carried(literal),
        })
    }
}

/// Whether a term represents a missing value.
pub(super) fn is_nothing(term: &Term) -> bool {
    matches!(term, Term::NamedNode(node) if node.as_str() == NOTHING)
}

fn is_failed(term: &Term) -> bool {
    matches!(term, Term::NamedNode(node) if node.as_str() == FAILED)
}

fn plain(term: &Term) -> &str {
    match term {
        Term::NamedNode(node) => node.as_str(),
        Term::BlankNode(node) => node.as_str(),
        Term::Literal(literal) => literal.value(),
    }
}

/// The sum or the mean of numbers; what is no number does not count.
#[derive(Default)]
struct Total {
    is_mean: bool,
    count: i64,
    /// The sum so far; `None` if it is none.
    sum: Option<Literal>,
}

impl AggregateFunctionAccumulator for Total {
    fn accumulate(&mut self, element: Term) {
        let element = uncarried(element);
        let Term::Literal(literal) = &element else { return };
        if number(literal).is_none() {
            return;
        }
        self.sum = match (&self.sum, self.count) {
            (_, 0) => Some(literal.clone()),
            (Some(sum), _) => arithmetic::computed(Operation::Add, &sum.clone().into(), &element),
            (None, _) => None,
        };
        self.count += 1;
    }

    fn finish(&mut self) -> Option<Term> {
        if self.count == 0 {
            return Some(Literal::from(0).into());
        }
        let sum = self.sum.take()?;
        if !self.is_mean {
            return Some(carried(sum.into()));
        }
        let is_float = [vocab::xsd::DOUBLE, vocab::xsd::FLOAT].contains(&sum.datatype());
        if is_float {
            return Some(Literal::from(number(&sum)? / self.count as f64).into());
        }
        let mean = arithmetic::computed(Operation::Divide, &sum.into(), &Literal::from(self.count).into())?;
        Some(carried(mean.into()))
    }
}
