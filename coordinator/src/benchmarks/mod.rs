//! Judged benchmarks: pipelines of ordinary runs.
//!
//! The sink stores the revisions of a pipeline's manifest, each written once, and its state. Everything else follows from
//! its runs, by the functions of [`stages`]. So any coordinator can derive runs at any time, and after a crash between two
//! steps the next one continues. Two coordinators that derive at once agree on names, and the sink accepts a run name only
//! once.
//!
//! `document` is what the sink keeps, `summary` what came out as it is kept there, `gather` reads what the runs came to,
//! `ask` looks after the runs of the models under test, `derive` creates what is missing, `control` does what people ask for,
//! `view` shows it, with its `history`; `reading` hands it to reports, `copy` to other machines.

pub(crate) mod ask;
pub(crate) mod copy;
pub(crate) mod derive;
pub(crate) mod documents;
pub(crate) mod progress;
pub(crate) mod reading;
pub(crate) mod stages;
pub(crate) mod submit;
pub(crate) mod summary;
pub(crate) mod verbs;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::RunId;

pub use copy::PipelineCopy;
pub(crate) use progress::ModelProgress;
pub use progress::ModelReading;
pub use reading::PipelineReading;

/// The pipelines that this coordinator tends, with the last known states of their models. They can be read again.
#[derive(Default)]
pub(crate) struct Pipelines {
    known: Mutex<BTreeMap<RunId, Known>>,
    /// Held while a pipeline is looked after, so that rounds and commands of one process do not create the same run at once:
    /// whoever comes second would find it locked by the first.
    tending: tokio::sync::Mutex<()>,
}

/// What is known of a pipeline.
#[derive(Default)]
struct Known {
    /// By the slug of the model's label.
    models: BTreeMap<String, ModelProgress>,
    /// The revision of its manifest for which every run about cases was found or created.
    shared: Option<u32>,
    /// By the slug of the model's label: the revision of the pipeline's manifest that the run that asks it was compared with.
    asked: BTreeMap<String, u32>,
}

impl Pipelines {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Known>> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tends a pipeline from now on.
    pub(crate) fn attend(&self, name: &RunId) {
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
    pub(crate) fn attended(&self) -> Vec<RunId> {
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
