//! The runs that ask the models under test. They grow with the pipeline: a task or an iteration more is a new revision of
//! their manifests.

use benchmarks::names;
use domain::{ErrorCode, ModelSpec, RunId};
use results::RunManifest;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::JudgedBenchmark;
use crate::errors::Result;
use crate::plan::configuration::Configuration;
use crate::plan::difference;
use crate::plan::planned::Planned;

/// Revision of a pipeline that nobody extended.
const FIRST: u32 = 1;

/// What a model is asked.
fn asking(pipeline: &JudgedBenchmark, model: &ModelSpec) -> Configuration {
    Configuration {
        name: format!("{}: {}", pipeline.configuration.name, model.label),
        models: vec![model.clone()],
        ..pipeline.configuration.unjudged()
    }
}

fn run_of(pipeline: &JudgedBenchmark, model: &ModelSpec) -> RunId {
    pipeline.run_name(names::ASK, &model.label, 1).run()
}

impl Benchmarks {
    /// Creates and begins the run that asks a model.
    pub(crate) async fn create_ask(&self, pipeline: &JudgedBenchmark, model: &ModelSpec) -> Result<()> {
        let configuration = asking(pipeline, model);
        let pack = self.packs.of_hash(&pipeline.manifest.pack_hash, &configuration.pack).await?;
        let planned = Planned::new(configuration, pack).await?;
        let manifest = RunManifest { run: run_of(pipeline, model), ..planned.manifest()? };
        self.create_part(pipeline, manifest).await
    }

    /// Sees that the run that asks a model asks all that the pipeline plans since it was extended; returns whether something
    /// was to be done. Looked at once for each revision of the pipeline: a crash before the end is made good by whoever looks
    /// next.
    pub(crate) async fn grow_ask(&self, pipeline: &JudgedBenchmark, model: &ModelSpec) -> Result<bool> {
        let (revision, slug) = (pipeline.manifest.revision, names::slug(&model.label));
        if revision == FIRST || self.attended.has_asked(&pipeline.name, &slug, revision) {
            return Ok(false);
        }
        let run = run_of(pipeline, model);
        let old = self.propose_existing(&run).await?;
        let wanted =
            Planned::new(asking(pipeline, model), std::sync::Arc::clone(&old.planned().pack)).await?;
        // A manifest that plans something else than this version would derive is left as it is.
        let lines = difference::between(&old.planned().configuration, &wanted.configuration);
        let adds = old.planned().plan.keys().all(|key| wanted.plan.contains(&key));
        let proposal = if adds && !lines.is_empty() { old.extended(wanted, lines)? } else { old };
        match self.begin(&proposal).await {
            // Another coordinator is at it: the next round looks again.
            Err(error) if error.code == ErrorCode::Conflict && self.store.is_shared() => {
                tracing::debug!(%run, %error, "extended elsewhere");
                return Ok(true);
            }
            begun => begun.map(drop)?,
        }
        self.attended.note_asked(&pipeline.name, slug, revision);
        Ok(true)
    }

    /// The pipeline from which another one takes its answers; `None` where it asks itself.
    pub(crate) async fn base_of(&self, configuration: &Configuration) -> Result<Option<JudgedBenchmark>> {
        let Some(base) = &configuration.reuse else { return Ok(None) };
        self.expect_judged(&RunId::new(base.clone())).await.map(Some)
    }
}
