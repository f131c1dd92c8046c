//! Paths of no length, from and to terms that no triple has.
//!
//! `:x :p* ?y` has the row `?y = :x` whatever the graph. The engine finds it only where `:x` is the subject or object of a
//! triple. So such rows are added to the query before it runs: a path whose end is such a term becomes that row, and a
//! path whose end is a variable that the rest of the query can bind to such terms (by VALUES, BIND, another path or the
//! predicate of a triple) gets a row for each of them, which that rest then chooses from.

use std::collections::{BTreeSet, HashMap, HashSet};

use oxrdf::{Term, Variable};
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern, OrderExpression, PropertyPathExpression};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern};

use super::dataset::QueryGraph;
use super::rdflib::lazy::{bound, constant};
use super::rdflib::{inner_patterns, rewrite};

type Variables = BTreeSet<Variable>;

/// Adds the rows to a query.
pub(super) fn added(query: &mut Query, graph: &QueryGraph) {
    let (Query::Select { pattern, .. } | Query::Ask { pattern, .. }) = query else { return };
    let mut sources = Sources::default();
    sources.of_pattern(pattern);
    if sources.paths == 0 {
        return;
    }
    name_nodes(pattern);
    let strangers = sources.strangers(graph);
    Adding { graph, strangers }.to_pattern(pattern, &Variables::new());
}

/// Turns blank nodes into variables, which can be given values.
fn name_nodes(pattern: &mut GraphPattern) {
    let name = |node: &mut TermPattern| {
        if let (TermPattern::BlankNode(_), Some(name)) = (&*node, variable(node)) {
            *node = name.into();
        }
    };
    match pattern {
        GraphPattern::Bgp { patterns } => {
            for triple in patterns {
                name(&mut triple.subject);
                name(&mut triple.object);
            }
        }
        GraphPattern::Path { subject, object, .. } => {
            name(subject);
            name(object);
        }
        other => inner_patterns(other).into_iter().for_each(name_nodes),
    }
}

/// Whether a path may have no length.
fn may_be_empty(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => true,
        PropertyPathExpression::OneOrMore(inner) | PropertyPathExpression::Reverse(inner) => {
            may_be_empty(inner)
        }
        PropertyPathExpression::Sequence(left, right) => may_be_empty(left) && may_be_empty(right),
        PropertyPathExpression::Alternative(left, right) => may_be_empty(left) || may_be_empty(right),
        PropertyPathExpression::NamedNode(_) | PropertyPathExpression::NegatedPropertySet(_) => false,
    }
}

fn ground(node: &TermPattern) -> Option<GroundTerm> {
    match node {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        _ => None,
    }
}

/// The variable of a node. A blank node is one that has no name in the result.
fn variable(node: &TermPattern) -> Option<Variable> {
    match node {
        TermPattern::Variable(variable) => Some(variable.clone()),
        TermPattern::BlankNode(label) => Some(Variable::new_unchecked(format!("node {}", label.as_str()))),
        _ => None,
    }
}

/// Where the terms come from that a variable can have without the help of a triple.
#[derive(Default)]
struct Sources {
    /// Number of paths that may have no length.
    paths: usize,
    terms: HashMap<Variable, HashSet<GroundTerm>>,
    /// The variables in the place of a predicate.
    predicates: Variables,
    /// Two variables of which each can have the terms of the other.
    links: Vec<(Variable, Variable)>,
}

impl Sources {
    fn of_pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                for triple in patterns {
                    if let NamedNodePattern::Variable(predicate) = &triple.predicate {
                        self.predicates.insert(predicate.clone());
                    }
                }
            }
            GraphPattern::Path { subject, path, object } if may_be_empty(path) => {
                self.paths += 1;
                self.between(subject, object);
                self.between(object, subject);
            }
            GraphPattern::Values { variables, bindings } => {
                for row in bindings {
                    for (variable, term) in variables.iter().zip(row) {
                        if let Some(term) = term {
                            self.terms.entry(variable.clone()).or_default().insert(term.clone());
                        }
                    }
                }
            }
            GraphPattern::Extend { variable, expression, .. } => {
                self.of_expression(expression);
                match expression {
                    Expression::Variable(other) => self.links.push((variable.clone(), other.clone())),
                    other => {
                        let term = constant(other);
                        self.terms.entry(variable.clone()).or_default().extend(term);
                    }
                }
            }
            GraphPattern::Filter { expr: condition, .. }
            | GraphPattern::LeftJoin { expression: Some(condition), .. } => self.of_expression(condition),
            GraphPattern::OrderBy { expression, .. } => {
                for OrderExpression::Asc(by) | OrderExpression::Desc(by) in expression {
                    self.of_expression(by);
                }
            }
            _ => {}
        }
        for inner in inner_patterns(pattern) {
            self.of_pattern(inner);
        }
    }

    fn between(&mut self, from: &TermPattern, to: &TermPattern) {
        let Some(to) = variable(to) else { return };
        if let Some(term) = ground(from) {
            self.terms.entry(to).or_default().insert(term);
        } else if let Some(from) = variable(from) {
            self.links.push((from, to));
        }
    }

    /// Looks at the pattern of each EXISTS of an expression.
    fn of_expression(&mut self, expression: &Expression) {
        let _ = rewrite(expression.clone(), &mut |part| {
            if let Expression::Exists(pattern) = part {
                self.of_pattern(&mut pattern.clone());
            }
            None
        });
    }

    /// For each variable, the terms that it can have and that are neither subject nor object of a triple.
    fn strangers(mut self, graph: &QueryGraph) -> HashMap<Variable, HashSet<GroundTerm>> {
        for terms in self.terms.values_mut() {
            terms.retain(|term| !graph.has_node(&term.clone().into()));
        }
        if !self.predicates.is_empty() {
            let foreign: HashSet<GroundTerm> = graph
                .predicates()
                .filter(|predicate| !graph.has_node(predicate))
                .filter_map(|predicate| match predicate {
                    Term::NamedNode(node) => Some(node.clone().into()),
                    _ => None,
                })
                .collect();
            for variable in std::mem::take(&mut self.predicates) {
                self.terms.entry(variable).or_default().extend(foreign.iter().cloned());
            }
        }
        let size =
            |terms: &HashMap<Variable, HashSet<GroundTerm>>| terms.values().map(HashSet::len).sum::<usize>();
        loop {
            let before = size(&self.terms);
            for (one, other) in &self.links {
                for (from, to) in [(one, other), (other, one)] {
                    let known = self.terms.get(from).cloned().unwrap_or_default();
                    self.terms.entry(to.clone()).or_default().extend(known);
                }
            }
            if size(&self.terms) == before {
                return self.terms;
            }
        }
    }
}

