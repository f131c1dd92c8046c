//! Where a pipeline of KGHaluBench is: on this machine or in a fleet.

use std::path::{Path, PathBuf};

use benchmarks::kinds::kghalubench::KIND;
use benchmarks::kinds::kghalubench::show::agreement::BaselineVerdicts;
use benchmarks::kinds::kghalubench::show::read::{self, Look, ReadPipeline};
use benchmarks::kinds::kghalubench_baseline;
use benchmarks::{BenchmarkReader, Kind};

use crate::files::judged::{self, FolderReader};
use crate::kit::exit_code::{explained, usage};
use crate::place::data_dir::DataDir;
use crate::place::fetch::{self, Fetched};
use crate::place::remote::MaybeRemote;

#[derive(Debug, clap::Args)]
pub(super) struct Whose {
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

impl Whose {
    /// The judged benchmark of this name. One of a fleet is fetched.
    ///
    /// # Errors
    /// There is none; the coordinator does not answer.
    pub(super) fn place(&self, name: &str) -> anyhow::Result<PipelinePlace> {
        if fetch::is_archive(name) {
            return Ok(PipelinePlace::Fetched(fetch::unpacked(name)?));
        }
        let Some(remote) = self.remote.named()? else {
            return Ok(PipelinePlace::Here { name: name.to_owned(), data_dir: self.data.path().to_owned() });
        };
        let fetched = judged::fetched(&remote, name)?;
        let fetched = fetched.ok_or_else(|| usage!("{name} is no pipeline at {}", remote.address()))?;
        Ok(PipelinePlace::Fetched(fetched))
    }
}

/// A judged benchmark on this machine, which can be read several times.
pub(super) enum PipelinePlace {
    Here { name: String, data_dir: PathBuf },
    Fetched(Fetched),
}

impl PipelinePlace {
    /// The place of the same benchmark by its whole name: `latest` may mean another one by now.
    pub(super) fn named(self, reading: &ReadPipeline) -> Self {
        match self {
            Self::Here { data_dir, .. } => Self::Here { name: reading.found.pipeline.clone(), data_dir },
            fetched @ Self::Fetched(_) => fetched,
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// There is none; it is of another kind, or cannot be read.
    pub(super) fn read(&self, look: &mut Look<'_>) -> anyhow::Result<ReadPipeline> {
        read::read(&mut self.reader(&KIND)?, look).map_err(judged::of_showing)
    }

    /// What one chat model says alone.
    ///
    /// # Errors
    /// There is none of this name; it is of another kind, or cannot be read.
    pub(super) fn baseline(&self) -> anyhow::Result<BaselineVerdicts> {
        BaselineVerdicts::read(&mut self.reader(&kghalubench_baseline::KIND)?).map_err(explained)
    }

    fn reader(&self, wanted: &Kind) -> anyhow::Result<FolderReader> {
        let (name, data_dir): (&str, &Path) = match self {
            Self::Here { name, data_dir } => (name, data_dir),
            Self::Fetched(fetched) => (fetched.name.as_str(), fetched.data_dir()),
        };
        let reader = FolderReader::open(name, data_dir)?
            .ok_or_else(|| usage!("there is no pipeline {name} in {}", data_dir.display()))?;
        let (name, kind) = (&reader.facts().name, &reader.facts().kind);
        if kind != wanted.name {
            return Err(usage!("pipeline {name} is of kind {kind}; this is for those of {}", wanted.name));
        }
        Ok(reader)
    }
}
