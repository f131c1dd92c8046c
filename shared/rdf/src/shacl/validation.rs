//! Validates a graph against shapes.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{QueryGraph, Term, tick, value};

use crate::shacl::constraint::Constraint;
use crate::shacl::path::ShapePath;
use crate::shacl::shapes::{ShaclShape, ShaclShapes, ShapeTarget};
use crate::shacl::terms::{rdf_type, subclass};

/// Most violations that a report names. More are counted.
const NAMED_MAX: usize = 1_000;

/// One way in which a graph does not have its shapes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeViolation {
    /// The node that a shape is about, as N-Triples write it.
    pub focus: String,
    /// The property, where a path is one property only.
    pub property: Option<String>,
    /// The value that violates, if it is one.
    pub value: Option<String>,
    /// The parameter of the constraint, such as `minCount`.
    pub constraint: &'static str,
    /// The shape.
    pub shape: String,
}

/// What a validation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationReport {
    /// The violations, up to a thousand of them, sorted.
    pub violations: Vec<ShapeViolation>,
    /// How many there are.
    pub violations_count: usize,
    /// The distinct nodes that shapes are about.
    pub targets: usize,
    /// Those of them with a violation.
    pub violating: usize,
    /// The nodes with a violation, as N-Triples write them, up to a thousand.
    pub violating_nodes: BTreeSet<String>,
}

impl ValidationReport {
    /// Whether there is no violation.
    pub fn conforms(&self) -> bool {
        self.violations_count == 0
    }
}

/// Validates a graph. The shapes of each kind are looked at once for each node they are about.
pub fn validate(shapes: &ShaclShapes, data: &QueryGraph) -> ValidationReport {
    let data = data.as_rdflib();
    let validation = Validation { shapes, data, known: RefCell::default(), foreign: RefCell::default() };
    let mut report = ValidationReport::default();
    let (mut targets, mut violating) = (BTreeSet::new(), BTreeSet::new());
    for shape in shapes.list.iter().filter(|shape| !shape.deactivated) {
        for focus in validation.targets(shape) {
            targets.insert(focus);
            let mut found = Vec::new();
            validation.check(shape, focus, &mut found);
            if found.is_empty() {
                continue;
            }
            violating.insert(focus);
            report.violations_count += found.len();
            report.violations.extend(found);
            if report.violations.len() > NAMED_MAX {
                report.violations.truncate(NAMED_MAX);
            }
        }
    }
    report.targets = targets.len();
    report.violating = violating.len();
    report.violating_nodes = violating.iter().take(NAMED_MAX).map(|node| validation.text(*node)).collect();
    report.violations.sort();
    report
}

struct Validation<'a> {
    shapes: &'a ShaclShapes,
    data: &'a QueryGraph,
    /// Whether a node has a shape, by shape and node.
    known: RefCell<HashMap<(usize, u32), bool>>,
    /// Targets that do not stand in the graph, numbered downwards from `u32::MAX`.
    foreign: RefCell<Vec<Term>>,
}

