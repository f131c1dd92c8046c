//! A run or judged benchmark whose files lie on this machine: in a data folder, or in one of their own because they come out of an
//! archive or a fleet. Whatever reads a benchmark reads one of these.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::RunId;
use domain::redaction::is_redacted;
use results::{RunDir, RunManifest};
use tempfile::TempDir;

use crate::kit::exit_code::usage;
use crate::kit::runtime::block_on;
use crate::place::{disclosure, folders, local, names};

/// How the name of an archive ends.
pub const ARCHIVE_ENDING: &str = ".tar.zst";

/// Runs of a judged benchmark that a message names.
const STAGES_NAMED_MAX: usize = 5;

/// Whether the name of a run is the path of an archive.
pub fn is_archive(name: &str) -> bool {
    name.ends_with(ARCHIVE_ENDING)
}

/// Opens a run of a data folder.
pub(super) type OpenRun = fn(&RunId, &Path) -> anyhow::Result<(RunDir, RunManifest)>;

/// A benchmark with its files.
pub struct OpenedBenchmark {
    pub name: RunId,
    /// Its runs: one, unless it is judged.
    pub runs: Vec<(RunDir, RunManifest)>,
    /// Whether it has documents beside its runs.
    pub is_judged: bool,
    data_dir: PathBuf,
    /// The data folder, where it is the benchmark's own: it is removed with it.
    own_folder: Option<TempDir>,
}

impl OpenedBenchmark {
    /// The benchmark in an archive, every file of which is compared with its hash.
    pub(super) fn unpacked(archive: &Path, open: OpenRun) -> anyhow::Result<Self> {
        // An archive that is no file, such as a pipe, is not waited for.
        let cannot = || format!("cannot read {}", archive.display());
        service_kit::named_files::open(archive).with_context(cannot)?;
        Self::copied(open, |folder| Ok(results::archive::unpack(archive, folder)?.run))
    }

    /// A benchmark that is copied into a folder of its own; `copy` returns its name.
    pub(super) fn copied(
        open: OpenRun,
        copy: impl FnOnce(&Path) -> anyhow::Result<RunId>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let name = copy(folder.path())?;
        let opened = Self::in_folder(name.as_str(), folder.path(), open)?;
        Ok(Self { own_folder: Some(folder), ..opened })
    }

    /// The benchmark of this name in a data folder.
    pub(super) fn in_folder(name: &str, data_dir: &Path, open: OpenRun) -> anyhow::Result<Self> {
        let name = names::of_folder(name, data_dir)?;
        let stages = local::runs_in(&name, data_dir)?;
        let is_judged = !stages.is_empty();
        let runs = if is_judged { stages } else { vec![name.clone()] };
        let runs = runs.iter().map(|run| open(run, data_dir)).collect::<anyhow::Result<_>>()?;
        Ok(Self { name, runs, is_judged, data_dir: data_dir.to_owned(), own_folder: None })
    }

    /// The data folder in which it lies.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Whether its files are copies, which are removed with it.
    pub fn is_copied(&self) -> bool {
        self.own_folder.is_some()
    }

    /// Its only run.
    ///
    /// # Errors
    /// It is judged, so it has several (exit code 2).
    pub fn only(&self) -> anyhow::Result<(&RunDir, &RunManifest)> {
        if let (false, [(dir, manifest)]) = (self.is_judged, self.runs.as_slice()) {
            return Ok((dir, manifest));
        }
        let stages: Vec<&str> =
            self.runs.iter().take(STAGES_NAMED_MAX).map(|(_, manifest)| manifest.run.as_str()).collect();
        let more = if self.runs.len() > stages.len() { ", …" } else { "" };
        Err(usage!("{} is judged: name one of its runs, such as {}{more}", self.name, stages.join(", ")))
    }

    /// The documents of a judged benchmark, and from then on every run whose records belong to it: those that it takes answers
    /// from too. `None` for a run.
    pub fn documents(&mut self) -> anyhow::Result<Option<BenchmarkCopy>> {
        if !self.is_judged {
            return Ok(None);
        }
        let documents = block_on(local::documents(&self.name, &self.data_dir))?;
        if let Some(documents) = &documents {
            let runs = documents.runs().map(|run| folders::open(run, &self.data_dir));
            self.runs = runs.collect::<anyhow::Result<_>>()?;
        }
        Ok(documents)
    }

    /// Refuses what a coordinator gives only to others: texts that it replaced.
    ///
    /// # Errors
    /// Its texts were replaced; its records cannot be read.
    pub fn refuse_redacted(&self) -> anyhow::Result<()> {
        let protected = self.runs.iter().filter(|(_, manifest)| self.is_copied() && manifest.protected);
        for (dir, manifest) in protected {
            let cipher = disclosure::cipher(manifest)?;
            let index = folders::recorded(dir, manifest)?;
            let first = index.records(&dir.log(), cipher.as_ref())?.next().transpose()?;
            if first.is_some_and(|first| {
                first.rounds.first().is_some_and(|round| is_redacted(&round.prompt.text))
            }) {
                bail!("the coordinator gives protected texts of run {} only to operators", manifest.run);
            }
        }
        Ok(())
    }
}
