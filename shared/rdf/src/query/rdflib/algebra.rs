//! Pieces of the algebra that several rules put together.

use oxrdf::Variable;
use spargebra::algebra::{Expression, GraphPattern};

/// Replaces parts of an expression from the outside in; what `replace` returns is not searched again, and neither are the
/// patterns of EXISTS.
pub(in super::super) fn rewrite(
    expression: Expression,
    replace: &mut dyn FnMut(&Expression) -> Option<Expression>,
) -> Expression {
    if let Some(replacement) = replace(&expression) {
        return replacement;
    }
    map_parts(expression, &mut |part| rewrite(part, &mut *replace))
}

/// The same expression of other parts. The pattern of EXISTS is none.
pub(in super::super) fn map_parts(
    expression: Expression,
    other: &mut dyn FnMut(Expression) -> Expression,
) -> Expression {
    let mut one = |inner: Box<Expression>| Box::new(other(*inner));
    match expression {
        Expression::Or(a, b) => Expression::Or(one(a), one(b)),
        Expression::And(a, b) => Expression::And(one(a), one(b)),
        Expression::Equal(a, b) => Expression::Equal(one(a), one(b)),
        Expression::SameTerm(a, b) => Expression::SameTerm(one(a), one(b)),
        Expression::Greater(a, b) => Expression::Greater(one(a), one(b)),
        Expression::GreaterOrEqual(a, b) => Expression::GreaterOrEqual(one(a), one(b)),
        Expression::Less(a, b) => Expression::Less(one(a), one(b)),
        Expression::LessOrEqual(a, b) => Expression::LessOrEqual(one(a), one(b)),
        Expression::Add(a, b) => Expression::Add(one(a), one(b)),
        Expression::Subtract(a, b) => Expression::Subtract(one(a), one(b)),
        Expression::Multiply(a, b) => Expression::Multiply(one(a), one(b)),
        Expression::Divide(a, b) => Expression::Divide(one(a), one(b)),
        Expression::UnaryPlus(a) => Expression::UnaryPlus(one(a)),
        Expression::UnaryMinus(a) => Expression::UnaryMinus(one(a)),
        Expression::Not(a) => Expression::Not(one(a)),
        Expression::If(a, b, c) => Expression::If(one(a), one(b), one(c)),
        Expression::In(a, list) => Expression::In(one(a), list.into_iter().map(other).collect()),
        Expression::Coalesce(list) => Expression::Coalesce(list.into_iter().map(other).collect()),
        Expression::FunctionCall(function, list) => {
            Expression::FunctionCall(function, list.into_iter().map(other).collect())
        }
        leaf @ (Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Exists(_)
        | Expression::Bound(_)) => leaf,
    }
}

/// The patterns of which a pattern is made. Those of EXISTS are none, and neither is what another place would evaluate.
pub(in super::super) fn inner_patterns(pattern: &mut GraphPattern) -> Vec<&mut GraphPattern> {
    match pattern {
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => vec![left, right],
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => vec![inner],
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }
        | GraphPattern::Service { .. } => Vec::new(),
    }
}

/// Changes an expression where it stands.
pub(in super::super) fn replace(place: &mut Expression, by: impl FnOnce(Expression) -> Expression) {
    let expression = std::mem::replace(place, Expression::Coalesce(Vec::new()));
    *place = by(expression);
}

/// The conjunction of conditions; `None` if there are none.
pub(super) fn all_of(conditions: Vec<Expression>) -> Option<Expression> {
    conditions.into_iter().reduce(|left, right| Expression::And(Box::new(left), Box::new(right)))
}

/// A pattern filtered by conditions, if there are any.
pub(super) fn filtered(inner: GraphPattern, conditions: Vec<Expression>) -> GraphPattern {
    match all_of(conditions) {
        Some(expr) => GraphPattern::Filter { expr, inner: Box::new(inner) },
        None => inner,
    }
}

pub(super) fn extend(inner: GraphPattern, variable: Variable, expression: Expression) -> GraphPattern {
    GraphPattern::Extend { inner: Box::new(inner), variable, expression }
}

pub(super) fn not(expression: Expression) -> Expression {
    Expression::Not(Box::new(expression))
}
