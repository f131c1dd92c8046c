//! The models that runs and judged benchmarks name, also those that are over and not loaded.
//!
//! A server whose model nobody has named yet waits for who submits it; one whose model was named has done what it was
//! started for. What is remembered here only grows: a benchmark that was removed leaves nothing to do, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Connector, ModelSpec, RunId};
use results::RunManifest;

/// What tells models apart for workers: connector, requested name, address and key.
type Address = (Connector, String, Option<String>, Option<String>);

#[derive(Default)]
pub(crate) struct NamedModels(Mutex<Named>);

#[derive(Default)]
struct Named {
    models: BTreeMap<Address, ModelSpec>,
    /// Runs and judged benchmarks whose models are here, by name and revision.
    read: BTreeSet<(RunId, u32)>,
    /// Runs that may have work and cannot be loaded, each with its models if these can be read.
    left_out: BTreeMap<RunId, Option<Vec<ModelSpec>>>,
}

impl NamedModels {
    fn lock(&self) -> MutexGuard<'_, Named> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the models of a revision are known.
    pub(crate) fn has_read(&self, name: &RunId, revision: u32) -> bool {
        self.lock().read.contains(&(name.clone(), revision))
    }

    /// Remembers the models that a revision names.
    pub(crate) fn add<'a>(
        &self,
        name: &RunId,
        revision: u32,
        models: impl IntoIterator<Item = &'a ModelSpec>,
    ) {
        let mut named = self.lock();
        if !named.read.insert((name.clone(), revision)) {
            return;
        }
        for spec in models {
            let requested = spec.requested().to_owned();
            let address = (spec.connector, requested, spec.endpoint.clone(), spec.key.clone());
            named.models.entry(address).or_insert_with(|| spec.clone());
        }
    }

    /// Remembers the models of a manifest.
    pub(crate) fn add_manifest(&self, manifest: &RunManifest) {
        if !self.has_read(&manifest.run, manifest.revision)
            && let Some(models) = models_of(manifest)
        {
            self.add(&manifest.run, manifest.revision, &models);
        }
    }

    /// Notes a run that may have work and cannot be loaded, with its manifest if that can be read.
    pub(crate) fn leave_out(&self, run: &RunId, manifest: Option<&RunManifest>) {
        let models = manifest.and_then(models_of);
        self.lock().left_out.insert(run.clone(), models);
    }

    /// Notes that a run is loaded, over, or gone.
    pub(crate) fn let_in(&self, run: &RunId) {
        self.lock().left_out.remove(run);
    }

    /// Forgets runs that cannot be loaded and do not exist any more.
    pub(crate) fn keep_left_out(&self, exists: impl Fn(&RunId) -> bool) {
        self.lock().left_out.retain(|run, _| exists(run));
    }

    /// Whether any run or judged benchmark names such a model.
    pub(crate) fn names(&self, is_one: impl Fn(&ModelSpec) -> bool) -> bool {
        self.lock().models.values().any(is_one)
    }

    /// Whether a run that cannot be loaded names such a model, or may do so.
    pub(crate) fn may_leave_out(&self, is_one: impl Fn(&ModelSpec) -> bool) -> bool {
        let named = self.lock();
        named.left_out.values().any(|models| models.as_ref().is_none_or(|models| models.iter().any(&is_one)))
    }
}

/// The models that a manifest names; `None` if they cannot be read.
fn models_of(manifest: &RunManifest) -> Option<Vec<ModelSpec>> {
    let models = manifest.configuration.get("models")?;
    serde_json::from_value(models.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(model: &str) -> ModelSpec {
        let spec = serde_json::json!({"label": model, "connector": "openai-compatible", "model": model});
        serde_json::from_value(spec).unwrap()
    }

    fn is(name: &str) -> impl Fn(&ModelSpec) -> bool + '_ {
        move |spec| spec.requested() == name
    }

    #[test]
    fn what_was_named_once_is_named_for_ever() {
        let named = NamedModels::default();
        assert!(!named.names(is("m")));
        named.add(&"r".into(), 1, [&spec("m")]);
        assert!(named.names(is("m")) && !named.names(is("n")) && named.has_read(&"r".into(), 1));
        named.add(&"r".into(), 2, [&spec("m"), &spec("n")]);
        assert!(named.names(is("m")) && named.names(is("n")));
    }

    #[test]
    fn a_run_that_cannot_be_read_may_name_every_model() {
        let named = NamedModels::default();
        named.leave_out(&"r".into(), None);
        assert!(named.may_leave_out(is("m")));
        named.keep_left_out(|run| run.as_str() != "r");
        assert!(!named.may_leave_out(is("m")));
        named.leave_out(&"r".into(), None);
        named.let_in(&"r".into());
        assert!(!named.may_leave_out(is("m")));
    }
}
