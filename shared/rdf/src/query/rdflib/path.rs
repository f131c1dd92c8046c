//! Property paths.

use super::Reader;
use super::algebra::{filtered, not};
use super::functions;
use super::terms::RDF;
use oxrdf::{NamedNode, Variable};
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

/// A path as it is written.
#[derive(Debug, Clone)]
pub(super) enum Path {
    Iri(NamedNode),
    Inverse(Box<Self>),
    Sequence(Vec<Self>),
    Alternative(Vec<Self>),
    Repeated(Box<Self>, &'static str),
    /// Any predicate but these; `true` marks those against the direction.
    Negated(Vec<(bool, NamedNode)>),
}

/// The predicate position of a triple pattern.
#[derive(Debug, Clone)]
pub(super) enum Verb {
    Variable(Variable),
    Path(Path),
}

impl Reader<'_> {
    pub(super) fn verb(&mut self) -> Option<Verb> {
        match self.path() {
            Some(path) => Some(Verb::Path(path)),
            None => self.variable().map(Verb::Variable),
        }
    }

    fn path(&mut self) -> Option<Path> {
        Some(single(self.parted("|", Self::path_sequence)?, Path::Alternative))
    }

    fn path_sequence(&mut self) -> Option<Path> {
        Some(single(self.parted("/", Self::path_step)?, Path::Sequence))
    }

    fn path_step(&mut self) -> Option<Path> {
        if let Some(step) = self.attempt(Self::path_element) {
            return Some(step);
        }
        let inverse = self.attempt(|r| r.after("^", Self::path_element))?;
        Some(Path::Inverse(Box::new(inverse)))
    }

    fn path_element(&mut self) -> Option<Path> {
        let part = self.path_primary()?;
        let repetition = ["?", "*", "+"].into_iter().find(|mark| self.scanner.glued(mark));
        Some(match repetition {
            Some(mark) => Path::Repeated(Box::new(part), mark),
            None => part,
        })
    }

    fn path_primary(&mut self) -> Option<Path> {
        if let Some(iri) = self.iri_or_a() {
            return Some(Path::Iri(iri));
        }
        if self.scanner.symbol("!") {
            return self.negated_set();
        }
        self.attempt(|r| r.between("(", ")", Self::path))
    }

    fn negated_set(&mut self) -> Option<Path> {
        if let Some(one) = self.attempt(Self::negated_one) {
            return Some(Path::Negated(vec![one]));
        }
        let parts = self.between("(", ")", |r| Some(r.attempt(|r| r.parted("|", Self::negated_one))))?;
        Some(Path::Negated(parts.unwrap_or_default()))
    }

    fn negated_one(&mut self) -> Option<(bool, NamedNode)> {
        let inverse = self.scanner.symbol("^");
        Some((inverse, self.iri_or_a()?))
    }

    fn iri_or_a(&mut self) -> Option<NamedNode> {
        self.iri().or_else(|| self.symbol("a").map(|()| NamedNode::new_unchecked(format!("{RDF}type"))))
    }

    /// The pattern of subject, path and object. Sequences and alternatives outside of repetitions are joins and unions,
    /// which keep duplicates.
    pub(super) fn path_pattern(
        &mut self,
        subject: TermPattern,
        path: Path,
        object: TermPattern,
    ) -> GraphPattern {
        match path {
            Path::Iri(iri) => triple(subject, iri, object),
            Path::Inverse(path) => self.path_pattern(object, *path, subject),
            Path::Sequence(parts) => {
                let last = parts.len() - 1;
                let mut from = subject;
                let mut patterns = Vec::with_capacity(parts.len());
                for (index, part) in parts.into_iter().enumerate() {
                    let to = if index == last { object.clone() } else { self.fresh_node() };
                    patterns.push(self.path_pattern(std::mem::replace(&mut from, to.clone()), part, to));
                }
                patterns.into_iter().reduce(join).unwrap_or_default()
            }
            Path::Alternative(parts) => {
                let union =
                    |left, right| GraphPattern::Union { left: Box::new(left), right: Box::new(right) };
                let parts: Vec<_> = parts
                    .into_iter()
                    .map(|part| self.path_pattern(subject.clone(), part, object.clone()))
                    .collect();
                parts.into_iter().reduce(union).unwrap_or_default()
            }
            Path::Negated(parts) => self.negated_pattern(subject, &parts, object),
            repeated @ Path::Repeated(..) => {
                GraphPattern::Path { subject, path: expression(repeated), object }
            }
        }
    }

