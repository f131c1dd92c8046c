//! A pipeline as one document that is read elsewhere: its manifest and the states of its runs. Records are fetched run by run.

use std::collections::{BTreeMap, BTreeSet};

use benchmarks::names;
use domain::{RunId, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::{BenchmarkDocument, JudgedBenchmark, JudgedState};
use crate::errors::{Result, internal, invalid};
use crate::records::events::RunStateFile;

/// A pipeline as it was at some time, and those that it takes answers from. It holds no text of a dialogue.
#[derive(Debug, Serialize, Deserialize)]
pub struct BenchmarkCopy {
    /// The pipeline first.
    pipelines: Vec<Copied>,
    /// The runs of all of them that there were, with their states; a run that was created and not begun has none.
    runs: BTreeMap<RunId, Option<RunStateFile>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Copied {
    name: RunId,
    manifest: BenchmarkDocument,
    state: JudgedState,
}

impl BenchmarkCopy {
    /// Reads the documents of an export, whoever wrote it.
    ///
    /// # Errors
    /// They cannot be read, are those of no benchmark, or name something that is none.
    pub fn read(json: &str) -> Result<Self> {
        let copy: Self = serde_json::from_str(json).map_err(internal)?;
        if copy.pipelines.is_empty() {
            return Err(internal("the documents of a benchmark name none"));
        }
        let names: BTreeSet<&RunId> = copy.pipelines.iter().map(|copied| &copied.name).collect();
        if let Some(name) = names.iter().find(|name| !names::is_pipeline_name(name.as_str())) {
            return Err(invalid(format!("the documents of a benchmark name `{name}`, which can be none")));
        }
        let is_of_them = |run: &&RunId| names.contains(&names::benchmark_of(run));
        if let Some(run) = copy.runs.keys().find(|run| !is_of_them(run)) {
            return Err(invalid(format!("the documents of a benchmark name `{run}`, which is no run of it")));
        }
        Ok(copy)
    }

    /// As JSON, which [`read`](Self::read) reads.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(internal)
    }

    /// Leaves out the names of keys, for other people; returns whether there were any.
    pub fn remove_key_names(&mut self) -> bool {
        let mut removed = false;
        for Copied { manifest, .. } in &mut self.pipelines {
            if let Some(keyless) = manifest.without_key_names() {
                (*manifest, removed) = (keyless, true);
            }
        }
        removed
    }

    /// Its name.
    pub fn name(&self) -> Option<&RunId> {
        self.pipelines.first().map(|pipeline| &pipeline.name)
    }

    /// Name of the pipeline's kind, as in its configuration.
    pub fn kind(&self) -> Option<&str> {
        self.pipelines.first()?.manifest.configuration.get("pipeline").and_then(Value::as_str)
    }

    /// Hash of the pack that the models under test are asked from.
    pub fn pack_hash(&self) -> Option<&str> {
        self.pipelines.first().map(|pipeline| pipeline.manifest.pack_hash.as_str())
    }

    /// The same, owned.
    pub(crate) fn into_runs(self) -> Vec<RunId> {
        self.runs.into_keys().collect()
    }

    /// The runs whose records belong to it.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &RunId> {
        self.runs.keys()
    }
}

impl Benchmarks {
    /// A copy of a judged benchmark, and the same as JSON; `None` if there is none of this name.
    pub(crate) async fn copy_of(&self, name: &RunId) -> Result<Option<(BenchmarkCopy, String)>> {
        let Some(pipeline) = self.find_judged(name).await? else { return Ok(None) };
        let (mut pipelines, mut runs) = (Vec::new(), BTreeMap::new());
        for one in self.chain_of(&pipeline).await? {
            for run in self.runs_created_by(&one).await? {
                let state = self.loaded.state(&run).await?;
                runs.insert(run, state);
            }
            let state = self.judged_state(&one.name).await?;
            state.expect_kept(&one.name)?;
            pipelines.push(Copied { name: one.name, manifest: one.manifest, state });
        }
        let copy = BenchmarkCopy { pipelines, runs };
        let json = copy.to_json()?;
        Ok(Some((copy, json)))
    }

    /// Writes the documents of a copied pipeline into the sink of this coordinator, which has its runs already.
    ///
    /// # Errors
    /// The sink cannot be written, or lacks a run; a newer version wrote the pipeline.
    pub async fn take_copy(&self, copy: BenchmarkCopy) -> std::result::Result<(), ServiceError> {
        for (run, state) in &copy.runs {
            let Some(state) = state else { continue };
            let run = self.loaded.known(run).await?;
            self.runs.take_state(&run, state).await?;
        }
        for Copied { name, mut manifest, state } in copy.pipelines {
            // Revisions are numbered from 1 without gaps; those before this one are not needed. One that is here already, and
            // says the same, is kept with its names of keys.
            let here = self.find_judged(&name).await?;
            manifest.revision = here.as_ref().map_or(1, |here| here.manifest.revision + 1);
            let taken = JudgedBenchmark::of(name.clone(), manifest.created_at, manifest)?;
            if here.is_none_or(|here| !here.manifest.has_configuration_of(&taken.manifest)) {
                self.write_revision(&taken).await?;
            }
            let (revision, known) = self.revised_judged_state(&name).await?;
            if revision == 0 || known != state {
                self.change_judged_state(&name, |_| Ok(Some(state.clone()))).await?;
            }
        }
        Ok(())
    }
}
