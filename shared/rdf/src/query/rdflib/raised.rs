//! What functions and aggregates report to the evaluation: that rdflib would have raised, and terms that mean "no
//! value".

use oxrdf::Term;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The value of an expression that has none.
pub(super) const NOTHING: &str = "urn:kgfleet:nothing";
/// The value of an expression, other than a variable, that fails.
pub(super) const FAILED: &str = "urn:kgfleet:failed";

/// Whether rdflib would have raised. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Raised(Arc<AtomicBool>);

impl Raised {
    /// Whether rdflib would have raised.
    pub(in super::super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) -> Option<Term> {
        self.0.store(true, Ordering::Relaxed);
        None
    }
}
