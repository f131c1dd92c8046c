//! Reads what a pipeline's records say, for reports. Nothing is written, and no run is created.

use std::sync::Arc;

use domain::control::RunPhase;
use domain::{ModelSpec, RunId, ServiceError};
use packs::Pack;
use stages::{Derivation, Judgements, Kind, Subject};

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::Pipeline;
use crate::benchmarks::progress::{ModelReading, is_finished};
use crate::plan::configuration::Configuration;

/// A pipeline whose records can be read, one model after the other.
#[derive(Debug)]
pub struct PipelineReading {
    chain: Vec<Pipeline>,
    /// The pack that the models under test are asked from.
    pub pack: Arc<Pack>,
    /// Whether it is finished; otherwise its numbers are of what is there.
    pub is_finished: bool,
}

impl PipelineReading {
    pub fn name(&self) -> &RunId {
        &self.chain[0].name
    }

    pub fn kind(&self) -> &'static Kind {
        self.chain[0].kind
    }

    pub fn configuration(&self) -> &Configuration {
        &self.chain[0].configuration
    }

    /// Hands each answer of a model to `each`, with what judges said; nothing in its place while a stage has still to say it.
    ///
    /// # Errors
    /// The configuration lacks a judge.
    pub fn judgements<'m>(
        &self,
        model: &'m ModelReading,
        mut each: impl FnMut(&'m Subject, Option<Judgements<'_>>),
    ) -> Result<(), ServiceError> {
        let judges = self.chain[0].judges()?;
        let derivation: Derivation<'_> = self.chain[0].derivation(&judges);
        for subject in &model.subjects {
            each(subject, derivation.judgements(subject, &model.stages).ok());
        }
        Ok(())
    }
}

impl Benchmarks {
    /// A pipeline as its records are now; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_pipeline(&self, name: &RunId) -> Result<Option<PipelineReading>, ServiceError> {
        let Some(pipeline) = self.find_pipeline(name).await? else { return Ok(None) };
        let chain = self.pipeline_chain(&pipeline).await?;
        let pack = self.packs.of_hash(&pipeline.manifest.pack_hash, &pipeline.configuration.pack).await?;
        let is_finished = self.pipeline_state(name).await?.phase == RunPhase::Finished;
        Ok(Some(PipelineReading { chain, pack, is_finished }))
    }

    /// The records about one of a pipeline's models.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_about(
        &self,
        reading: &PipelineReading,
        model: &ModelSpec,
    ) -> Result<ModelReading, ServiceError> {
        let runs = self.find_stages(&reading.chain, model).await?;
        let asked = !runs[0].is_empty() && runs[0].iter().all(|(_, state)| is_finished(state.as_ref()));
        if !asked {
            return Ok(ModelReading { model: model.label.clone(), ..ModelReading::default() });
        }
        self.gather(&reading.chain, model, &runs).await
    }
}
