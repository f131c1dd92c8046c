//! What the process of a local run does step by step: proposes a run, shows it to its user, and begins it.

use domain::RunId;
use domain::control::{BenchmarkView, Submission};

use crate::access::Access;
use crate::benchmarks::copy::BenchmarkCopy;
use crate::benchmarks::submit::Proposal;
use crate::errors::Result;

impl Access {
    /// The run that a submission would start or continue: the unfinished run of the same configuration, or a new one.
    ///
    /// # Errors
    /// The submission cannot be planned; the sink cannot be read.
    pub async fn propose(&self, submission: Submission) -> Result<Proposal> {
        self.parts.benchmarks.propose(submission).await
    }

    /// A run by name, to be continued as configured.
    ///
    /// # Errors
    /// It does not exist, its pack has changed, or its records could only be written in plaintext.
    pub async fn propose_existing(&self, run: &RunId) -> Result<Proposal> {
        self.parts.benchmarks.propose_existing(run).await
    }

    /// A run by its name, to go on with under this configuration. Without `extend` only an equal one is taken; with it,
    /// models, tasks and iterations may be added.
    ///
    /// # Errors
    /// As for [`propose_existing`](Self::propose_existing); the configurations differ in what may not change.
    pub async fn propose_change(
        &self,
        run: &RunId,
        submission: Submission,
        extend: bool,
    ) -> Result<Proposal> {
        self.parts.benchmarks.propose_change(run, submission, extend).await
    }

    /// Starts a proposed run, or continues it if any dialogue is pending.
    ///
    /// # Errors
    /// Another process writes the run; the unfinished run of a configuration was cancelled meanwhile; queue or sink cannot be
    /// reached.
    pub async fn begin(&self, proposal: &Proposal) -> Result<BenchmarkView> {
        let run = self.parts.benchmarks.begin(proposal).await?;
        self.shown(self.parts.views.run_now(&run).await).await
    }

    /// Why the cap of a benchmark, as it was seen, lets nothing more of it be asked; `None` while it does, and where nothing is left.
    pub fn capped(&self, view: &BenchmarkView) -> Option<String> {
        let is_left = view.models.iter().any(|model| model.blocked.is_some());
        is_left.then(|| self.parts.benchmarks.caps.told(&view.run)).flatten()
    }

    /// Brief views of all judged benchmarks; of one that cannot be read, with the reason.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn pipelines(&self) -> Result<Vec<BenchmarkView>> {
        let views = self.parts.views.judged().await?;
        Ok(views.into_iter().map(|judged| judged.view).collect())
    }

    /// Sees that a run is not one that a fleet goes on with, now or when its coordinators are back.
    ///
    /// # Errors
    /// It is; or its state cannot be read.
    pub async fn expect_removable(&self, run: &RunId) -> Result<()> {
        self.parts.runs.expect_removable(run).await
    }

    /// A copy of the documents of a judged benchmark; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn copy_of(&self, name: &RunId) -> Result<Option<BenchmarkCopy>> {
        Ok(self.parts.benchmarks.copy_of(name).await?.map(|(copy, _)| copy))
    }

    /// Writes the documents of a copied benchmark into the sink of this coordinator, which has its runs already.
    ///
    /// # Errors
    /// The sink cannot be written, or lacks a run; a newer version wrote the benchmark.
    pub async fn take_copy(&self, copy: BenchmarkCopy) -> Result<()> {
        self.parts.benchmarks.take_copy(copy).await
    }
}
