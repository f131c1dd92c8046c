//! Starts and continues runs, in a fleet as in a single process: a run is first proposed, which checks everything and writes
//! nothing, and then begun.

use std::sync::Arc;

use benchmarks::RunName;
use benchmarks::names::benchmark_of;
use bytes::Bytes;
use domain::control::{RunPhase, Submission};
use domain::{Connector, ErrorCode, ModelSpec, RunId, ServiceError};
use results::RunManifest;
use results::manifest::hash;
use serde_json::Value;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::JudgedBenchmark;
use crate::errors::{Result, conflict, invalid, not_found};
use crate::options::DIALOGUES_MAX;
use crate::plan::configuration::Configuration;
use crate::plan::difference;
use crate::plan::planned::{Planned, REJUDGED};
use crate::plan::protection;
use crate::records::dialogues::DialogueTable;
use crate::records::run::Run;
use crate::records::store::CHANGES_MAX;
use crate::runs::life::GoesOn;

/// The name in error messages of a configuration without a file.
const CONFIGURATION: &str = "configuration";

/// A proposed run with its plan. Nothing is written before it is [begun](crate::Coordinator::begin).
#[derive(Debug)]
pub struct Proposal {
    manifest: RunManifest,
    planned: Planned,
    /// The file of the pack, if the run is the first to use it.
    sealed: Option<Arc<[u8]>>,
    start: Start,
    changes: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    New,
    /// The run of the same configuration that was not over when it was looked for.
    Unfinished,
    /// One that was named.
    Existing,
    /// It exists, with another manifest.
    Extended,
}

impl Proposal {
    /// The manifest of the run, or of the run to be created.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// Its plan.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// Whether no run of this name exists.
    pub fn is_new(&self) -> bool {
        self.start == Start::New
    }

    /// An existing run with what a configuration adds, as its next manifest.
    pub(crate) fn extended(self, new: Planned, changes: Vec<String>) -> Result<Self> {
        let warnings = difference::in_conditions(&self.planned.configuration, &new.configuration);
        let revision = self.manifest.revision + 1;
        let manifest = RunManifest { revision, ..new.written_into(self.manifest)? };
        Ok(Self { manifest, planned: new, sealed: None, start: Start::Extended, changes, warnings })
    }

    /// What the configuration says otherwise than the run's: `- old` and `+ new`, with their paths.
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// What somebody who extends a run should know before it begins.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// What decides what is asked: a benchmark of another priority or under another cap is the same benchmark.
fn without_terms(configuration: &Value) -> Value {
    let mut configuration = configuration.clone();
    if let Some(fields) = configuration.as_object_mut() {
        fields.remove("priority");
        fields.remove("cap");
    }
    configuration
}

impl Benchmarks {
    /// The run that a submission would start or continue: the unfinished run of the same configuration, or a new one. In a single
    /// process the unfinished one goes on under the cap that the submission names.
    ///
    /// # Errors
    /// The submission cannot be planned, or names another cap than the unfinished run of a fleet has; the sink cannot be read.
    pub async fn propose(&self, submission: Submission) -> Result<Proposal> {
        let (planned, sealed) = self.planned(submission).await?;
        let manifest = planned.manifest()?;
        let (manifest, start) = match self.unfinished(&manifest).await? {
            Some(run) if planned.configuration.names_other_cap(run.cap) => {
                self.expect_own_cap(run.id())?;
                return Box::pin(self.under_other_cap(run.id(), planned)).await;
            }
            Some(run) => (run.manifest.clone(), Start::Unfinished),
            None => (manifest, Start::New),
        };
        Ok(Proposal { manifest, planned, sealed, start, changes: Vec::new(), warnings: Vec::new() })
    }

    /// A run to go on with under the cap of a submission that is the same but for it.
    async fn under_other_cap(&self, run: &RunId, mut planned: Planned) -> Result<Proposal> {
        let old = self.propose_existing(run).await?;
        planned.configuration.keep_terms_of(&old.planned.configuration);
        let changes = difference::between(&old.planned.configuration, &planned.configuration);
        old.extended(planned, changes)
    }

    /// Sees that a submission may change the cap of the benchmark that it would go on with: not in a fleet, where somebody else may
    /// have submitted that.
    pub(crate) fn expect_own_cap(&self, name: &RunId) -> Result<()> {
        if !self.store.is_shared() {
            return Ok(());
        }
        Err(invalid(format!(
            "{name} of this configuration goes on under another cap; `kgfleet submit CONFIG --extend {name}` changes that"
        )))
    }

