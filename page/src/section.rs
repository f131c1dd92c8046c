//! The parts of pages that change, as rendered.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A part of a page that changes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Id of its HTML element.
    pub id: &'static str,
    pub html: Arc<str>,
    pub hash: u64,
}

impl Section {
    pub(crate) fn new(id: &'static str, html: maud::Markup) -> Self {
        let html = html.into_string();
        let mut hasher = DefaultHasher::new();
        html.hash(&mut hasher);
        Self { id, hash: hasher.finish(), html: html.into() }
    }
}

/// The state of a page at one time.
#[derive(Clone, Debug)]
pub(crate) struct PageState {
    pub title: String,
    pub sections: Vec<Section>,
    /// Whether the state does not change any more.
    pub over: bool,
}
