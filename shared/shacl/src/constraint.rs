//! The constraints of SHACL Core, as a shape has them.

use std::collections::BTreeSet;

use rdf::Term;
use regex::Regex;

/// A constraint. Other shapes are named by their place among all shapes.
#[derive(Clone, Debug)]
pub(crate) enum Constraint {
    Class(String),
    Datatype(String),
    NodeKind(NodeKinds),
    MinCount(u64),
    MaxCount(u64),
    Bound { least: bool, inclusive: bool, value: Term },
    MinLength(u64),
    MaxLength(u64),
    Pattern(Regex),
    LanguageIn(Vec<String>),
    UniqueLang,
    Equals(String),
    Disjoint(String),
    LessThan { predicate: String, or_equal: bool },
    Not(usize),
    And(Vec<usize>),
    Or(Vec<usize>),
    Xone(Vec<usize>),
    Node(usize),
    Property(usize),
    Qualified { shape: usize, least: Option<u64>, most: Option<u64>, disjoint: Vec<usize> },
    Closed(BTreeSet<String>),
    HasValue(Term),
    In(Vec<Term>),
}

impl Constraint {
    /// The shapes on which it depends.
    pub(crate) fn shapes(&self) -> Vec<usize> {
        match self {
            Self::Not(shape) | Self::Node(shape) | Self::Property(shape) => vec![*shape],
            Self::And(shapes) | Self::Or(shapes) | Self::Xone(shapes) => shapes.clone(),
            Self::Qualified { shape, disjoint, .. } => disjoint.iter().copied().chain([*shape]).collect(),
            _ => Vec::new(),
        }
    }

    /// The name of its parameter, without the prefix.
    pub(crate) fn parameter(&self) -> &'static str {
        match self {
            Self::Class(_) => "class",
            Self::Datatype(_) => "datatype",
            Self::NodeKind(_) => "nodeKind",
            Self::MinCount(_) => "minCount",
            Self::MaxCount(_) => "maxCount",
            Self::Bound { least: true, inclusive: true, .. } => "minInclusive",
            Self::Bound { least: true, inclusive: false, .. } => "minExclusive",
            Self::Bound { least: false, inclusive: true, .. } => "maxInclusive",
            Self::Bound { least: false, inclusive: false, .. } => "maxExclusive",
            Self::MinLength(_) => "minLength",
            Self::MaxLength(_) => "maxLength",
            Self::Pattern(_) => "pattern",
            Self::LanguageIn(_) => "languageIn",
            Self::UniqueLang => "uniqueLang",
            Self::Equals(_) => "equals",
            Self::Disjoint(_) => "disjoint",
            Self::LessThan { or_equal: false, .. } => "lessThan",
            Self::LessThan { or_equal: true, .. } => "lessThanOrEquals",
            Self::Not(_) => "not",
            Self::And(_) => "and",
            Self::Or(_) => "or",
            Self::Xone(_) => "xone",
            Self::Node(_) => "node",
            Self::Property(_) => "property",
            Self::Qualified { .. } => "qualifiedValueShape",
            Self::Closed(_) => "closed",
            Self::HasValue(_) => "hasValue",
            Self::In(_) => "in",
        }
    }
}

/// The kinds of nodes that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeKinds {
    blank: bool,
    iri: bool,
    literal: bool,
}

impl NodeKinds {
    /// The kinds of one of SHACL's six names.
    pub(crate) fn named(local: &str) -> Option<Self> {
        let kinds = |blank, iri, literal| Some(Self { blank, iri, literal });
        match local {
            "BlankNode" => kinds(true, false, false),
            "IRI" => kinds(false, true, false),
            "Literal" => kinds(false, false, true),
            "BlankNodeOrIRI" => kinds(true, true, false),
            "BlankNodeOrLiteral" => kinds(true, false, true),
            "IRIOrLiteral" => kinds(false, true, true),
            _ => None,
        }
    }

    pub(crate) fn has(self, term: &Term) -> bool {
        match term {
            Term::BlankNode(_) => self.blank,
            Term::NamedNode(_) => self.iri,
            Term::Literal(_) => self.literal,
        }
    }
}
