//! Reads what a pipeline's records say, for reports. Nothing is written, and no run is created.

use std::sync::Arc;

use benchmarks::{BenchmarkFacts, ModelReading, RunName};
use domain::control::RunPhase;
use domain::{ErrorCode, ModelLabel, ModelSpec, RunId, ServiceError};
use packs::Pack;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::JudgedBenchmark;
use crate::benchmarks::progress::is_finished;
use crate::plan::configuration::Configuration;

/// A pipeline whose records can be read, one model after the other.
pub struct BenchmarkReading {
    pub facts: BenchmarkFacts,
    chain: Vec<JudgedBenchmark>,
    /// The pack that the models under test are asked from.
    pub pack: Arc<Pack>,
}

impl BenchmarkReading {
    fn model(&self, label: &ModelLabel) -> Result<&ModelSpec, ServiceError> {
        self.chain[0].configuration.models.iter().find(|model| model.label == *label).ok_or_else(|| {
            ServiceError::new(ErrorCode::NotFound, format!("{} has no model {label}", self.facts.name))
        })
    }
}

/// The stage that a run is of, and of which model; `None` where it is a benchmark by itself.
pub(crate) fn stage_of(run: &RunId) -> Option<RunName> {
    RunName::read(run)
}

impl Benchmarks {
    /// The configuration of a judged benchmark; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn configuration_of(&self, name: &RunId) -> Result<Option<Configuration>, ServiceError> {
        Ok(self.find_judged(name).await?.map(|benchmark| benchmark.configuration))
    }

    /// A pipeline as its records are now; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_judged(&self, name: &RunId) -> Result<Option<BenchmarkReading>, ServiceError> {
        let Some(pipeline) = self.find_judged(name).await? else { return Ok(None) };
        let chain = self.chain_of(&pipeline).await?;
        let pack = self.packs.of_hash(&pipeline.manifest.pack_hash, &pipeline.configuration.pack).await?;
        let is_finished = self.judged_state(name).await?.phase == RunPhase::Finished;
        let JudgedBenchmark { configuration, judging, .. } = &chain[0];
        let facts = BenchmarkFacts {
            name: name.to_string(),
            kind: configuration.pipeline.clone().unwrap_or_default(),
            judging,
            is_finished,
            models: configuration.models.iter().map(|model| model.label.clone()).collect(),
            judges: configuration.judges.clone(),
            settings: configuration.settings.clone(),
            wordings: configuration.wordings.clone(),
        };
        Ok(Some(BenchmarkReading { facts, chain, pack }))
    }

    /// The records about one of a pipeline's models.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_about(
        &self,
        reading: &BenchmarkReading,
        model: &ModelLabel,
    ) -> Result<ModelReading, ServiceError> {
        let model = reading.model(model)?;
        let runs = self.find_stages(&reading.chain, model).await?;
        let asked = !runs[0].is_empty() && runs[0].iter().all(|(_, state)| is_finished(state.as_ref()));
        if !asked {
            return Ok(ModelReading { model: model.label.clone(), ..ModelReading::default() });
        }
        Ok(self.gather(&reading.chain, model, &runs).await?.reading)
    }
}