    /// rdflib raises at a predicate against the direction.
    fn negated_pattern(
        &mut self,
        subject: TermPattern,
        parts: &[(bool, NamedNode)],
        object: TermPattern,
    ) -> GraphPattern {
        let predicate = self.fresh();
        let conditions = parts.iter().map(|(inverse, iri)| {
            if *inverse {
                functions::raise()
            } else {
                not(Expression::SameTerm(Box::new(predicate.clone().into()), Box::new(iri.clone().into())))
            }
        });
        filtered(triple(subject, predicate.clone(), object), conditions.collect())
    }
}

pub(super) fn triple(
    subject: TermPattern,
    predicate: impl Into<NamedNodePattern>,
    object: TermPattern,
) -> GraphPattern {
    GraphPattern::Bgp { patterns: vec![TriplePattern { subject, predicate: predicate.into(), object }] }
}

/// A join; triple patterns side by side are one pattern.
pub(super) fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    match (left, right) {
        (GraphPattern::Bgp { patterns }, other) | (other, GraphPattern::Bgp { patterns })
            if patterns.is_empty() =>
        {
            other
        }
        (GraphPattern::Bgp { mut patterns }, GraphPattern::Bgp { patterns: more }) => {
            patterns.extend(more);
            GraphPattern::Bgp { patterns }
        }
        (left, right) => GraphPattern::Join { left: Box::new(left), right: Box::new(right) },
    }
}

fn single(mut parts: Vec<Path>, several: impl FnOnce(Vec<Path>) -> Path) -> Path {
    if parts.len() == 1 { parts.remove(0) } else { several(parts) }
}

/// A path within a repetition, where duplicates do not count.
fn expression(path: Path) -> PropertyPathExpression {
    type Expression = PropertyPathExpression;
    let pairs = |parts: Vec<Path>, pair: fn(Box<Expression>, Box<Expression>) -> Expression| {
        let parts = parts.into_iter().map(expression);
        parts.reduce(|left, right| pair(Box::new(left), Box::new(right)))
    };
    let nothing = || Expression::NegatedPropertySet(Vec::new());
    match path {
        Path::Iri(iri) => Expression::NamedNode(iri),
        Path::Inverse(path) => Expression::Reverse(Box::new(expression(*path))),
        Path::Sequence(parts) => pairs(parts, Expression::Sequence).unwrap_or_else(nothing),
        Path::Alternative(parts) => pairs(parts, Expression::Alternative).unwrap_or_else(nothing),
        Path::Repeated(path, mark) => {
            let path = Box::new(expression(*path));
            match mark {
                "?" => Expression::ZeroOrOne(path),
                "*" => Expression::ZeroOrMore(path),
                _ => Expression::OneOrMore(path),
            }
        }
        Path::Negated(parts) => {
            let (against, along): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(inverse, _)| *inverse);
            let set = |parts: Vec<(bool, NamedNode)>| {
                Expression::NegatedPropertySet(parts.into_iter().map(|(_, iri)| iri).collect())
            };
            match (along.is_empty(), against.is_empty()) {
                (_, true) => set(along),
                (true, false) => Expression::Reverse(Box::new(set(against))),
                (false, false) => Expression::Alternative(
                    Box::new(set(along)),
                    Box::new(Expression::Reverse(Box::new(set(against)))),
                ),
            }
        }
    }
}
