//! Literals keep their form through the engine.
//!
//! The engine computes with values, and writes a value in one form: `12.50` becomes `12.5`, `007` becomes `7`. A query that
//! hands on a literal of the graph must hand on that literal, or a join with it finds nothing. So wherever an expression
//! hands on a term instead of a value (STR, DATATYPE, aggregates, branches of IF), its variables are replaced by calls of
//! [`EXACT`], which returns the literal under a datatype that the engine does not know and so leaves alone: the *carrier*.
//! What computes with a value sees no carrier.

use std::cmp::Ordering;

use oxrdf::{Literal, NamedNode, Term, vocab::xsd};
use spareval::{AggregateFunctionAccumulator, QueryEvaluator};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
};
use spargebra::term::{GroundTerm, TermPattern};

use super::carrier::{READ, carried, changes, uncarried};
use super::compared::ComparedLiterals;
use super::rdflib::aggregates::rank;
use super::rdflib::functions::{hands_on_forms, is_comparison, takes_forms};
use super::rdflib::{inner_patterns, map_parts, replace};

const EXACT: &str = "urn:kgfleet:exact";
const VALUE: &str = "urn:kgfleet:value";
const DATATYPE: &str = "urn:kgfleet:datatype";
const TYPED: &str = "urn:kgfleet:typed";
const ALREADY: &str = "urn:kgfleet:already";
const LEAST: &str = "urn:kgfleet:least-form";
const GREATEST: &str = "urn:kgfleet:greatest-form";

/// The query in which terms keep their forms. `changing` says whether the graph has literals whose form the engine
/// changes, `compared` which literals it has.
pub(super) fn kept(query: &Query, changing: bool, compared: ComparedLiterals) -> Query {
    let mut rewriting = Rewriting { variables: changing, changing, as_rdflib: compared.differs(), compared };
    let rewritten = rewriting.query(query.clone());
    if rewriting.changing == rewriting.variables && rewriting.as_rdflib == rewriting.compared.differs() {
        return rewritten;
    }
    rewriting.variables = rewriting.changing;
    rewriting.as_rdflib = rewriting.compared.differs();
    rewriting.query(query.clone())
}

/// Registers the functions and aggregates of rewritten queries.
pub(super) fn register(evaluator: QueryEvaluator) -> QueryEvaluator {
    let name = NamedNode::new_unchecked;
    let extreme = |wanted| {
        move || -> Box<dyn AggregateFunctionAccumulator + Send + Sync> {
            Box::new(Extreme { wanted, value: None })
        }
    };
    evaluator
        .with_custom_function(name(EXACT), |arguments| {
            READ.with_borrow(|read| read.clone().map(carried)).or_else(|| arguments.first().cloned())
        })
        .with_custom_function(name(VALUE), |arguments| arguments.first().cloned().map(uncarried))
        .with_custom_function(name(DATATYPE), |arguments| match uncarried(arguments.first()?.clone()) {
            Term::Literal(literal) => Some(literal.datatype().into_owned().into()),
            _ => None,
        })
        .with_custom_function(name(TYPED), |arguments| match arguments {
            [Term::Literal(text), Term::NamedNode(datatype)]
                if text.language().is_none() && text.datatype() == xsd::STRING =>
            {
                Some(carried(Literal::new_typed_literal(text.value(), datatype.clone()).into()))
            }
            _ => None,
        })
        .with_custom_function(name(ALREADY), |arguments| match arguments {
            [term, Term::NamedNode(wanted)] => match uncarried(term.clone()) {
                Term::Literal(literal) if literal.datatype() == wanted.as_ref() => Some(term.clone()),
                _ => None,
            },
            _ => None,
        })
        .with_custom_aggregate_function(name(LEAST), extreme(Ordering::Less))
        .with_custom_aggregate_function(name(GREATEST), extreme(Ordering::Greater))
}

/// MIN and MAX of the standard, which return one of the terms that they compare.
struct Extreme {
    wanted: Ordering,
    value: Option<Term>,
}

impl AggregateFunctionAccumulator for Extreme {
    fn accumulate(&mut self, element: Term) {
        let element = uncarried(element);
        if self.value.as_ref().is_none_or(|value| order(&element, value) == self.wanted) {
            self.value = Some(element);
        }
    }

    fn finish(&mut self) -> Option<Term> {
        self.value.take().map(carried)
    }
}