impl Validation<'_> {
    fn targets(&self, shape: &ShaclShape) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for target in &shape.targets {
            match target {
                ShapeTarget::Node(term) => {
                    found.insert(self.number(term));
                }
                ShapeTarget::Class(class) => found.extend(self.members(class)),
                ShapeTarget::SubjectsOf(iri) => {
                    found.extend(self.of_predicate(iri).map(|[subject, ..]| subject));
                }
                ShapeTarget::ObjectsOf(iri) => {
                    found.extend(self.of_predicate(iri).map(|[.., object]| object));
                }
            }
        }
        found
    }

    fn of_predicate(&self, iri: &str) -> impl Iterator<Item = [u32; 3]> {
        let predicate = self.data.number_of_iri(iri);
        predicate.into_iter().flat_map(|predicate| self.data.matching(None, Some(predicate), None))
    }

    /// The members of a class and of its subclasses.
    fn members(&self, class: &str) -> BTreeSet<u32> {
        let Some(class) = self.data.number_of_iri(class) else { return BTreeSet::new() };
        let down = ShapePath::Inverse(Box::new(superclasses()));
        let members = ShapePath::Inverse(Box::new(ShapePath::Predicate(rdf_type())));
        let classes = down.follow(self.data, class);
        classes.into_iter().flat_map(|class| members.follow(self.data, class)).collect()
    }

    fn is_member(&self, node: u32, class: &str) -> bool {
        let Some(class) = self.data.number_of_iri(class) else { return false };
        let classes = ShapePath::Sequence(vec![ShapePath::Predicate(rdf_type()), superclasses()]);
        classes.follow(self.data, node).contains(&class)
    }

    /// The number of a term, which may stand outside of the graph.
    fn number(&self, term: &Term) -> u32 {
        if let Some(number) = self.data.number_of(term) {
            return number;
        }
        let mut foreign = self.foreign.borrow_mut();
        let place = foreign.iter().position(|known| known == term).unwrap_or_else(|| {
            foreign.push(term.clone());
            foreign.len() - 1
        });
        u32::MAX - u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Looks at the term of a node.
    fn with<T>(&self, node: u32, look: impl FnOnce(&Term) -> T) -> T {
        if let Some(term) = self.foreign.borrow().get((u32::MAX - node) as usize) {
            return look(term);
        }
        look(self.data.term(node))
    }

    fn text(&self, node: u32) -> String {
        self.with(node, ToString::to_string)
    }

    /// Whether a node has a shape.
    fn has(&self, shape: usize, node: u32) -> bool {
        if let Some(known) = self.known.borrow().get(&(shape, node)) {
            return *known;
        }
        let mut found = Vec::new();
        self.check(&self.shapes.list[shape], node, &mut found);
        self.known.borrow_mut().insert((shape, node), found.is_empty());
        found.is_empty()
    }

    /// Adds the violations of a shape by a node.
    fn check(&self, shape: &ShaclShape, focus: u32, found: &mut Vec<ShapeViolation>) {
        tick();
        if shape.deactivated {
            return;
        }
        let values = match &shape.path {
            Some(path) => path.follow(self.data, focus),
            None => BTreeSet::from([focus]),
        };
        for (parameter, constraint) in &shape.constraints {
            let mut violate = |value: Option<u32>| {
                found.push(ShapeViolation {
                    focus: self.text(focus),
                    property: shape.path.as_ref().and_then(ShapePath::predicate).map(str::to_owned),
                    value: value.map(|value| self.text(value)),
                    constraint: parameter,
                    shape: shape.name.clone(),
                });
            };
            if let Constraint::Property(property) = constraint {
                for value in &values {
                    self.check(&self.shapes.list[*property], *value, found);
                }
                continue;
            }
            if !self.of_all(constraint, focus, &values, &mut violate) {
                for value in &values {
                    tick();
                    if !self.allows(constraint, *value) {
                        violate(Some(*value));
                    }
                }
            }
        }
    }

    /// Checks a constraint on all values together; `false` if it is one on each of them.
    fn of_all(
        &self,
        constraint: &Constraint,
        focus: u32,
        values: &BTreeSet<u32>,
        violate: &mut dyn FnMut(Option<u32>),
    ) -> bool {
        let count = values.len() as u64;
        match constraint {
            Constraint::MinCount(least) if count < *least => violate(None),
            Constraint::MaxCount(most) if count > *most => violate(None),
            Constraint::MinCount(_) | Constraint::MaxCount(_) => {}
            Constraint::HasValue(term) if !values.contains(&self.number(term)) => violate(None),
            Constraint::HasValue(_) => {}
            Constraint::UniqueLang => {
                let mut languages: BTreeMap<String, usize> = BTreeMap::new();
                for value in values {
                    let language = self.with(*value, |term| match term {
                        Term::Literal(literal) => literal.language().map(str::to_ascii_lowercase),
                        _ => None,
                    });
                    if let Some(language) = language {
                        *languages.entry(language).or_default() += 1;
                    }
                }
                languages.values().filter(|count| **count > 1).for_each(|_| violate(None));
            }
            Constraint::Equals(predicate) => {
                let others = ShapePath::Predicate(predicate.clone()).follow(self.data, focus);
                values.symmetric_difference(&others).for_each(|value| violate(Some(*value)));
            }
            Constraint::Disjoint(predicate) => {
                let others = ShapePath::Predicate(predicate.clone()).follow(self.data, focus);
                values.intersection(&others).for_each(|value| violate(Some(*value)));
            }
            Constraint::LessThan { predicate, or_equal } => {
                let others = ShapePath::Predicate(predicate.clone()).follow(self.data, focus);
                for value in values {
                    for other in &others {
                        tick();
                        let order = self.order(*value, *other);
                        if order != Some(Ordering::Less) && !(*or_equal && order == Some(Ordering::Equal)) {
                            violate(Some(*value));
                        }
                    }
                }
            }
            Constraint::Qualified { shape, least, most, disjoint } => {
                let fits = |value: &&u32| {
                    self.has(*shape, **value) && !disjoint.iter().any(|other| self.has(*other, **value))
                };
                let count = values.iter().filter(fits).count() as u64;
                if least.is_some_and(|least| count < least) {
                    violate(None);
                }
                if most.is_some_and(|most| count > most) {
                    violate(None);
                }
            }
            Constraint::Closed(allowed) => {
                for value in values {
                    for [_, predicate, object] in self.data.matching(Some(*value), None, None) {
                        let is_allowed = matches!(self.data.term(predicate), Term::NamedNode(node) if allowed.contains(node.as_str()));
                        if !is_allowed {
                            violate(Some(object));
                        }
                    }
                }
            }
            _ => return false,
        }
        true
    }

    fn order(&self, left: u32, right: u32) -> Option<Ordering> {
        self.with(left, |left| {
            self.with(right, |right| match (left, right) {
                (Term::Literal(left), Term::Literal(right)) => value::compare(left, right),
                _ => None,
            })
        })
    }

    /// Whether one value is as a constraint wants it.
    fn allows(&self, constraint: &Constraint, node: u32) -> bool {
        match constraint {
            Constraint::Class(class) => self.is_member(node, class),
            Constraint::Not(shape) => !self.has(*shape, node),
            Constraint::Node(shape) => self.has(*shape, node),
            Constraint::And(shapes) => shapes.iter().all(|shape| self.has(*shape, node)),
            Constraint::Or(shapes) => shapes.iter().any(|shape| self.has(*shape, node)),
            Constraint::Xone(shapes) => shapes.iter().filter(|shape| self.has(**shape, node)).count() == 1,
            Constraint::In(terms) => terms.iter().any(|term| self.number(term) == node),
            _ => self.with(node, |term| is_so(constraint, term)),
        }
    }
}

