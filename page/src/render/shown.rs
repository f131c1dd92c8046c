//! What the page of a benchmark is made from.

use std::sync::Arc;

use domain::ModelLabel;
use domain::control::{BenchmarkView, ModelView};

use crate::links::Links;
use crate::standings::Standings;

/// The data of a run's page.
pub(crate) struct Shown {
    pub view: BenchmarkView,
    pub standings: Arc<Standings>,
    pub links: Arc<Links>,
}

impl Shown {
    /// A model of the benchmark.
    pub(super) fn model(&self, label: &ModelLabel) -> Option<&ModelView> {
        self.view.models.iter().find(|model| model.model == *label)
    }
}
