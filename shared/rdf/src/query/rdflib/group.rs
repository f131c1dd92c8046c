//! Groups of patterns.

use super::Reader;
use super::algebra::{all_of, extend, filtered, not};
use super::expression::has_aggregate;
use super::path::{Verb, join, triple};
use super::terms::RDF;
use super::{functions, lazy};
use crate::literal::is_numeric;
use crate::query::dialect::Dialect;
use oxrdf::{Literal, NamedNode, Variable, vocab};
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern};
use std::collections::BTreeSet;

/// A group whose parts are being read.
#[derive(Default)]
struct Group {
    whole: GraphPattern,
    /// Triple patterns not yet joined to the rest: those on both sides of a FILTER are one pattern.
    triples: GraphPattern,
    filters: Vec<Expression>,
    /// Whether the joined part contains one of rdflib's joins, a LIMIT or a DISTINCT.
    settled: bool,
}

impl Group {
    fn add_triples(&mut self, pattern: GraphPattern) {
        self.triples = join(std::mem::take(&mut self.triples), pattern);
    }

    fn settle(&mut self) -> GraphPattern {
        self.settled |= !is_empty(&self.whole) && !is_empty(&self.triples);
        join(std::mem::take(&mut self.whole), std::mem::take(&mut self.triples))
    }

    /// Joins a pattern to the rest; `settled` as in [`Group::settled`].
    fn add(&mut self, pattern: GraphPattern, settled: bool) {
        let whole = self.settle();
        let joins = !is_empty(&whole) && !is_empty(&pattern);
        self.settled |= settled;
        self.whole = if joins && !self.settled { lazy::join(whole, pattern) } else { join(whole, pattern) };
        self.settled |= joins;
    }

    /// The patterns, and the FILTERs, which apply to the whole group wherever they are written.
    fn finish(&mut self) -> (GraphPattern, Vec<Expression>) {
        let mut filters = std::mem::take(&mut self.filters);
        if let [Expression::Literal(literal)] = filters.as_slice()
            && is_false(literal)
        {
            // rdflib ignores such a FILTER.
            filters.clear();
        }
        let whole = self.settle();
        let needed = filters.iter().any(has_aggregate);
        let variables: Vec<_> = needed.then(|| lazy::bound(&whole)).into_iter().flatten().collect();
        let filters = filters.into_iter().map(|filter| functions::in_group(filter, &variables)).collect();
        (whole, filters)
    }
}

fn is_empty(pattern: &GraphPattern) -> bool {
    matches!(pattern, GraphPattern::Bgp { patterns } if patterns.is_empty())
}

/// Whether a literal is false in Python.
fn is_false(literal: &Literal) -> bool {
    let text = literal.value();
    match literal.datatype() {
        datatype if is_numeric(datatype.as_str()) => text.parse() == Ok(0.0),
        datatype if datatype == vocab::xsd::BOOLEAN => matches!(text, "false" | "0"),
        _ => text.is_empty(),
    }
}