    /// A run by name, to be continued as configured.
    ///
    /// # Errors
    /// It does not exist, its pack has changed, or its records could only be written in plaintext.
    pub async fn propose_existing(&self, run: &RunId) -> Result<Proposal> {
        let manifest = self.store.manifest(run).await?;
        let manifest = manifest.ok_or_else(|| not_found(format!("there is no run {run}")))?;
        // Check now: without its key, the texts of a protected run would be written in plaintext.
        protection::writing_cipher(&manifest).map_err(|error| conflict(error.to_string()))?;
        let planned = Planned::again(&manifest, self.packs.of_run(&manifest).await?).await?;
        let (start, changes, warnings) = (Start::Existing, Vec::new(), Vec::new());
        Ok(Proposal { manifest, planned, sealed: None, start, changes, warnings })
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
        let old = self.propose_existing(run).await?;
        let (mut new, _) = self.planned(submission).await?;
        new.configuration.keep_terms_of(&old.planned.configuration);
        let changes = difference::between(&old.planned.configuration, &new.configuration);
        if changes.is_empty() {
            return Ok(old);
        }
        if !extend {
            return Err(invalid(format!(
                "the configuration differs from the one of run {run}:\n{}\npass --extend to add models, tasks or \
                 iterations, or start a new run",
                changes.join("\n")
            )));
        }
        if let Some(about) = &old.manifest.about {
            return Err(invalid(format!(
                "run {run} holds what pipeline {} asks; extend that",
                about.pipeline
            )));
        }
        if let Some(name) = RunName::read(run)
            && self.find_judged(&RunId::new(&*name.pipeline)).await?.is_some()
        {
            return Err(invalid(format!("run {run} is one of pipeline {}; extend that", name.pipeline)));
        }
        if let Some(lost) = old.planned.plan.keys().find(|key| !new.plan.contains(key)) {
            return Err(invalid(format!(
                "--extend only adds: dialogue {lost} of run {run} is missing from the new configuration"
            )));
        }
        if new.configuration.seed != old.planned.configuration.seed
            || new.pack.hash() != old.planned.pack.hash()
        {
            return Err(invalid("--extend keeps seed and pack: the questions would differ"));
        }
        old.extended(new, changes)
    }

    /// Extends a run of a fleet. Returns what was changed, and what to know about it, in lines for people.
    pub(crate) async fn extend_run(&self, run: &RunId, submission: Submission) -> Result<Vec<String>> {
        let proposal = self.propose_change(run, submission, true).await?;
        self.begin(&proposal).await?;
        let Proposal { manifest, mut changes, warnings, .. } = proposal;
        tracing::info!(%run, revision = manifest.revision, planned = manifest.planned_dialogues, "extended");
        changes.extend(warnings);
        Ok(changes)
    }

    /// Starts the run of a submission, or continues the unfinished one of the same configuration.
    pub(crate) async fn submit_run(&self, submission: Submission) -> Result<RunId> {
        // Of two at the same moment, the second one finds the run of the first.
        let _one = self.submitting.lock().await;
        for _ in 0..CHANGES_MAX {
            let proposal = self.propose(submission.clone()).await?;
            if let Some(run) = self.begin_unless_over(&proposal).await? {
                return Ok(run.id().clone());
            }
        }
        Err(ServiceError::new(ErrorCode::Unavailable, "runs of this configuration end while it is submitted"))
    }

    /// Starts a proposed run, or continues it if any dialogue is pending.
    ///
    /// # Errors
    /// Another process writes the run; the unfinished run of a configuration was cancelled meanwhile; queue or sink cannot be
    /// reached.
    pub async fn begin(&self, proposal: &Proposal) -> Result<Arc<Run>> {
        let begun = self.begin_unless_over(proposal).await?;
        begun.ok_or_else(|| conflict(format!("run {} has just ended; ask again", proposal.manifest.run)))
    }

