//! Starts and continues runs, in a fleet as in a single process: a run is first proposed, which checks everything and writes
//! nothing, and then begun.

use std::sync::Arc;

use bytes::Bytes;
use domain::control::{BenchmarkView, RunPhase, Submission};
use domain::{Connector, ErrorCode, ModelSpec, RunId, ServiceError};
use history::Event;
use results::RunManifest;
use results::manifest::hash;
use stages::RunName;

use crate::coordinator::Coordinator;
use crate::errors::{Result, conflict, invalid, not_found};
use crate::options::DIALOGUES_MAX;
use crate::plan::configuration::Configuration;
use crate::plan::difference;
use crate::plan::planned::{Planned, REJUDGED};
use crate::plan::protection;
use crate::records::dialogues::DialogueTable;
use crate::records::run::Run;
use crate::records::store::{CHANGES_MAX, Revised, RunStateFile};

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

/// Who lets a run go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoesOn {
    /// A submission of the same configuration, if it is not over.
    Unfinished,
    /// Whoever created it, extended it or named it. In a fleet a paused one stays so until a user resumes it.
    Named,
    /// A user who resumes it.
    Resumed,
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

impl Coordinator {
    /// The run that a submission would start or continue: the unfinished run of the same configuration, or a new one.
    ///
    /// # Errors
    /// The submission cannot be planned; the sink cannot be read.
    pub async fn propose(&self, submission: Submission) -> Result<Proposal> {
        let (planned, sealed) = self.planned(submission).await?;
        let manifest = planned.manifest()?;
        let (manifest, start) = match self.unfinished(&manifest).await? {
            Some(run) => (run.manifest.clone(), Start::Unfinished),
            None => (manifest, Start::New),
        };
        Ok(Proposal { manifest, planned, sealed, start, changes: Vec::new(), warnings: Vec::new() })
    }