impl Reader<'_> {
    /// `{ ... }`
    pub(super) fn group(&mut self) -> Option<GraphPattern> {
        self.open_group().map(|(pattern, filters)| filtered(pattern, filters))
    }

    /// `{ ... }`: its pattern and its FILTERs.
    fn open_group(&mut self) -> Option<(GraphPattern, Vec<Expression>)> {
        self.attempt(|r| {
            r.settled = false;
            r.symbol("{")?;
            let inner = match r.attempt(Self::sub_select) {
                Some(select) => (select, Vec::new()),
                None => r.group_parts(),
            };
            r.symbol("}")?;
            Some(inner)
        })
    }

    fn group_parts(&mut self) -> (GraphPattern, Vec<Expression>) {
        let mut group = Group::default();
        self.triples_block(&mut group);
        while self.attempt(|r| r.group_part(&mut group)).is_some() {
            let _ = self.scanner.symbol(".");
            self.triples_block(&mut group);
        }
        let finished = group.finish();
        self.settled = group.settled;
        finished
    }

    fn group_part(&mut self, group: &mut Group) -> Option<()> {
        if let Some(first) = self.group() {
            let mut union = first;
            let mut settled = self.settled;
            for (right, also) in self.many(|r| {
                r.keyword("UNION")?;
                Some((r.group()?, r.settled))
            }) {
                union = GraphPattern::Union { left: Box::new(union), right: Box::new(right) };
                settled |= also;
            }
            group.add(union, settled);
        } else if self.scanner.keyword("OPTIONAL") {
            let (mut right, filters) = self.open_group()?;
            let left = group.settle();
            group.settled |= self.settled;
            lazy::see(&mut right, &lazy::bound(&left));
            group.whole = self.optional(left, right, all_of(filters));
        } else if self.scanner.keyword("MINUS") {
            let right = Box::new(self.group()?);
            let left = Box::new(group.settle());
            group.settled |= self.settled;
            group.whole = GraphPattern::Minus { left, right };
        } else if self.scanner.keyword("GRAPH") {
            self.variable_or_iri()?;
            self.group()?;
            // The dataset is one graph; rdflib raises when a query asks it for a named one.
            group.add(filtered(GraphPattern::default(), vec![functions::raise()]), true);
        } else if self.scanner.keyword("SERVICE") {
            let place = self.scanner.place() - "SERVICE".len();
            let _ = self.scanner.keyword("SILENT");
            let name = self.variable_or_iri()?;
            self.group()?;
            self.services.push(place);
            self.calls_service |= self.dialect != Dialect::Wikidata || !is_label_service(&name);
        } else if self.scanner.keyword("FILTER") {
            let place = self.scanner.place();
            let condition = self.in_pattern(Self::constraint)?;
            self.note_aggregate(&condition, place);
            group.filters.push(condition);
        } else if self.scanner.keyword("BIND") {
            let place = self.scanner.place();
            let (expression, variable) = self.in_pattern(Self::alias)?;
            self.note_aggregate(&expression, place);
            // If the expression fails, the variable keeps the value that it may have.
            group.whole = extend(group.settle(), variable, expression);
        } else {
            self.keyword("VALUES")?;
            let values = self.data_block()?;
            group.add(values, false);
        }
        Some(())
    }

    /// OPTIONAL. Of a row without a match rdflib makes sure that it has none either without what VALUES alone binds.
    fn optional(
        &mut self,
        left: GraphPattern,
        right: GraphPattern,
        expression: Option<Expression>,
    ) -> GraphPattern {
        let inside = lazy::in_scope(&right);
        let only_given: BTreeSet<_> = lazy::only_given(&left).intersection(&inside).cloned().collect();
        if only_given.is_empty() {
            return GraphPattern::LeftJoin { left: Box::new(left), right: Box::new(right), expression };
        }
        let seen = &(&lazy::in_scope(&left) | &inside) - &only_given;
        let other = filtered(right.clone(), expression.clone().into_iter().collect());
        let other = GraphPattern::Project { inner: Box::new(other), variables: seen.into_iter().collect() };
        let matched = self.fresh();
        let right = extend(right, matched.clone(), Literal::from(true).into());
        let whole = GraphPattern::LeftJoin { left: Box::new(left), right: Box::new(right), expression };
        let has_no_other = not(Expression::Exists(Box::new(other)));
        let keeps = Expression::Or(Box::new(Expression::Bound(matched)), Box::new(has_no_other));
        filtered(whole, vec![keeps])
    }

    fn note_aggregate(&mut self, expression: &Expression, place: usize) {
        if self.misplaced_aggregate.is_none() && has_aggregate(expression) {
            self.misplaced_aggregate = Some(place);
        }
    }

    /// `( expression AS ?variable )`
    pub(super) fn alias(&mut self) -> Option<(Expression, Variable)> {
        self.between("(", ")", |r| {
            let expression = r.expression()?;
            r.keyword("AS")?;
            Some((expression, r.variable()?))
        })
    }

    fn variable_or_iri(&mut self) -> Option<NamedNodePattern> {
        match self.variable() {
            Some(variable) => Some(variable.into()),
            None => self.iri().map(NamedNodePattern::from),
        }
    }

    /// The data of VALUES.
    pub(super) fn data_block(&mut self) -> Option<GraphPattern> {
        if let Some(variable) = self.variable() {
            let values = self.between("{", "}", |r| Some(r.many(Self::data_value)))?;
            let bindings = values.into_iter().map(|value| vec![value]).collect();
            return Some(values_of(vec![variable], bindings));
        }
        let variables = self.between("(", ")", |r| Some(r.many(Self::variable)))?;
        let row = |r: &mut Self| {
            let mut row = r.between("(", ")", |r| Some(r.many(Self::data_value)))?;
            row.resize(variables.len(), None);
            Some(row)
        };
        let bindings = self.between("{", "}", |r| Some(r.many(row)))?;
        Some(values_of(variables, bindings))
    }

    fn triples_block(&mut self, group: &mut Group) {
        while let Some(pattern) = self.attempt(Self::triples_of_subject) {
            group.add_triples(pattern);
            if !self.scanner.symbol(".") {
                break;
            }
        }
    }

    fn triples_of_subject(&mut self) -> Option<GraphPattern> {
        let plain = self.attempt(|r| {
            let subject = r.variable_or_term()?;
            r.properties(&subject)
        });
        if plain.is_some() {
            return plain;
        }
        let (subject, own) = self.node()?;
        let more = self.attempt(|r| r.properties(&subject)).unwrap_or_default();
        Some(join(own, more))
    }

    /// The predicates and objects of a subject, at least one.
    fn properties(&mut self, subject: &TermPattern) -> Option<GraphPattern> {
        let mut all = self.property(subject)?;
        while self.scanner.symbol(";") {
            if let Some(more) = self.attempt(|r| r.property(subject)) {
                all = join(all, more);
            }
        }
        Some(all)
    }

    fn property(&mut self, subject: &TermPattern) -> Option<GraphPattern> {
        let verb = self.verb()?;
        self.parted(",", |r| r.object(subject, &verb))?.into_iter().reduce(join)
    }

    fn object(&mut self, subject: &TermPattern, verb: &Verb) -> Option<GraphPattern> {
        let (object, own) = match self.attempt(Self::variable_or_term) {
            Some(term) => (term, GraphPattern::default()),
            None => self.node()?,
        };
        let pattern = match verb {
            Verb::Variable(variable) => triple(subject.clone(), variable.clone(), object),
            Verb::Path(path) => self.path_pattern(subject.clone(), path.clone(), object),
        };
        Some(join(pattern, own))
    }

    /// A collection, or a node with properties in square brackets: its node and its triples.
    fn node(&mut self) -> Option<(TermPattern, GraphPattern)> {
        self.attempt(Self::collection).or_else(|| {
            self.attempt(|r| {
                r.between("[", "]", |r| {
                    let node = r.fresh_node();
                    let properties = r.properties(&node)?;
                    Some((node, properties))
                })
            })
        })
    }

    fn collection(&mut self) -> Option<(TermPattern, GraphPattern)> {
        let element = |r: &mut Self| match r.attempt(Self::variable_or_term) {
            Some(term) => Some((term, GraphPattern::default())),
            None => r.node(),
        };
        let elements = self.between("(", ")", |r| Some(r.many(element)))?;
        if elements.is_empty() {
            return None;
        }
        let name = |local: &str| NamedNode::new_unchecked(format!("{RDF}{local}"));
        let mut whole = GraphPattern::default();
        let mut rest: TermPattern = name("nil").into();
        for (element, own) in elements.into_iter().rev() {
            let cell = self.fresh_node();
            whole = join(triple(cell.clone(), name("rest"), rest), join(own, whole));
            whole = join(triple(cell.clone(), name("first"), element), whole);
            rest = cell;
        }
        Some((rest, whole))
    }
}

/// The data of VALUES; rdflib raises at data without a variable or a row.
fn values_of(variables: Vec<Variable>, bindings: Vec<Vec<Option<GroundTerm>>>) -> GraphPattern {
    if variables.is_empty() || bindings.is_empty() {
        return filtered(GraphPattern::default(), vec![functions::raise()]);
    }
    GraphPattern::Values { variables, bindings }
}

fn is_label_service(name: &NamedNodePattern) -> bool {
    matches!(name, NamedNodePattern::NamedNode(name) if name.as_str() == "http://wikiba.se/ontology#label")
}