    /// The same; `None` where the unfinished run of a configuration is over by now, as if it had been when it was looked for, or
    /// where there is a run of the new one's name.
    async fn begin_unless_over(&self, proposal: &Proposal) -> Result<Option<Arc<Run>>> {
        let Proposal { manifest, sealed, start, .. } = proposal;
        self.runs.queue.expect_leading().await?;
        match start {
            Start::New => {
                if let Some(sealed) = sealed {
                    let hash = proposal.planned.pack.hash().as_str();
                    self.store.sink.put_pack(hash, Bytes::from_owner(Arc::clone(sealed))).await?;
                }
                match self.store.sink.create_run(manifest).await.map_err(ServiceError::from) {
                    Err(error) if error.code == ErrorCode::Conflict && self.store.is_shared() => {
                        return Ok(None);
                    }
                    created => drop(created?),
                }
                tracing::info!(run = %manifest.run, planned = manifest.planned_dialogues, "submitted");
            }
            Start::Extended => {
                self.store.revise_manifest(manifest).await?;
                if let Some(run) = self.loaded.get(&manifest.run) {
                    self.loaded.discard(&run).await;
                }
            }
            Start::Unfinished | Start::Existing => {}
        }
        let run = self.loaded.newest(&manifest.run).await?;
        let goes_on = if *start == Start::Unfinished { GoesOn::Unfinished } else { GoesOn::Named };
        let is_done = run.phase() == RunPhase::Finished && run.table(DialogueTable::is_complete);
        if !is_done && !self.runs.begin(&run, goes_on).await? {
            return Ok(None);
        }
        let benchmark = benchmark_of(run.id());
        if run.cap.is_some() && benchmark != *run.id() && !self.attended.has(&benchmark) {
            // The run has begun. What is not counted is held, and the next round counts it.
            if let Err(error) = self.count_if_live(&benchmark).await {
                tracing::warn!(%benchmark, %error, "what it has used could not be counted yet");
            }
        }
        Ok(Some(run))
    }

    /// Dialogues of a submission. Questions to judges follow from answers and are not among them.
    pub(crate) async fn size_of(&self, submission: Submission) -> Result<u64> {
        Ok(self.planned(submission).await?.0.plan.dialogues())
    }

    /// The same; none if it goes on with a benchmark that is there.
    pub(crate) async fn size_of_new(&self, submission: Submission) -> Result<u64> {
        let (planned, _) = self.planned(submission).await?;
        let is_there = if planned.configuration.pipeline.is_some() {
            let name = JudgedBenchmark::fresh_name(&planned.configuration, planned.pack.hash().as_str())?;
            self.find_judged(&name).await?.is_some()
        } else {
            self.unfinished(&planned.manifest()?).await?.is_some()
        };
        Ok(if is_there { 0 } else { planned.plan.dialogues() })
    }

    /// Checks and plans a submission; returns the file of the pack if it is not the built-in one.
    pub(crate) async fn planned(&self, submission: Submission) -> Result<(Planned, Option<Arc<[u8]>>)> {
        let configuration: Configuration = serde_json::from_value(submission.configuration)
            .map_err(|error| invalid(format!("{CONFIGURATION}: {error}")))?;
        configuration.validate(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        if self.store.is_shared() {
            let replays = |model: &&ModelSpec| model.connector == Connector::Replay;
            if let Some(replayed) = configuration.models.iter().find(replays) {
                return Err(invalid(format!(
                    "model `{}` replays files of this machine, which workers elsewhere do not have; use `kgfleet run`",
                    replayed.label
                )));
            }
            configuration.validate_fleet(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        } else {
            configuration.validate_local(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        }
        let (pack, sealed) = self.packs.submitted(&configuration, submission.pack).await?;
        let planned = Planned::new(configuration, pack).await?;
        let dialogues = planned.plan.dialogues();
        if dialogues > DIALOGUES_MAX {
            return Err(invalid(format!(
                "{dialogues} dialogues are planned; a run may have {DIALOGUES_MAX}: split the configuration"
            )));
        }
        Ok((planned, sealed))
    }

    /// The latest run of the same configuration and plan that is not over.
    async fn unfinished(&self, wanted: &RunManifest) -> Result<Option<Arc<Run>>> {
        let asked = without_terms(&wanted.configuration);
        let same = |old: &RunManifest| {
            old.plan_hash == wanted.plan_hash
                // What it says, not only what it claims: whoever submits named these addresses and keys and no others.
                && hash(&old.configuration) == old.configuration_hash
                && without_terms(&old.configuration) == asked
                && !old.other.contains_key(REJUDGED)
        };
        for (id, old) in self.store.found().await?.into_iter().rev() {
            // A run that cannot be read cannot continue, which does not concern this submission.
            if !self.health.unless_transient(&id, old)?.is_some_and(|old| same(&old)) {
                continue;
            }
            let state = self.health.unless_transient(&id, self.loaded.state(&id).await)?.flatten();
            if state.is_some_and(|state| state.phase.is_over()) {
                continue;
            }
            let loaded = self.loaded.known(&id).await;
            match self.health.unless_transient(&id, loaded)? {
                Some(run) if !run.phase().is_over() => return Ok(Some(run)),
                _ => {}
            }
        }
        Ok(None)
    }
}