    /// A run by name, to be continued as configured.
    ///
    /// # Errors
    /// It does not exist, its pack has changed, or its records could only be written in plaintext.
    pub async fn propose_existing(&self, run: &RunId) -> Result<Proposal> {
        let manifest = self.storage.manifest(run).await?;
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
        let (new, _) = self.planned(submission).await?;
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
            && self.is_pipeline(&RunId::new(&*name.pipeline)).await?
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

    /// Extends a run of a fleet, and shows it with what was changed.
    pub(crate) async fn extend_run(&self, run: &RunId, submission: Submission) -> Result<BenchmarkView> {
        let proposal = self.propose_change(run, submission, true).await?;
        let mut view = self.begin(&proposal).await?;
        let Proposal { manifest, changes, warnings, .. } = proposal;
        tracing::info!(%run, revision = manifest.revision, planned = manifest.planned_dialogues, "extended");
        view.notes.splice(0..0, changes.into_iter().chain(warnings));
        Ok(view)
    }

    /// Starts the run of a submission, or continues the unfinished one of the same configuration.
    pub(crate) async fn submit_run(&self, submission: Submission) -> Result<BenchmarkView> {
        for _ in 0..CHANGES_MAX {
            let proposal = self.propose(submission.clone()).await?;
            if let Some(view) = self.begin_unless_over(&proposal).await? {
                return Ok(view);
            }
        }
        Err(ServiceError::new(ErrorCode::Unavailable, "runs of this configuration end while it is submitted"))
    }

    /// Starts a proposed run, or continues it if any dialogue is pending.
    ///
    /// # Errors
    /// Another process writes the run; the unfinished run of a configuration was cancelled meanwhile; queue or sink cannot be
    /// reached.
    pub async fn begin(&self, proposal: &Proposal) -> Result<BenchmarkView> {
        let begun = self.begin_unless_over(proposal).await?;
        begun.ok_or_else(|| conflict(format!("run {} has just ended; ask again", proposal.manifest.run)))
    }

    /// The same; `None` where the unfinished run of a configuration is over by now, as if it had been when it was looked for.
    async fn begin_unless_over(&self, proposal: &Proposal) -> Result<Option<BenchmarkView>> {
        let Proposal { manifest, sealed, start, .. } = proposal;
        match start {
            Start::New => {
                if let Some(sealed) = sealed {
                    let hash = proposal.planned.pack.hash().as_str();
                    self.storage.sink.put_pack(hash, Bytes::from_owner(Arc::clone(sealed))).await?;
                }
                self.storage.sink.create_run(manifest).await?;
                tracing::info!(run = %manifest.run, planned = manifest.planned_dialogues, "submitted");
            }
            Start::Extended => {
                self.storage.revise_manifest(manifest).await?;
                self.runs.forget(&manifest.run);
            }
            Start::Unfinished | Start::Existing => {}
        }
        let run = self.runs.newest(&manifest.run).await?;
        if self.storage.is_shared()
            && let Some(state) = self.storage.state(run.id()).await?
        {
            self.runs.follow(&run).await?;
            run.set_phase(state.phase); // Others may have finished it.
        }
        let goes_on = if *start == Start::Unfinished { GoesOn::Unfinished } else { GoesOn::Named };
        let is_done = run.phase() == RunPhase::Finished && run.table(DialogueTable::is_complete);
        if !is_done && !self.activate(&run, goes_on).await? {
            return Ok(None);
        }
        Ok(Some(self.view_now(&run).await))
    }

    /// Checks and plans a submission; returns the file of the pack if it is not the built-in one.
    pub(crate) async fn planned(&self, submission: Submission) -> Result<(Planned, Option<Arc<[u8]>>)> {
        let configuration: Configuration = serde_json::from_value(submission.configuration)
            .map_err(|error| invalid(format!("{CONFIGURATION}: {error}")))?;
        configuration.validate(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        if self.storage.is_shared() {
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

    /// Makes this coordinator tend a run, and fills its queue; `false` if it does not go on.
    pub(crate) async fn activate(&self, run: &Arc<Run>, goes_on: GoesOn) -> Result<bool> {
        self.commits.hold(run).await?;
        let fleet = self.storage.is_shared();
        if !fleet {
            // Lock the run: a process that holds the lock is running it.
            self.commits.committer(run).await?;
        }
        self.packs.keep(&run.material.pack_hash).await?;
        // A paused run of a single process was interrupted.
        let stays =
            |state: &RunStateFile| fleet && goes_on != GoesOn::Resumed && state.phase == RunPhase::Paused;
        let begun = self.change_state(run, |state| {
            if goes_on == GoesOn::Unfinished && state.phase.is_over() {
                return Ok(None);
            }
            let phase = if stays(&state) { RunPhase::Paused } else { RunPhase::Active };
            Ok(Some(RunStateFile { phase, fleet, ..state }))
        });
        let Some(state) = begun.await? else { return Ok(false) };
        self.queues.fill(run).await?;
        if state.rework && !fleet {
            // No other process has queued it.
            self.queue_retries(run).await?;
        }
        Ok(true)
    }

    /// Changes the state of a run, then updates the queue: writes what `decide` makes of the newest state, unless that is
    /// nothing, and returns it. `decide` is asked again where another command was quicker. Every change leaves a revision, also
    /// one that changes nothing: who has decided by the state of before finds out.
    pub(crate) async fn change_state(
        &self,
        run: &Arc<Run>,
        decide: impl Fn(RunStateFile) -> Result<Option<RunStateFile>>,
    ) -> Result<Option<RunStateFile>> {
        for _ in 0..CHANGES_MAX {
            let Revised { revision, content } = self.storage.revised_state(run.id()).await?;
            // Runs from a version without states are as their records are.
            let state =
                content.unwrap_or_else(|| RunStateFile { phase: run.phase(), ..RunStateFile::default() });
            let Some(state) = decide(state)? else { return Ok(None) };
            if self.revise_state(run, revision, &state).await? {
                return Ok(Some(state));
            }
        }
        let message = format!("the state of run {} is being changed by others", run.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    /// Writes the state that follows this revision, then updates the queue; `false` if another command was quicker. A finished
    /// run is reopened first.
    pub(crate) async fn revise_state(
        &self,
        run: &Arc<Run>,
        after: u32,
        state: &RunStateFile,
    ) -> Result<bool> {
        if state.phase != RunPhase::Finished {
            self.reopen(run).await?;
        }
        if !self.health.note_sink(self.storage.revise_state(run.id(), after, state).await)? {
            return Ok(false);
        }
        let (mut told, mut state) = (after + 1, state.clone());
        for _ in 0..CHANGES_MAX {
            run.set_phase(state.phase);
            run.attend();
            let at = self.queues.at(run).await?;
            // If the queue was joined just now, it has the state already.
            if let Some(status) = self.health.note_queue(self.queue.run(run.id()).await)? {
                self.queues.set_state(&at, status.state, &state).await?;
            }
            self.signal.touch();
            // A later command may have spoken to the queue first.
            match self.storage.revised_state(run.id()).await? {
                Revised { revision, content: Some(later) } if revision > told => {
                    (told, state) = (revision, later);
                }
                _ => break,
            }
        }
        Ok(true)
    }

    /// Lets new records of a run count, if those that count were fixed.
    pub(crate) async fn reopen(&self, run: &Arc<Run>) -> Result<()> {
        if !run.is_closed() {
            return Ok(());
        }
        let ticket =
            self.queues.call(run, |queue, at| async move { queue.tickets(&at, 1).await }).await?.start;
        if let Some((number, event)) = run.reopen(ticket)
            && !self.health.note_sink(self.storage.sink.seal(run.id(), number, event).await)?
        {
            self.runs.discard(run);
            return Err(conflict(format!("run {} was reopened by another command; ask again", run.id())));
        }
        self.events.write(run.id(), Event::Reopened {}).await;
        Ok(())
    }

    /// The latest run of the same configuration and plan that is not over.
    async fn unfinished(&self, wanted: &RunManifest) -> Result<Option<Arc<Run>>> {
        let same = |old: &RunManifest| {
            old.configuration_hash == wanted.configuration_hash
                && old.plan_hash == wanted.plan_hash
                // What it says, not only what it claims: whoever submits named these addresses and keys and no others.
                && hash(&old.configuration) == wanted.configuration_hash
                && !old.other.contains_key(REJUDGED)
        };
        for (id, old) in self.storage.found().await?.into_iter().rev() {
            if !old.is_ok_and(|old| same(&old)) {
                continue;
            }
            match self.storage.state(&id).await {
                Ok(Some(state)) if state.phase.is_over() => continue,
                _ => {}
            }
            // A run that cannot be loaded cannot continue, which does not concern this submission.
            let loaded = self.runs.known(&id).await;
            match self.health.apart(&id, loaded)? {
                Some(run) if !run.phase().is_over() => return Ok(Some(run)),
                _ => {}
            }
        }
        Ok(None)
    }
}
