//! Judged benchmarks: pipelines of ordinary runs.
//!
//! The sink stores the revisions of a pipeline's manifest, each written once, and its state. Everything else follows from
//! its runs, by the functions of [`stages`]. So any coordinator can derive runs at any time, and after a crash between two
//! steps the next one continues. Two coordinators that derive at once agree on names, and the sink accepts a run name only
//! once.
//!
//! `document` has the documents in the sink, `gather` reads the results of runs, `derive` creates missing runs, `control`
//! has the commands of users, `view` displays.

mod control;
mod derive;
mod document;
mod gather;
mod view;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::RunId;

pub(crate) use gather::ModelState;

/// The pipelines that this coordinator tends, with the last known states of their models. They can be read again.
#[derive(Default)]
pub(crate) struct Pipelines(Mutex<BTreeMap<RunId, BTreeMap<String, ModelState>>>);

impl Pipelines {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, BTreeMap<String, ModelState>>> {
        // These are plain values, consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tends a pipeline from now on.
    pub(crate) fn attend(&self, name: &RunId) {
        self.lock().entry(name.clone()).or_default();
    }

    /// Forgets a pipeline.
    pub(crate) fn forget(&self, name: &RunId) {
        self.lock().remove(name);
    }

    /// The pipelines that are tended.
    pub(crate) fn attended(&self) -> Vec<RunId> {
        self.lock().keys().cloned().collect()
    }

    /// The last known state of a model, by the slug of its label.
    pub(crate) fn known(&self, name: &RunId, model: &str) -> Option<ModelState> {
        self.lock().get(name)?.get(model).cloned()
    }

    /// Notes the state of a model.
    pub(crate) fn learn(&self, name: &RunId, model: String, state: ModelState) {
        self.lock().entry(name.clone()).or_default().insert(model, state);
    }
}
