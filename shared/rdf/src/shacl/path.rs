//! Property paths: read from a graph of shapes, followed in a graph of data.

use std::collections::BTreeSet;

use crate::{QueryGraph, Term};

use crate::shacl::error::{NESTING_MAX, ShapesError};
use crate::shacl::terms::ShapesGraph;

/// A path from a focus node to its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShapePath {
    Predicate(String),
    Inverse(Box<ShapePath>),
    Sequence(Vec<ShapePath>),
    Alternative(Vec<ShapePath>),
    /// Any number of steps, from zero on or from one on.
    Repeated {
        path: Box<ShapePath>,
        from_zero: bool,
    },
    ZeroOrOne(Box<ShapePath>),
}

impl ShapePath {
    /// Reads a path.
    ///
    /// # Errors
    /// It is none, or nests too deeply.
    pub(crate) fn read(graph: &ShapesGraph<'_>, shape: u32, node: u32) -> Result<Self, ShapesError> {
        Self::read_at(graph, shape, node, 0)
    }

    fn read_at(graph: &ShapesGraph<'_>, shape: u32, node: u32, depth: usize) -> Result<Self, ShapesError> {
        if depth > NESTING_MAX {
            return Err(ShapesError::TooDeep);
        }
        let inner = |node: u32| Self::read_at(graph, shape, node, depth + 1);
        if let Term::NamedNode(predicate) = graph.term(node) {
            return Ok(Self::Predicate(predicate.as_str().to_owned()));
        }
        let several = |items: Vec<u32>| {
            if items.len() < 2 {
                return Err(graph.wrong(shape, "has a path with a list of fewer than two parts".to_owned()));
            }
            items.into_iter().map(inner).collect::<Result<Vec<_>, _>>()
        };
        // A list is a sequence, whatever else is said of it.
        if graph.is_list(node) {
            return Ok(Self::Sequence(several(graph.list(node, "sh:path")?)?));
        }
        let one = |local: &str| graph.one(node, local);
        if let Some(path) = one("inversePath")? {
            return Ok(Self::Inverse(inner(path)?.into()));
        }
        if let Some(list) = one("alternativePath")? {
            return Ok(Self::Alternative(several(graph.list(list, "sh:alternativePath")?)?));
        }
        for (local, from_zero) in [("zeroOrMorePath", true), ("oneOrMorePath", false)] {
            if let Some(path) = one(local)? {
                return Ok(Self::Repeated { path: inner(path)?.into(), from_zero });
            }
        }
        if let Some(path) = one("zeroOrOnePath")? {
            return Ok(Self::ZeroOrOne(inner(path)?.into()));
        }
        Ok(Self::Sequence(several(graph.list(node, "sh:path")?)?))
    }

    /// The predicate, if that is all.
    pub(crate) fn predicate(&self) -> Option<&str> {
        match self {
            Self::Predicate(predicate) => Some(predicate),
            _ => None,
        }
    }

    /// The nodes to which the path leads, each once, in the order of their numbers.
    pub(crate) fn follow(&self, data: &QueryGraph, from: u32) -> BTreeSet<u32> {
        self.steps(data, from, false)
    }

    fn steps(&self, data: &QueryGraph, from: u32, back: bool) -> BTreeSet<u32> {
        match self {
            Self::Predicate(iri) => {
                let Some(predicate) = data.number_of_iri(iri) else { return BTreeSet::new() };
                if back {
                    data.matching(None, Some(predicate), Some(from)).map(|[subject, _, _]| subject).collect()
                } else {
                    data.matching(Some(from), Some(predicate), None).map(|[_, _, object]| object).collect()
                }
            }
            Self::Inverse(path) => path.steps(data, from, !back),
            Self::Alternative(paths) => paths.iter().flat_map(|path| path.steps(data, from, back)).collect(),
            Self::Sequence(paths) => {
                let mut reached = BTreeSet::from([from]);
                let mut step = |path: &Self| {
                    reached = reached.iter().flat_map(|node| path.steps(data, *node, back)).collect();
                };
                if back {
                    paths.iter().rev().for_each(&mut step);
                } else {
                    paths.iter().for_each(&mut step);
                }
                reached
            }
            Self::ZeroOrOne(path) => {
                let mut reached = path.steps(data, from, back);
                reached.insert(from);
                reached
            }
            Self::Repeated { path, from_zero } => {
                let mut reached = BTreeSet::new();
                let mut next = vec![from];
                while let Some(node) = next.pop() {
                    for other in path.steps(data, node, back) {
                        if reached.insert(other) {
                            next.push(other);
                        }
                    }
                }
                if *from_zero {
                    reached.insert(from);
                }
                reached
            }
        }
    }
}
