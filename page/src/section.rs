//! The parts of pages that change, as they were rendered.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::control::BenchmarkView;

/// A part of a page that changes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its element.
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

/// What a page shows at a moment.
#[derive(Clone, Debug)]
pub(crate) struct PageState {
    pub title: String,
    pub sections: Vec<Section>,
    /// Whether nothing more happens.
    pub over: bool,
    /// All benchmarks, of the page that lists them.
    pub benchmarks: Arc<[BenchmarkView]>,
}