/// The engine's order of terms: blank nodes, IRIs, literals by their values where these can be compared.
fn order(left: &Term, right: &Term) -> Ordering {
    match (left, right) {
        (Term::BlankNode(left), Term::BlankNode(right)) => left.as_str().cmp(right.as_str()),
        (Term::NamedNode(left), Term::NamedNode(right)) => left.as_str().cmp(right.as_str()),
        (Term::Literal(left), Term::Literal(right)) => {
            crate::value::compare(left, right).unwrap_or_else(|| {
                let key = |literal: &Literal| {
                    (
                        literal.value().to_owned(),
                        literal.datatype().into_owned(),
                        literal.language().map(str::to_owned),
                    )
                };
                key(left).cmp(&key(right))
            })
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

struct Rewriting {
    /// Whether variables may have terms whose form the engine changes.
    variables: bool,
    /// Whether the graph or the query has such terms.
    changing: bool,
    /// Whether comparisons are left to rdflib's order alone.
    as_rdflib: bool,
    /// Which literals the graph or the query has.
    compared: ComparedLiterals,
}

impl Rewriting {
    fn query(&mut self, mut query: Query) -> Query {
        if let Query::Select { pattern, .. } | Query::Ask { pattern, .. } = &mut query {
            self.pattern(pattern);
        }
        query
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        for inner in inner_patterns(pattern) {
            self.pattern(inner);
        }
        match pattern {
            GraphPattern::Bgp { patterns } => patterns.iter().for_each(|triple| self.node(&triple.object)),
            GraphPattern::Path { subject, object, .. } => {
                self.node(subject);
                self.node(object);
            }
            GraphPattern::Values { bindings, .. } => {
                for term in bindings.iter().flatten().flatten() {
                    if let GroundTerm::Literal(literal) = term {
                        self.literal(literal);
                    }
                }
            }
            GraphPattern::Filter { expr: condition, .. }
            | GraphPattern::LeftJoin { expression: Some(condition), .. } => {
                replace(condition, |condition| self.value(condition));
            }
            GraphPattern::Extend { expression, .. } => {
                replace(expression, |expression| self.handed_on(expression));
            }
            GraphPattern::OrderBy { expression, .. } => {
                for OrderExpression::Asc(by) | OrderExpression::Desc(by) in expression {
                    replace(by, |by| self.value(by));
                }
            }
            GraphPattern::Group { aggregates, .. } => {
                for (_, aggregate) in aggregates {
                    *aggregate = self.aggregate(aggregate.clone());
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, node: &TermPattern) {
        if let TermPattern::Literal(literal) = node {
            self.literal(literal);
        }
    }

    fn literal(&mut self, literal: &Literal) {
        self.compared.add(literal);
        self.changing = self.changing || changes(&literal.clone().into());
    }

    fn aggregate(&mut self, aggregate: AggregateExpression) -> AggregateExpression {
        let AggregateExpression::FunctionCall { name, expr, distinct } = aggregate else { return aggregate };
        let (name, expr) = match name {
            AggregateFunction::Count => (name, self.handed_on(expr)),
            AggregateFunction::Sample | AggregateFunction::Custom(_) => (name, self.form(expr)),
            AggregateFunction::Min | AggregateFunction::Max if self.variables => {
                let own = if name == AggregateFunction::Min { LEAST } else { GREATEST };
                (AggregateFunction::Custom(NamedNode::new_unchecked(own)), self.form(expr))
            }
            name => (name, self.value(expr)),
        };
        AggregateExpression::FunctionCall { name, expr, distinct }
    }

    /// An expression whose term is handed on. The engine itself keeps the terms of variables, and of choices between them.
    fn handed_on(&mut self, expression: Expression) -> Expression {
        if !is_kept(&expression) {
            return self.form(expression);
        }
        match expression {
            Expression::If(condition, yes, no) => {
                let condition = Box::new(self.value(*condition));
                Expression::If(condition, Box::new(self.handed_on(*yes)), Box::new(self.handed_on(*no)))
            }
            Expression::Coalesce(list) => {
                Expression::Coalesce(list.into_iter().map(|one| self.handed_on(one)).collect())
            }
            Expression::Literal(literal) => {
                self.literal(&literal);
                literal.into()
            }
            other => other,
        }
    }

    /// An expression whose term is read by one that knows carriers.
    fn form(&mut self, expression: Expression) -> Expression {
        match expression {
            Expression::Variable(_) if self.variables => call(EXACT, vec![expression]),
            Expression::Literal(literal) => {
                self.literal(&literal);
                match carried(literal.clone().into()) {
                    Term::Literal(carried) => carried.into(),
                    _ => literal.into(),
                }
            }
            Expression::If(condition, yes, no) => {
                let condition = Box::new(self.value(*condition));
                Expression::If(condition, Box::new(self.form(*yes)), Box::new(self.form(*no)))
            }
            Expression::Coalesce(list) => {
                Expression::Coalesce(list.into_iter().map(|one| self.form(one)).collect())
            }
            Expression::FunctionCall(Function::StrDt, arguments) => {
                self.changing = true;
                call(TYPED, arguments.into_iter().map(|argument| self.value(argument)).collect())
            }
            Expression::FunctionCall(Function::Custom(name), arguments) if hands_on_forms(&name) => {
                self.changing = true;
                let arguments = arguments.into_iter().map(|argument| self.form(argument)).collect();
                Expression::FunctionCall(Function::Custom(name), arguments)
            }
            // A cast to the type that a term has changes nothing.
            Expression::FunctionCall(Function::Custom(name), arguments)
                if self.variables && name.as_str().starts_with(XSD) && name != xsd::STRING =>
            {
                match arguments.as_slice() {
                    [Expression::Variable(_) | Expression::Literal(_)] => {
                        let argument = self.form(arguments[0].clone());
                        let already = call(ALREADY, vec![argument, name.clone().into()]);
                        let cast = Expression::FunctionCall(Function::Custom(name), arguments);
                        Expression::Coalesce(vec![already, cast])
                    }
                    _ => self.value(Expression::FunctionCall(Function::Custom(name), arguments)),
                }
            }
            other => self.value(other),
        }
    }

    /// An expression whose value is computed with.
    fn value(&mut self, expression: Expression) -> Expression {
        match expression {
            Expression::Coalesce(mut list) => {
                if self.as_rdflib && list.len() == 2 && is_comparison(&list[1]) {
                    list.remove(0);
                }
                Expression::Coalesce(self.values(list))
            }
            Expression::SameTerm(a, b) => {
                Expression::SameTerm(Box::new(self.handed_on(*a)), Box::new(self.handed_on(*b)))
            }
            Expression::Exists(mut inner) => {
                self.pattern(&mut inner);
                Expression::Exists(inner)
            }
            Expression::FunctionCall(Function::Str, list) => {
                Expression::FunctionCall(Function::Str, self.forms(list))
            }
            Expression::FunctionCall(Function::Datatype, list) if self.variables => {
                call(DATATYPE, self.forms(list))
            }
            Expression::FunctionCall(Function::Custom(name), list) if name == xsd::STRING => {
                Expression::FunctionCall(Function::Custom(name), self.forms(list))
            }
            Expression::FunctionCall(Function::Custom(name), list) if hands_on_forms(&name) => {
                self.changing = true;
                call(VALUE, vec![Expression::FunctionCall(Function::Custom(name), self.forms(list))])
            }
            Expression::FunctionCall(Function::Custom(name), list) if takes_forms(&name) => {
                Expression::FunctionCall(Function::Custom(name), self.forms(list))
            }
            Expression::Literal(literal) => match uncarried(literal.clone().into()) {
                Term::Literal(plain) => {
                    self.compared.add(&plain);
                    plain.into()
                }
                _ => literal.into(),
            },
            other => map_parts(other, &mut |part| self.value(part)),
        }
    }

    fn values(&mut self, list: Vec<Expression>) -> Vec<Expression> {
        list.into_iter().map(|one| self.value(one)).collect()
    }

    fn forms(&mut self, list: Vec<Expression>) -> Vec<Expression> {
        list.into_iter().map(|one| self.form(one)).collect()
    }
}

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Whether the engine hands on the term of an expression without reading its value.
fn is_kept(expression: &Expression) -> bool {
    match expression {
        Expression::NamedNode(_) | Expression::Literal(_) | Expression::Variable(_) => true,
        Expression::Coalesce(list) => list.iter().all(is_kept),
        Expression::If(_, yes, no) => is_kept(yes) && is_kept(no),
        _ => false,
    }
}

fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    Expression::FunctionCall(Function::Custom(NamedNode::new_unchecked(name)), arguments)
}
