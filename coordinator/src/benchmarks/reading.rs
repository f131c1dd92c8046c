//! Reads what a pipeline's records say, for reports. Nothing is written, and no run is created.

use std::sync::Arc;

use benchmarks::{Derivation, Judgements, Judging, Subject};
use domain::control::RunPhase;
use domain::{ModelSpec, RunId, ServiceError};
use packs::Pack;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::JudgedBenchmark;
use crate::benchmarks::progress::{ModelReading, is_finished};
use crate::plan::configuration::Configuration;

/// A pipeline whose records can be read, one model after the other.
#[derive(Debug)]
pub struct BenchmarkReading {
    chain: Vec<JudgedBenchmark>,
    /// The pack that the models under test are asked from.
    pub pack: Arc<Pack>,
    /// Whether it is finished; otherwise its numbers are of what is there.
    pub is_finished: bool,
}

impl BenchmarkReading {
    pub fn name(&self) -> &RunId {
        &self.chain[0].name
    }

    pub fn judging(&self) -> &'static Judging {
        self.chain[0].judging
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
    pub async fn read_judged(&self, name: &RunId) -> Result<Option<BenchmarkReading>, ServiceError> {
        let Some(pipeline) = self.find_judged(name).await? else { return Ok(None) };
        let chain = self.chain_of(&pipeline).await?;
        let pack = self.packs.of_hash(&pipeline.manifest.pack_hash, &pipeline.configuration.pack).await?;
        let is_finished = self.judged_state(name).await?.phase == RunPhase::Finished;
        Ok(Some(BenchmarkReading { chain, pack, is_finished }))
    }

    /// The records about one of a pipeline's models.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_about(
        &self,
        reading: &BenchmarkReading,
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