struct Adding<'a> {
    graph: &'a QueryGraph,
    strangers: HashMap<Variable, HashSet<GroundTerm>>,
}

impl Adding<'_> {
    /// `outer` are the variables that the rest of the query binds for each row of the pattern.
    fn to_pattern(&self, pattern: &mut GraphPattern, outer: &Variables) {
        match pattern {
            GraphPattern::Path { subject, path, object } => {
                if may_be_empty(path)
                    && let Some(rows) = self.rows(subject, object, outer)
                {
                    let path = Box::new(std::mem::take(pattern));
                    *pattern = GraphPattern::Union { left: path, right: Box::new(rows) };
                }
            }
            GraphPattern::Join { left, right } => {
                let (of_left, of_right) = (bound(left), bound(right));
                self.to_pattern(left, &(outer | &of_right));
                self.to_pattern(right, &(outer | &of_left));
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                let of_left = &bound(left) | outer;
                self.to_pattern(left, outer);
                self.to_pattern(right, &of_left);
                if let Some(expression) = expression {
                    self.to_expression(expression, &of_left);
                }
            }
            GraphPattern::Union { left, right } => {
                self.to_pattern(left, outer);
                self.to_pattern(right, outer);
            }
            GraphPattern::Minus { left, right } => {
                self.to_pattern(left, outer);
                self.to_pattern(right, &Variables::new());
            }
            GraphPattern::Filter { inner, expr } => {
                let within = &bound(inner) | outer;
                self.to_expression(expr, &within);
                self.to_pattern(inner, outer);
            }
            GraphPattern::Extend { inner, expression, .. } => {
                let within = &bound(inner) | outer;
                self.to_expression(expression, &within);
                self.to_pattern(inner, outer);
            }
            GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner } => self.to_pattern(inner, outer),
            GraphPattern::Project { inner, variables } | GraphPattern::Group { inner, variables, .. } => {
                let seen = outer & &variables.iter().cloned().collect();
                self.to_pattern(inner, &seen);
            }
            GraphPattern::Graph { inner, .. } | GraphPattern::Slice { inner, .. } => {
                self.to_pattern(inner, &Variables::new());
            }
            GraphPattern::Bgp { .. } | GraphPattern::Values { .. } | GraphPattern::Service { .. } => {}
        }
    }

    fn to_expression(&self, expression: &mut Expression, outer: &Variables) {
        *expression = rewrite(expression.clone(), &mut |part| match part {
            Expression::Exists(pattern) => {
                let mut pattern = pattern.clone();
                name_nodes(&mut pattern);
                self.to_pattern(&mut pattern, outer);
                Some(Expression::Exists(pattern))
            }
            _ => None,
        });
    }

    /// The rows of no length between two nodes that the engine does not find.
    fn rows(&self, subject: &TermPattern, object: &TermPattern, outer: &Variables) -> Option<GraphPattern> {
        let is_foreign = |term: &GroundTerm| !self.graph.has_node(&term.clone().into());
        let (start, end) = (ground(subject).filter(is_foreign), ground(object).filter(is_foreign));
        let (variables, terms) = match (start, end) {
            (Some(start), Some(end)) => {
                let nothing = GraphPattern::Bgp { patterns: Vec::new() };
                return (start == end).then_some(nothing);
            }
            (Some(term), None) | (None, Some(term)) => {
                let variable = variable(subject).or_else(|| variable(object))?;
                (vec![variable], HashSet::from([term]))
            }
            (None, None) => {
                let (from, to) = (variable(subject)?, variable(object)?);
                let of = |variable: &Variable| {
                    self.strangers
                        .get(variable)
                        .filter(|_| outer.contains(variable))
                        .cloned()
                        .unwrap_or_default()
                };
                let terms: HashSet<GroundTerm> = of(&from).into_iter().chain(of(&to)).collect();
                (if from == to { vec![from] } else { vec![from, to] }, terms)
            }
        };
        let row = |term: GroundTerm| vec![Some(term); variables.len()];
        let bindings: Vec<_> = terms.into_iter().map(row).collect();
        (!bindings.is_empty()).then_some(GraphPattern::Values { variables, bindings })
    }
}
