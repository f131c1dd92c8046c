//! Joins in which the right side sees the bindings of the left side.
//!
//! rdflib evaluates the right side of most joins once for each solution of the left side, with the variables of that
//! solution bound. This includes a SELECT on the right, whether or not it projects them. For triple patterns the result
//! is the same. But a SELECT with aggregates is then grouped separately for each of those solutions. In the algebra this
//! is a grouping by the variables that both sides bind.
//!
//! rdflib joins differently, and so does this module, if one side contains a join, a LIMIT or a DISTINCT.

use super::aggregates;
use super::algebra::{extend, filtered, rewrite};
use super::python;
use oxrdf::{NamedNode, Variable};
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern};
use std::collections::BTreeSet;

type Variables = BTreeSet<Variable>;

/// The join in which `right` sees the variables of `left`.
pub(super) fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    let outer = bound(&left);
    let right = without_values_of(right, &outer);
    if !has_select(&right) {
        return super::path::join(left, right);
    }
    match Ungrouped::of(right) {
        Ok(ungrouped) => ungrouped.for_each(left, &outer),
        Err(mut right) => {
            see(&mut right, &outer);
            if keeps_rows_without_groups(&right, &outer) {
                return GraphPattern::LeftJoin { left: Box::new(left), right, expression: None };
            }
            super::path::join(left, *right)
        }
    }
}

/// The pattern of an EXISTS. Its BINDs see what the group before them binds, and nothing of the row that is looked at.
pub(super) fn within_exists(pattern: GraphPattern) -> GraphPattern {
    let boxed = |inner: Box<GraphPattern>| Box::new(within_exists(*inner));
    match pattern {
        GraphPattern::Extend { inner, variable, expression } => {
            let inner = boxed(inner);
            let mut seen = Variables::new();
            inner.on_in_scope_variable(|variable| {
                seen.insert(variable.clone());
            });
            let expression = rewrite(expression, &mut |part| match part {
                Expression::Variable(variable) if !seen.contains(variable) => {
                    Some(Expression::Coalesce(Vec::new()))
                }
                _ => None,
            });
            GraphPattern::Extend { inner, variable, expression }
        }
        GraphPattern::Filter { inner, expr } => GraphPattern::Filter { inner: boxed(inner), expr },
        GraphPattern::Join { left, right } => GraphPattern::Join { left: boxed(left), right: boxed(right) },
        GraphPattern::Union { left, right } => GraphPattern::Union { left: boxed(left), right: boxed(right) },
        other => other,
    }
}

/// A pattern without the values that it gives to variables that are bound before it: rdflib keeps those that they have, and
/// does not ask whether both are the same.
fn without_values_of(pattern: GraphPattern, outer: &Variables) -> GraphPattern {
    match pattern {
        GraphPattern::Union { left, right } => GraphPattern::Union {
            left: Box::new(without_values_of(*left, outer)),
            right: Box::new(without_values_of(*right, outer)),
        },
        GraphPattern::Project { inner, mut variables } => {
            let given = given(&inner);
            variables.retain(|variable| !(outer.contains(variable) && given.contains(variable)));
            GraphPattern::Project { inner, variables }
        }
        pattern => {
            let given = &given(&pattern) & outer;
            if given.is_empty() {
                return pattern;
            }
            let mut variables = Vec::new();
            pattern.on_in_scope_variable(|variable| {
                if !given.contains(variable) && !variables.contains(variable) {
                    variables.push(variable.clone());
                }
            });
            GraphPattern::Project { inner: Box::new(pattern), variables }
        }
    }
}

