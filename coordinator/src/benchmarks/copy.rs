//! A pipeline as one document that is read elsewhere: its manifest and the states of its runs. Records are fetched run by run.

use std::collections::BTreeMap;

use domain::{RunId, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::{BenchmarkDocument, Pipeline, PipelineState};
use crate::errors::{Result, internal};
use crate::records::store::{Revised, RunStateFile};

/// A pipeline as it was at some time, and those that it takes answers from. It holds no text of a dialogue.
#[derive(Debug, Serialize, Deserialize)]
pub struct PipelineCopy {
    /// The pipeline first.
    pipelines: Vec<Copied>,
    /// The runs of all of them that there were, with their states; a run that was created and not begun has none.
    runs: BTreeMap<RunId, Option<RunStateFile>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Copied {
    name: RunId,
    manifest: BenchmarkDocument,
    state: PipelineState,
}

impl PipelineCopy {
    /// Reads what an export yields in place of a manifest; `None` if it is the manifest of a run.
    pub fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().filter(|copy: &Self| !copy.pipelines.is_empty())
    }

    /// Name of the pipeline's kind, as in its configuration.
    pub fn kind(&self) -> Option<&str> {
        self.pipelines.first()?.manifest.configuration.get("pipeline").and_then(Value::as_str)
    }

    /// Hash of the pack that the models under test are asked from.
    pub fn pack_hash(&self) -> Option<&str> {
        self.pipelines.first().map(|pipeline| pipeline.manifest.pack_hash.as_str())
    }

    /// The runs whose records belong to it.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &RunId> {
        self.runs.keys()
    }
}

impl Benchmarks {
    /// A copy of a pipeline as JSON; `None` if there is none of this name.
    pub(crate) async fn copy_of(&self, name: &RunId) -> Result<Option<String>> {
        let Some(pipeline) = self.find_pipeline(name).await? else { return Ok(None) };
        let (mut pipelines, mut runs) = (Vec::new(), BTreeMap::new());
        for one in self.pipeline_chain(&pipeline).await? {
            for run in self.runs_created_by(&one).await? {
                let state = self.store.state(&run).await?;
                runs.insert(run, state);
            }
            let state = self.pipeline_state(&one.name).await?;
            pipelines.push(Copied { name: one.name, manifest: one.manifest, state });
        }
        serde_json::to_string(&PipelineCopy { pipelines, runs }).map(Some).map_err(internal)
    }

    /// Writes the documents of a copied pipeline into the sink of this coordinator, which has its runs already.
    ///
    /// # Errors
    /// The sink cannot be written, or lacks a run; a newer version wrote the pipeline.
    pub async fn take_copy(&self, copy: PipelineCopy) -> std::result::Result<(), ServiceError> {
        for (run, state) in &copy.runs {
            let Some(state) = state else { continue };
            let Revised { revision, content } = self.store.revised_state(run).await?;
            if content.as_ref() != Some(state) {
                self.store.revise_state(run, revision, state).await?;
            }
        }
        for Copied { name, mut manifest, state } in copy.pipelines {
            // Revisions are numbered from 1 without gaps; those before this one are not needed.
            manifest.revision = 1;
            self.write_revision(&Pipeline::of(name.clone(), manifest)?).await?;
            self.change_pipeline_state(&name, |_| Ok(Some(state.clone()))).await?;
        }
        Ok(())
    }
}
