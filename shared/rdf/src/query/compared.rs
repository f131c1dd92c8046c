//! Literals that rdflib compares in its own way: times with a zone with times without one, by whether they have one, where the
//! engine compares their values if these are far apart; and literals of types that it does not compare at all.

use oxrdf::{Literal, vocab::xsd};

use crate::literal::{is_numeric, local_name};

/// Whether a time has a zone; `None` for other literals.
pub(super) fn has_zone(literal: &Literal) -> Option<bool> {
    if ![xsd::DATE_TIME, xsd::TIME].contains(&literal.datatype()) {
        return None;
    }
    let clock = literal.value().rsplit('T').next().unwrap_or_default();
    Some(clock.contains(['Z', '+', '-']))
}

/// Whether rdflib compares literals of this type with others of its kind.
pub(super) fn is_compared(literal: &Literal) -> bool {
    let datatype = literal.datatype().as_str();
    literal.language().is_some()
        || is_numeric(datatype)
        || matches!(local_name(datatype), Some("string" | "boolean" | "dateTime" | "date"))
}

/// Which literals a query can meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ComparedLiterals {
    with_zone: bool,
    without_zone: bool,
    /// Whether there are literals that the engine compares and rdflib does not, as years and durations.
    beyond: bool,
}

impl ComparedLiterals {
    pub(super) fn add(&mut self, literal: &Literal) {
        match has_zone(literal) {
            Some(true) => self.with_zone = true,
            Some(false) => self.without_zone = true,
            None => {}
        }
        self.beyond |= !is_compared(literal) && local_name(literal.datatype().as_str()).is_some();
    }

    /// Whether the engine may compare otherwise than rdflib.
    pub(super) fn differs(self) -> bool {
        self.beyond || self.with_zone && self.without_zone
    }
}