fn superclasses() -> ShapePath {
    ShapePath::Repeated { path: Box::new(ShapePath::Predicate(subclass())), from_zero: true }
}

/// Whether a term itself is as a constraint wants it.
fn is_so(constraint: &Constraint, term: &Term) -> bool {
    let text = match term {
        Term::NamedNode(node) => Some(node.as_str()),
        Term::Literal(literal) => Some(literal.value()),
        Term::BlankNode(_) => None,
    };
    let chars = text.map(|text| text.chars().count() as u64);
    match (constraint, term) {
        (Constraint::Datatype(datatype), Term::Literal(literal)) => {
            literal.datatype().as_str() == datatype && value::is_well_typed(literal)
        }
        (Constraint::NodeKind(kinds), _) => kinds.has(term),
        (Constraint::Bound { least, inclusive, value: Term::Literal(bound) }, Term::Literal(literal)) => {
            match value::compare(literal, bound) {
                Some(Ordering::Equal) => *inclusive,
                Some(order) => (order == Ordering::Greater) == *least,
                None => false,
            }
        }
        (Constraint::MinLength(least), _) => chars.is_some_and(|chars| chars >= *least),
        (Constraint::MaxLength(most), _) => chars.is_some_and(|chars| chars <= *most),
        (Constraint::Pattern(pattern), _) => text.is_some_and(|text| pattern.is_match(text)),
        (Constraint::LanguageIn(ranges), Term::Literal(literal)) => {
            literal.language().is_some_and(|language| {
                let language = language.to_ascii_lowercase();
                ranges.iter().any(|range| {
                    range == "*"
                        || language
                            .strip_prefix(range.as_str())
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                })
            })
        }
        _ => false,
    }
}
