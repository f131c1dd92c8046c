//! SELECT and its modifiers, translated as rdflib's `algebra.translate` does.

use super::Reader;
use super::algebra::{extend, filtered, rewrite};
use super::expression::has_aggregate;
use super::functions;
use super::lazy;
use super::path::join;
use oxrdf::Variable;
use spargebra::Query;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression};
use std::collections::HashSet;

/// One item of a projection.
enum Item {
    Variable(Variable),
    Alias(Expression, Variable),
}

/// A key of GROUP BY.
enum Key {
    Expression(Expression),
    /// An expression in brackets without a name: rdflib raises.
    Nameless,
    Alias(Expression, Variable),
}

/// A SELECT as read.
struct Select {
    modifier: Option<&'static str>,
    /// Empty for `*`.
    items: Vec<Item>,
    pattern: GraphPattern,
    /// The variables of the pattern.
    visible: Vec<Variable>,
    keys: Vec<Key>,
    having: Vec<Expression>,
    order: Vec<(bool, Expression)>,
    slice: Option<(usize, Option<usize>)>,
    values: Option<GraphPattern>,
}

impl Reader<'_> {
    /// A whole query.
    pub(super) fn query(&mut self) -> Option<Query> {
        while self.attempt(Self::declaration).is_some() {}
        self.is_select = self.scanner.peek_word().eq_ignore_ascii_case("SELECT");
        let select = self.select(true)?;
        if !self.scanner.is_done() {
            return None;
        }
        let (pattern, _) = self.translate(select);
        Some(Query::Select { dataset: None, pattern, base_iri: None })
    }

    fn declaration(&mut self) -> Option<()> {
        if self.scanner.keyword("BASE") {
            let iri = self.scanner.iri_reference()?;
            self.base = Some(iri.to_owned());
        } else {
            self.keyword("PREFIX")?;
            let prefix = self.scanner.prefix()?;
            let iri = self.scanner.iri_reference()?;
            let namespace = self.absolute(iri);
            // A namespace has one prefix: the one declared last.
            self.declared.retain(|_, taken| *taken != namespace);
            self.declared.insert(prefix, namespace);
        }
        Some(())
    }

    /// A SELECT in a group. Only its projected variables are visible to the group around it.
    pub(super) fn sub_select(&mut self) -> Option<GraphPattern> {
        let outer = (std::mem::take(&mut self.mentioned), std::mem::take(&mut self.evaluates_exists));
        let select = self.select(false);
        (self.mentioned, self.evaluates_exists) = outer;
        let select = select?;
        self.settled |=
            select.modifier == Some("DISTINCT") || select.slice.is_some() || select.values.is_some();
        let (pattern, projected) = self.translate(select);
        self.mentioned.extend(projected);
        Some(pattern)
    }

    fn select(&mut self, whole_query: bool) -> Option<Select> {
        self.keyword("SELECT")?;
        let modifier = ["DISTINCT", "REDUCED"].into_iter().find(|word| self.scanner.keyword(word));
        let items = self.many(Self::item);
        if items.is_empty() {
            self.symbol("*")?;
        }
        if whole_query {
            // rdflib ignores the dataset clause if there is only one graph.
            self.many(|r| {
                r.keyword("FROM")?;
                let _ = r.scanner.keyword("NAMED");
                r.iri()
            });
        }
        let _ = self.scanner.keyword("WHERE");
        self.mentioned.clear();
        let pattern = self.group()?;
        let visible = std::mem::take(&mut self.mentioned);
        let (keys, having, order, slice) = (
            self.attempt(Self::group_by).unwrap_or_default(),
            self.attempt(Self::having).unwrap_or_default(),
            self.attempt(Self::order_by).unwrap_or_default(),
            self.slice(),
        );
        Some(Select {
            modifier,
            items,
            pattern,
            visible,
            keys,
            having,
            // Without LIMIT and OFFSET the order changes nothing.
            order: if slice.is_some() { order } else { drop_order(order) },
            slice,
            values: self.attempt(|r| {
                r.keyword("VALUES")?;
                r.data_block()
            }),
        })
    }

    fn item(&mut self) -> Option<Item> {
        if let Some(variable) = self.variable() {
            return Some(Item::Variable(variable));
        }
        self.alias().map(|(expression, variable)| Item::Alias(expression, variable))
    }

    fn group_by(&mut self) -> Option<Vec<Key>> {
        if !self.scanner.keywords(["GROUP", "BY"]) {
            return None;
        }
        let keys = self.many(|r| {
            if let Some(call) = r.call() {
                return Some(Key::Expression(call));
            }
            if let Some((expression, variable)) = r.attempt(Self::alias) {
                return Some(Key::Alias(expression, variable));
            }
            if r.bracketed().is_some() {
                return Some(Key::Nameless);
            }
            r.variable().map(|variable| Key::Expression(variable.into()))
        });
        (!keys.is_empty()).then_some(keys)
    }

    fn having(&mut self) -> Option<Vec<Expression>> {
        self.keyword("HAVING")?;
        let conditions = self.many(Self::constraint);
        (!conditions.is_empty()).then_some(conditions)
    }

    fn order_by(&mut self) -> Option<Vec<(bool, Expression)>> {
        if !self.scanner.keywords(["ORDER", "BY"]) {
            return None;
        }
        let conditions = self.many(|r| {
            let directed = r.attempt(|r| {
                let descending = r.scanner.keyword("DESC");
                if !descending {
                    r.keyword("ASC")?;
                }
                Some((descending, r.bracketed()?))
            });
            directed.or_else(|| Some((false, r.constraint().or_else(|| r.variable().map(Expression::from))?)))
        });
        (!conditions.is_empty()).then_some(conditions)
    }

    /// LIMIT and OFFSET in any order, as (start, length).
    fn slice(&mut self) -> Option<(usize, Option<usize>)> {
        let limit = self.count_after("LIMIT");
        let offset = self.count_after("OFFSET");
        let limit = limit.or_else(|| offset.and_then(|_| self.count_after("LIMIT")));
        (limit.is_some() || offset.is_some()).then_some((offset.unwrap_or_default(), limit))
    }

    fn count_after(&mut self, word: &str) -> Option<usize> {
        self.attempt(|r| {
            r.keyword(word)?;
            let (text, kind) = r.scanner.number()?;
            // A number that does not fit exceeds the size of any result.
            (kind == "integer").then(|| text.parse().unwrap_or(usize::MAX))
        })
    }

    /// The algebra of a SELECT, and the variables that it projects.
    fn translate(&mut self, select: Select) -> (GraphPattern, Vec<Variable>) {
        let Select { modifier, mut items, pattern, visible, keys, mut having, mut order, slice, values } =
            select;
        let of_items = |item: &Item| matches!(item, Item::Alias(expression, _) if has_aggregate(expression));
        let orders_groups = order.iter().any(|(_, expression)| has_aggregate(expression));
        let is_grouped = !keys.is_empty()
            || having.iter().any(has_aggregate)
            || orders_groups
            || items.iter().any(of_items);

        let mut pattern = pattern;
        if is_grouped {
            let plain_keys = keys.iter().filter_map(|key| match key {
                Key::Expression(Expression::Variable(variable)) => Some(variable.clone()),
                _ => None,
            });
            let mut grouping = Grouping { keys: plain_keys.collect(), reader: self, aggregates: Vec::new() };
            for item in &mut items {
                if let Item::Alias(expression, alias) = item {
                    *expression =
                        grouping.expression(std::mem::replace(expression, no_expression()), Some(&*alias));
                }
            }
            having = having.into_iter().map(|condition| grouping.expression(condition, None)).collect();
            if orders_groups {
                for (_, expression) in &mut order {
                    *expression = grouping.expression(std::mem::replace(expression, no_expression()), None);
                }
            }
            let samples: Vec<(Variable, Variable)> = items
                .iter()
                .filter_map(|item| match item {
                    Item::Variable(variable) => Some((grouping.sample(variable), variable.clone())),
                    Item::Alias(..) => None,
                })
                .collect();
            let aggregates = grouping.aggregates;
            pattern = self.grouped(pattern, keys, aggregates);
            for (sample, variable) in samples {
                if sample != variable {
                    pattern = extend(pattern, variable, sample.into());
                }
            }
        }
        pattern = filtered(pattern, having);
        if let Some(values) = values {
            pattern = join(pattern, values);
        }
        let mut projected: Vec<Variable> = Vec::new();
        if items.is_empty() {
            // `*` over groups projects nothing.
            projected = if is_grouped { vec![self.fresh()] } else { visible };
        }
        for item in items {
            match item {
                Item::Variable(variable) => projected.push(variable),
                Item::Alias(expression, variable) => {
                    pattern = extend(pattern, variable.clone(), expression);
                    projected.push(variable);
                }
            }
        }
        let mut seen = HashSet::new();
        projected.retain(|variable| seen.insert(variable.clone()));

        if !order.is_empty() {
            let expression = order
                .into_iter()
                .flat_map(|(descending, expression)| {
                    let kind = functions::kind(expression.clone());
                    let expression = match expression {
                        variable @ Expression::Variable(_) => variable,
                        other => {
                            self.made += 1;
                            functions::sortable(self.made, other)
                        }
                    };
                    [(descending, kind), (descending, expression)]
                })
                .map(|(descending, expression)| {
                    if descending {
                        OrderExpression::Desc(expression)
                    } else {
                        OrderExpression::Asc(expression)
                    }
                })
                .collect();
            pattern = GraphPattern::OrderBy { inner: Box::new(pattern), expression };
        }
        pattern = GraphPattern::Project { inner: Box::new(pattern), variables: projected.clone() };
        pattern = match modifier {
            Some("DISTINCT") => GraphPattern::Distinct { inner: Box::new(pattern) },
            Some(_) => GraphPattern::Reduced { inner: Box::new(pattern) },
            None => pattern,
        };
        if let Some((start, length)) = slice {
            pattern = GraphPattern::Slice { inner: Box::new(pattern), start, length };
        }
        (pattern, projected)
    }

    /// Groups a pattern. Keys that are expressions get a new variable.
    fn grouped(
        &mut self,
        mut pattern: GraphPattern,
        keys: Vec<Key>,
        aggregates: Vec<(Variable, AggregateExpression)>,
    ) -> GraphPattern {
        let mut variables = Vec::with_capacity(keys.len());
        for key in keys {
            let expression = match key {
                Key::Expression(Expression::Variable(variable)) => {
                    variables.push(variable);
                    continue;
                }
                Key::Expression(expression) => expression,
                Key::Alias(expression, variable) => {
                    pattern = extend(pattern, variable.clone(), expression);
                    variable.into()
                }
                Key::Nameless => functions::raise(),
            };
            let name = self.fresh();
            pattern = extend(pattern, name.clone(), expression);
            variables.push(name);
        }
        let by_key = !variables.is_empty();
        let groups = GraphPattern::Group { inner: Box::new(pattern), variables, aggregates };
        if by_key { lazy::or_nothing(groups) } else { groups }
    }
}

