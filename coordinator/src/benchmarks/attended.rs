//! The judged benchmarks that a coordinator tends, and what it remembers of them. All of it can be read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{ModelSpec, RunId};
use jiff::Timestamp;

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
    /// When it was submitted: another one of its name is another benchmark.
    begun: Option<Timestamp>,
    /// By the slug of the model's label.
    models: BTreeMap<String, ModelProgress>,
    /// The revision of its manifest for which every run about cases was found or created.
    shared: Option<u32>,
    /// By the slug of the model's label: the revision of the pipeline's manifest that the run that asks it was compared with.
    asked: BTreeMap<String, u32>,
    /// By the slug of the model's label: models under test that have answered everything.
    answered: BTreeSet<String>,
    /// `None` until it was looked after once.
    asks: Option<BenchmarkAsks>,
    /// Why it could not be looked after in the last round.
    trouble: Option<String>,
}

/// Whom a benchmark that is not over still asks.
#[derive(Clone, Debug)]
pub(crate) struct BenchmarkAsks {
    /// Whether nothing of it is handed out: it is paused, or its cap is reached.
    pub is_held: bool,
    /// Its judges: questions for them may be derived until it is over.
    pub judges: Vec<ModelSpec>,
    /// Its models under test that have not answered everything.
    pub unanswered: Vec<ModelSpec>,
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

    /// Forgets what is known of a pipeline of this name that was submitted at another time.
    pub(crate) fn expect(&self, name: &RunId, begun: Timestamp) {
        let mut known = self.lock();
        let known = known.entry(name.clone()).or_default();
        if known.begun != Some(begun) {
            *known = KnownBenchmark { begun: Some(begun), ..KnownBenchmark::default() };
        }
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

    /// Whether a pipeline is tended.
    pub(crate) fn has(&self, name: &RunId) -> bool {
        self.lock().contains_key(name)
    }

    /// Why a pipeline could not be looked after in the last round.
    pub(crate) fn trouble(&self, name: &RunId) -> Option<String> {
        self.lock().get(name)?.trouble.clone()
    }

    /// Notes why a pipeline that is tended cannot be looked after.
    pub(crate) fn set_trouble(&self, name: &RunId, trouble: Option<String>) {
        if let Some(known) = self.lock().get_mut(name) {
            known.trouble = trouble;
        }
    }

    /// The last known state of a model of a pipeline that was submitted then, by the slug of its label.
    pub(crate) fn known(&self, name: &RunId, begun: Timestamp, model: &str) -> Option<ModelProgress> {
        let known = self.lock();
        known.get(name).filter(|known| known.begun == Some(begun))?.models.get(model).cloned()
    }

    /// Notes the state of a model.
    pub(crate) fn learn(&self, name: &RunId, model: String, state: ModelProgress) {
        self.lock().entry(name.clone()).or_default().models.insert(model, state);
    }

    /// Notes whether a model under test has answered everything, by the slug of its label.
    pub(crate) fn note_answered(&self, name: &RunId, model: &str, answered: bool) {
        let mut known = self.lock();
        let known = known.entry(name.clone()).or_default();
        match answered {
            true => drop(known.answered.insert(model.to_owned())),
            false => drop(known.answered.remove(model)),
        }
    }

    /// Whether a model under test has answered everything, as last seen.
    pub(crate) fn has_answered(&self, name: &RunId, model: &str) -> bool {
        self.lock().get(name).is_some_and(|known| known.answered.contains(model))
    }

    /// Notes whom a benchmark still asks.
    pub(crate) fn note_asks(&self, name: &RunId, asks: BenchmarkAsks) {
        self.lock().entry(name.clone()).or_default().asks = Some(asks);
    }

    /// Whom the benchmarks that are not over still ask; `None` for those that were not looked after yet.
    pub(crate) fn asks(&self) -> Vec<Option<BenchmarkAsks>> {
        self.lock().values().map(|known| known.asks.clone()).collect()
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