/// The variables to which a pattern gives values by BIND or AS.
fn given(pattern: &GraphPattern) -> Variables {
    match pattern {
        GraphPattern::Extend { inner, variable, .. } => {
            let mut all = given(inner);
            all.insert(variable.clone());
            all
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Reduced { inner } => given(inner),
        GraphPattern::Project { inner, variables } => &given(inner) & &variables.iter().cloned().collect(),
        _ => Variables::new(),
    }
}

/// The groups of a GROUP BY; where there are none, one solution that binds nothing, as rdflib has it.
pub(super) fn or_nothing(groups: GraphPattern) -> GraphPattern {
    let nothing = GraphPattern::Bgp { patterns: Vec::new() };
    GraphPattern::LeftJoin { left: Box::new(nothing), right: Box::new(groups), expression: None }
}

/// Whether this is what [`or_nothing`] made.
fn is_groups_or_nothing(left: &GraphPattern, right: &GraphPattern) -> bool {
    matches!(left, GraphPattern::Bgp { patterns } if patterns.is_empty())
        && matches!(right, GraphPattern::Group { .. })
}

/// Whether a SELECT has a row for each solution on the left, also where none of its groups goes with it: it groups by what
/// that solution binds, and no HAVING drops the row that binds nothing.
fn keeps_rows_without_groups(select: &GraphPattern, outer: &Variables) -> bool {
    match select {
        GraphPattern::Project { inner, variables } => {
            variables.iter().any(|variable| outer.contains(variable))
                && keeps_rows_without_groups(inner, outer)
        }
        GraphPattern::Reduced { inner }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => keeps_rows_without_groups(inner, outer),
        GraphPattern::LeftJoin { left, right, .. } => is_groups_or_nothing(left, right),
        _ => false,
    }
}

/// Makes variables that are bound outside of a pattern visible to its SELECTs.
pub(super) fn see(pattern: &mut GraphPattern, outer: &Variables) {
    match pattern {
        GraphPattern::Project { inner, variables } => {
            see_in_select(inner, outer);
            add(variables, outer, &bound_in_select(inner));
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Reduced { inner } => see(inner, outer),
        GraphPattern::Union { left, right } | GraphPattern::Join { left, right } => {
            see(left, outer);
            see(right, outer);
        }
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => see(left, outer),
        _ => {}
    }
}

/// The same for the pattern of a SELECT.
fn see_in_select(pattern: &mut GraphPattern, outer: &Variables) {
    match pattern {
        GraphPattern::Group { inner, variables, .. } => {
            see(inner, outer);
            add(variables, outer, &bound(inner));
        }
        GraphPattern::LeftJoin { left, right, .. } if is_groups_or_nothing(left, right) => {
            see_in_select(right, outer);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => see_in_select(inner, outer),
        other => see(other, outer),
    }
}

/// The variables that every group of a SELECT binds, or every solution where it does not group.
fn bound_in_select(pattern: &GraphPattern) -> Variables {
    match pattern {
        GraphPattern::LeftJoin { left, right, .. } if is_groups_or_nothing(left, right) => bound(right),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => bound_in_select(inner),
        other => bound(other),
    }
}

/// Adds the variables that are bound on both sides.
fn add(variables: &mut Vec<Variable>, outer: &Variables, inner: &Variables) {
    for variable in outer.intersection(inner) {
        if !variables.contains(variable) {
            variables.push(variable.clone());
        }
    }
}

/// A SELECT with aggregates and without GROUP BY: it has exactly one row, for each solution of the left side.
struct Ungrouped {
    /// What is grouped.
    inner: GraphPattern,
    aggregates: Vec<(Variable, AggregateExpression)>,
    /// The steps applied to the aggregates, the first step last.
    steps: Vec<Step>,
    projected: Vec<Variable>,
}

enum Step {
    Extend(Variable, Expression),
    Filter(Expression),
}

impl Ungrouped {
    fn of(pattern: GraphPattern) -> Result<Self, Box<GraphPattern>> {
        let GraphPattern::Project { inner, variables } = pattern else {
            return Err(Box::new(pattern));
        };
        let (mut inner, projected) = (inner, variables);
        let mut steps = Vec::new();
        loop {
            match *inner {
                GraphPattern::Extend { inner: next, variable, expression } => {
                    steps.push(Step::Extend(variable, expression));
                    inner = next;
                }
                GraphPattern::Filter { inner: next, expr } => {
                    steps.push(Step::Filter(expr));
                    inner = next;
                }
                // One row needs no order.
                GraphPattern::OrderBy { inner: next, .. } => inner = next,
                GraphPattern::Group { inner, variables, aggregates } if variables.is_empty() => {
                    return Ok(Self { inner: *inner, aggregates, steps, projected });
                }
                other => return Err(Box::new(Self::put_back(other, steps, projected))),
            }
        }
    }

    fn put_back(pattern: GraphPattern, steps: Vec<Step>, projected: Vec<Variable>) -> GraphPattern {
        let inner = Box::new(with_steps(pattern, steps));
        GraphPattern::Project { inner, variables: projected }
    }

    /// Its row for each solution of `left`.
    fn for_each(mut self, left: GraphPattern, outer: &Variables) -> GraphPattern {
        see(&mut self.inner, outer);
        let common: Vec<Variable> = outer.intersection(&bound(&self.inner)).cloned().collect();
        if common.is_empty() {
            let Self { inner, aggregates, steps, projected } = self;
            let group = GraphPattern::Group { inner: Box::new(inner), variables: Vec::new(), aggregates };
            return super::path::join(left, Self::put_back(group, steps, projected));
        }
        // Rows keep the values that they have, see `without_values_of`.
        self.steps.retain(|step| !matches!(step, Step::Extend(variable, _) if outer.contains(variable)));
        let of_groups = self.aggregates.iter().map(|(variable, _)| variable.clone());
        let projected = common.iter().cloned().chain(of_groups).collect();
        let defaults: Vec<_> = self
            .aggregates
            .iter()
            .filter_map(|(variable, aggregate)| Some((variable.clone(), aggregates::of_nothing(aggregate)?)))
            .collect();
        let group = GraphPattern::Group {
            inner: Box::new(self.inner),
            variables: common,
            aggregates: self.aggregates,
        };
        let right = GraphPattern::Project { inner: Box::new(group), variables: projected };
        let mut pattern =
            GraphPattern::LeftJoin { left: Box::new(left), right: Box::new(right), expression: None };
        for (variable, default) in defaults {
            let value = Expression::Coalesce(vec![variable.clone().into(), default.into()]);
            pattern = extend(pattern, variable, value);
        }
        with_steps(pattern, self.steps)
    }
}

fn with_steps(pattern: GraphPattern, steps: Vec<Step>) -> GraphPattern {
    steps.into_iter().rev().fold(pattern, |pattern, step| match step {
        Step::Extend(variable, expression) => extend(pattern, variable, expression),
        Step::Filter(expression) => filtered(pattern, vec![expression]),
    })
}

fn has_select(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Project { .. } => true,
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Reduced { inner } => has_select(inner),
        GraphPattern::Union { left, right }
        | GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Minus { left, right } => has_select(left) || has_select(right),
        _ => false,
    }
}

/// The value of an expression that is the same for all solutions.
pub(in super::super) fn constant(expression: &Expression) -> Option<GroundTerm> {
    match expression {
        Expression::NamedNode(node) => Some(node.clone().into()),
        Expression::Literal(literal) => Some(literal.clone().into()),
        Expression::FunctionCall(function, arguments) if python::is_iri(function) => {
            match arguments.as_slice() {
                [Expression::Literal(text)] => Some(NamedNode::new_unchecked(text.value()).into()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// All variables of a pattern that can be seen from outside.
pub(super) fn in_scope(pattern: &GraphPattern) -> Variables {
    let mut all = Variables::new();
    pattern.on_in_scope_variable(|variable| {
        all.insert(variable.clone());
    });
    all
}

/// The variables that only VALUES binds.
pub(super) fn only_given(pattern: &GraphPattern) -> Variables {
    fn elsewhere(pattern: &GraphPattern) -> Variables {
        match pattern {
            GraphPattern::Values { .. } => Variables::new(),
            GraphPattern::Join { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::LeftJoin { left, right, .. }
            | GraphPattern::Minus { left, right } => &elsewhere(left) | &elsewhere(right),
            GraphPattern::Filter { inner, .. } => elsewhere(inner),
            GraphPattern::Extend { inner, variable, .. } => {
                let mut all = elsewhere(inner);
                all.insert(variable.clone());
                all
            }
            other => in_scope(other),
        }
    }
    &in_scope(pattern) - &elsewhere(pattern)
}

/// The variables that every solution of a pattern binds.
pub(in super::super) fn bound(pattern: &GraphPattern) -> Variables {
    let of_term = |term: &TermPattern| match term {
        TermPattern::Variable(variable) => Some(variable.clone()),
        _ => None,
    };
    match pattern {
        GraphPattern::Bgp { patterns } => patterns
            .iter()
            .flat_map(|triple| {
                let predicate = match &triple.predicate {
                    NamedNodePattern::Variable(variable) => Some(variable.clone()),
                    NamedNodePattern::NamedNode(_) => None,
                };
                [of_term(&triple.subject), predicate, of_term(&triple.object)]
            })
            .flatten()
            .collect(),
        GraphPattern::Path { subject, object, .. } => {
            [of_term(subject), of_term(object)].into_iter().flatten().collect()
        }
        GraphPattern::Join { left, right } => &bound(left) | &bound(right),
        GraphPattern::Union { left, right } => &bound(left) & &bound(right),
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => bound(left),
        GraphPattern::Values { variables, bindings } => variables
            .iter()
            .enumerate()
            .filter(|(column, _)| bindings.iter().all(|row| row[*column].is_some()))
            .map(|(_, variable)| variable.clone())
            .collect(),
        GraphPattern::Project { inner, variables } => {
            &bound(inner) & &variables.iter().cloned().collect::<Variables>()
        }
        GraphPattern::Group { inner, variables, .. } => {
            &bound(inner) & &variables.iter().cloned().collect::<Variables>()
        }
        GraphPattern::Extend { inner, variable, expression } => {
            let mut all = bound(inner);
            let is_bound = match expression {
                Expression::Variable(other) => all.contains(other),
                other => constant(other).is_some(),
            };
            all.extend(is_bound.then(|| variable.clone()));
            all
        }
        GraphPattern::Graph { inner, .. }
        | GraphPattern::Service { inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => bound(inner),
    }
}
