//! The judged benchmarks that a coordinator tends, and what it remembers of them. All of it can be read again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::RunId;

use crate::benchmarks::progress::ModelProgress;

/// The pipelines that this coordinator tends, with the last known states of their models. They can be read again.
#[derive(Default)]
pub(crate) struct Attended {
    known: Mutex<BTreeMap<RunId, KnownBenchmark>>,
    /// Held while a pipeline is looked after, so that rounds and commands of one process do not create the same run at once:
    /// whoever comes second would find it locked by the first.
    tending: tokio::sync::Mutex<()>,
}

/// What is known of a benchmark.
#[derive(Default)]
struct KnownBenchmark {
    /// By the slug of the model's label.
    models: BTreeMap<String, ModelProgress>,
    /// The revision of its manifest for which every run about cases was found or created.
    shared: Option<u32>,
    /// By the slug of the model's label: the revision of the pipeline's manifest that the run that asks it was compared with.
    asked: BTreeMap<String, u32>,
}

impl Attended {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, KnownBenchmark>> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tends a pipeline from now on.
    pub(crate) fn add(&self, name: &RunId) {
        self.lock().entry(name.clone()).or_default();
    }

    /// The right to look after pipelines, one holder at a time.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.tending.lock().await
    }

    /// Forgets a pipeline.
    pub(crate) fn forget(&self, name: &RunId) {
        self.lock().remove(name);
    }

    /// The pipelines that are tended.
    pub(crate) fn names(&self) -> Vec<RunId> {
        self.lock().keys().cloned().collect()
    }

    /// The last known state of a model, by the slug of its label.
    pub(crate) fn known(&self, name: &RunId, model: &str) -> Option<ModelProgress> {
        self.lock().get(name)?.models.get(model).cloned()
    }

    /// Notes the state of a model.
    pub(crate) fn learn(&self, name: &RunId, model: String, state: ModelProgress) {
        self.lock().entry(name.clone()).or_default().models.insert(model, state);
    }

    /// Whether the runs about cases are there, as a revision of the manifest wants them.
    pub(crate) fn has_shared(&self, name: &RunId, revision: u32) -> bool {
        self.lock().get(name).is_some_and(|known| known.shared == Some(revision))
    }

    /// Takes note of it.
    pub(crate) fn note_shared(&self, name: &RunId, revision: u32) {
        self.lock().entry(name.clone()).or_default().shared = Some(revision);
    }

    /// Whether the run that asks a model was compared with a revision of the manifest.
    pub(crate) fn has_asked(&self, name: &RunId, model: &str, revision: u32) -> bool {
        self.lock().get(name).is_some_and(|known| known.asked.get(model) == Some(&revision))
    }

    /// Takes note of it.
    pub(crate) fn note_asked(&self, name: &RunId, model: String, revision: u32) {
        self.lock().entry(name.clone()).or_default().asked.insert(model, revision);
    }
}