/// The aggregates of one SELECT with the variables that hold their values.
struct Grouping<'r, 'a> {
    /// The grouping variables: their sample is their value.
    keys: HashSet<Variable>,
    reader: &'r mut Reader<'a>,
    aggregates: Vec<(Variable, AggregateExpression)>,
}

impl Grouping<'_, '_> {
    /// An expression over groups: aggregates become variables, and so do samples of all other variables but `alias`.
    fn expression(&mut self, expression: Expression, alias: Option<&Variable>) -> Expression {
        rewrite(expression, &mut |part| match part {
            Expression::Variable(variable) if alias != Some(variable) => Some(self.sample(variable).into()),
            Expression::Bound(variable) if alias != Some(variable) => {
                Some(Expression::Bound(self.sample(variable)))
            }
            part => {
                let number = functions::aggregate_number(part)?;
                let aggregate = self.reader.aggregates.get(number)?.clone();
                Some(self.value_of(aggregate).into())
            }
        })
    }

    fn sample(&mut self, variable: &Variable) -> Variable {
        if self.keys.contains(variable) {
            return variable.clone();
        }
        self.value_of(AggregateExpression::FunctionCall {
            name: AggregateFunction::Sample,
            expr: variable.clone().into(),
            distinct: false,
        })
    }

    fn value_of(&mut self, aggregate: AggregateExpression) -> Variable {
        if let Some((variable, _)) = self.aggregates.iter().find(|(_, known)| *known == aggregate) {
            return variable.clone();
        }
        let variable = self.reader.fresh();
        self.aggregates.push((variable.clone(), aggregate));
        variable
    }
}

/// Removes the conditions that change only the order. Those with aggregates group, and expressions may fail: they stay.
fn drop_order(order: Vec<(bool, Expression)>) -> Vec<(bool, Expression)> {
    order.into_iter().filter(|(_, expression)| !matches!(expression, Expression::Variable(_))).collect()
}

/// Placeholder of an expression while it is rewritten.
fn no_expression() -> Expression {
    Expression::Coalesce(Vec::new())
}
