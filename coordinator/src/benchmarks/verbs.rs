//! The commands of users about benchmarks.

use std::sync::Arc;

use benchmarks::names::benchmark_of;
use domain::control::{BenchmarkCommand, DeadLetterView, RunPhase, Submission};
use domain::{ErrorCode, FailureCause, RunId, ServiceError};

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::{Benchmark, JudgedBenchmark, JudgedState};
use crate::benchmarks::progress::is_finished;
use crate::benchmarks::reading::stage_of;
use crate::errors::{Result, conflict, invalid};
use crate::options::DIALOGUES_MAX;
use crate::plan::configuration::Configuration;
use crate::plan::difference;
use crate::plan::planned::{Planned, unjudgeable};
use crate::records::store::CHANGES_MAX;

/// What an extension keeps.
fn fixed(configuration: &Configuration) -> Configuration {
    Configuration {
        name: String::new(),
        models: Vec::new(),
        tasks: Vec::new(),
        iterations: None,
        task_iterations: std::collections::BTreeMap::new(),
        priority: None,
        cap: None,
        ..configuration.clone()
    }
}

/// Whether a pipeline is small enough.
fn expect_size(planned: &Planned) -> Result<()> {
    if planned.configuration.models.len() as u64 * planned.plan.dialogues() > DIALOGUES_MAX {
        return Err(invalid(format!("a pipeline may have {DIALOGUES_MAX} dialogues with its models")));
    }
    Ok(())
}

/// Which runs of a pipeline are told of its phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tell {
    /// All: what a user asks for lets models be asked that are parked.
    All,
    /// Those that were not told, because who told the others has died.
    Missed,
}

/// The command that brings a run to this phase.
pub(crate) fn command_of(phase: RunPhase) -> BenchmarkCommand {
    match phase {
        RunPhase::Paused => BenchmarkCommand::Pause,
        RunPhase::Cancelled => BenchmarkCommand::Cancel,
        RunPhase::Preparing | RunPhase::Active | RunPhase::Finished => BenchmarkCommand::Resume,
    }
}

impl Benchmarks {
    /// Starts what a configuration describes, or continues it; returns its name.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<RunId> {
        let names_kind = submission.configuration.get("pipeline").is_some_and(|kind| !kind.is_null());
        if names_kind { self.submit_judged(submission).await } else { self.submit_run(submission).await }
    }

    /// Adds models, tasks or iterations. Returns what was changed, and what to know about it, in lines for people.
    pub(crate) async fn extend(&self, name: &RunId, submission: Submission) -> Result<Vec<String>> {
        match self.find(name).await? {
            Benchmark::Run(run) => self.extend_run(&run, submission).await,
            Benchmark::Judged(benchmark) => self.extend_judged(&benchmark, submission).await,
        }
    }

    /// Pauses, resumes or cancels.
    pub(crate) async fn command(&self, name: &RunId, command: BenchmarkCommand) -> Result<()> {
        match self.find(name).await? {
            Benchmark::Run(run) => {
                let gone_on = self.runs.command(&run, command).await?;
                if command == BenchmarkCommand::Resume && !gone_on.phase().is_over() {
                    self.begin_judged_of(&run).await?;
                }
                Ok(())
            }
            Benchmark::Judged(benchmark) => self.command_judged(&benchmark.name, command).await,
        }
    }

    /// Asks failed dialogues again, those of every stage; returns their number.
    pub(crate) async fn retry(&self, name: &RunId, causes: &[FailureCause]) -> Result<u64> {
        let mut dialogues = 0;
        let found = self.find(name).await?;
        for run in self.runs_of(&found).await? {
            if !self.has_stand_ins(&run).await? {
                dialogues += self.runs.retry(&run, causes).await?;
            }
        }
        let judged = match &found {
            Benchmark::Judged(judged) => Some(judged.name.clone()),
            Benchmark::Run(run) => self.judged_of(run).await?,
        };
        if let Some(judged) = judged
            && (dialogues > 0 || self.counts_failures(&judged).await?)
        {
            self.begin_judged(&judged).await?;
        }
        Ok(dialogues)
    }

    /// Whether a judged benchmark ended with failed dialogues. An earlier retry may have asked them again, and its coordinator
    /// have died before it began the benchmark: then none is failed any more, and their answers want verdicts all the same.
    async fn counts_failures(&self, name: &RunId) -> Result<bool> {
        let JudgedState { phase, counts: [.., failed], .. } = self.judged_state(name).await?;
        Ok(phase == RunPhase::Finished && failed > 0)
    }

    /// Whether something stands in for the failed dialogues of a run: what was judged with that stays as it is.
    async fn has_stand_ins(&self, run: &RunId) -> Result<bool> {
        let Some(name) = stage_of(run) else { return Ok(false) };
        let Some(judged) = self.find_judged(&RunId::new(name.pipeline)).await? else { return Ok(false) };
        Ok(judged.judging.stages.iter().any(|stage| stage.name == name.stage && stage.stands_in))
    }

    /// The judged benchmark that a run is of, if it is finished.
    async fn judged_of(&self, run: &RunId) -> Result<Option<RunId>> {
        let Some(name) = stage_of(run).map(|stage| RunId::new(stage.pipeline)) else { return Ok(None) };
        let is_over = self.find_judged(&name).await?.is_some()
            && self.judged_state(&name).await?.phase == RunPhase::Finished;
        Ok(is_over.then_some(name))
    }

    /// Lets the judged benchmark go on that a run is of, if it is finished: new answers want verdicts.
    async fn begin_judged_of(&self, run: &RunId) -> Result<()> {
        match self.judged_of(run).await? {
            Some(name) => self.begin_judged(&name).await,
            None => Ok(()),
        }
    }

    /// Removes everything of it. With `force`, also one that goes on, or that cannot be read.
    pub(crate) async fn remove(&self, name: &RunId, force: bool) -> Result<()> {
        let judged = match self.find(name).await {
            Ok(Benchmark::Run(run)) => return self.runs.remove(&run, force).await,
            Ok(Benchmark::Judged(found)) => self.judged_state(name).await.map(|_| found),
            Err(error) => Err(error),
        };
        match judged {
            Ok(found) => self.remove_judged(&found, force).await,
            Err(error) if error.code.is_transient() => Err(error),
            Err(_) if force => self.remove_damaged(name).await,
            Err(error) => Err(conflict(format!("{}; `--force` removes it all the same", error.message))),
        }
    }

    /// The dead letters of its runs, then their suspects; or those of one number.
    pub(crate) async fn dead_letters(&self, name: &RunId, unit: Option<u64>) -> Result<Vec<DeadLetterView>> {
        let mut letters = Vec::new();
        let found = self.find(name).await?;
        for run in self.runs_of(&found).await? {
            match self.runs.dead_letters(&run, unit).await {
                // Another run may have this unit.
                Err(error) if error.code == ErrorCode::NotFound && matches!(found, Benchmark::Judged(_)) => {}
                of_run => letters.extend(of_run?),
            }
        }
        letters.sort_by_key(|letter| letter.suspect);
        Ok(letters)
    }

    /// Gives dead letters another chance (all if none is given); returns their number.
    ///
    /// # Errors
    /// Units of a judged benchmark are given by number: each of its runs has units of its own.
    pub(crate) async fn requeue(&self, name: &RunId, units: &[u64]) -> Result<u64> {
        let found = self.find(name).await?;
        if matches!(found, Benchmark::Judged(_)) && !units.is_empty() {
            return Err(invalid(format!(
                "units are numbered run by run, and benchmark {name} has several runs; name the run of the units, or \
                 requeue all"
            )));
        }
        let mut requeued = 0;
        for run in self.runs_of(&found).await? {
            requeued += self.runs.requeue(&run, units).await?;
        }
        match found {
            _ if requeued == 0 => {}
            Benchmark::Judged(_) => self.begin_judged(name).await?,
            Benchmark::Run(run) => self.begin_judged_of(&run).await?,
        }
        Ok(requeued)
    }

    /// The runs of which it is made.
    pub(crate) async fn runs_of(&self, benchmark: &Benchmark) -> Result<Vec<RunId>> {
        match benchmark {
            Benchmark::Run(run) => Ok(vec![run.clone()]),
            Benchmark::Judged(benchmark) => self.runs_created_by(benchmark).await,
        }
    }

    /// Starts or continues the pipeline of a configuration: the same configuration is the same pipeline.
    pub(crate) async fn submit_judged(&self, submission: Submission) -> Result<RunId> {
        let (pipeline, sealed) = self.proposed_judged(submission.clone()).await?;
        let name = pipeline.name.clone();
        if let Some(sealed) = sealed {
            self.store.sink.put_pack(&pipeline.manifest.pack_hash, bytes::Bytes::from_owner(sealed)).await?;
        }
        self.packs.keep(&pipeline.manifest.pack_hash).await?;
        let known = self.judged_state(&name).await?;
        if known.removed && self.find_judged(&name).await?.is_none() {
            // Whoever removed it has died before the last document.
            self.remove_documents(&name).await?;
        } else {
            known.expect_kept(&name)?;
        }
        if !known.phase.is_over()
            && pipeline.configuration.cap.is_some()
            && let Some(old) = self.find_judged(&name).await?
            && pipeline.configuration.names_other_cap(old.configuration.cap)
        {
            self.expect_own_cap(&name)?;
            self.extend_judged(&old, submission).await?;
            return Ok(name);
        }
        // Another coordinator wrote the same pipeline, except for the time.
        let is_new = self.write_revision(&pipeline).await?;
        self.begin_judged(&name).await.map_err(|error| match is_new {
            // It is there, and coordinators go on with it: nobody may take it for refused.
            true => ServiceError::new(
                ErrorCode::Unavailable,
                format!("pipeline {name} is submitted, and cannot begin yet; ask again: {}", error.message),
            ),
            false => error,
        })?;
        tracing::info!(pipeline = %name, kind = pipeline.configuration.pipeline, "submitted");
        Ok(name)
    }

    /// The checked pipeline of a configuration. Nothing is written.
    async fn proposed_judged(&self, submission: Submission) -> Result<(JudgedBenchmark, Option<Arc<[u8]>>)> {
        let (planned, sealed) = self.planned(submission).await?;
        expect_size(&planned)?;
        if let Some(why) = unjudgeable(&planned.configuration, &planned.pack, &planned.plan) {
            return Err(invalid(why));
        }
        let Planned { configuration, pack, .. } = planned;
        if let Some(base) = self.base_of(&configuration).await? {
            self.expect_same_answers(&base, &configuration, pack.hash().as_str()).await?;
        }
        let name = JudgedBenchmark::fresh_name(&configuration, pack.hash().as_str())?;
        Ok((JudgedBenchmark::new(name, configuration, pack.hash().as_str(), 1)?, sealed))
    }

    /// Sees that a configuration judges the answers that a pipeline has, and that they come.
    async fn expect_same_answers(
        &self,
        base: &JudgedBenchmark,
        wanted: &Configuration,
        pack_hash: &str,
    ) -> Result<()> {
        // What does not decide what is asked of the models under test; the pack is compared by its hash.
        let asked = |configuration: &Configuration| Configuration {
            name: String::new(),
            pack: String::new(),
            priority: None,
            cap: None,
            ..configuration.unjudged()
        };
        let lines = difference::between(&asked(&base.configuration), &asked(wanted));
        if !lines.is_empty() {
            return Err(invalid(format!(
                "the answers of pipeline {} are judged again as they are; only judges, their settings and the kind may \
                 differ, but the configuration says:\n{}",
                base.name,
                lines.join("\n")
            )));
        }
        if base.manifest.pack_hash != pack_hash {
            return Err(invalid(format!(
                "pipeline {} asks from pack {}, the configuration from {}: the questions would differ",
                base.name,
                base.manifest.pack_hash.get(..12).unwrap_or_default(),
                pack_hash.get(..12).unwrap_or_default()
            )));
        }
        if self.store.is_shared() {
            return Ok(()); // Its coordinators see to it that they come.
        }
        let chain = self.chain_of(base).await?;
        for model in &base.configuration.models {
            let runs = self.find_stages(&chain, model).await?;
            let answered = |(_, state): &(RunId, Option<_>)| is_finished(state.as_ref());
            if runs[0].is_empty() || !runs[0].iter().all(answered) {
                return Err(conflict(format!(
                    "model `{}` of pipeline {} has not answered everything; `kgfleet resume {}` goes on with that",
                    model.label, base.name, base.name
                )));
            }
        }
        Ok(())
    }

    /// A pipeline with models, tasks or iterations in addition to those that it has, as a new revision. Coordinators that look
    /// after it read the newest one in every round. Returns what is otherwise than before, and what to know about it, in lines
    /// for people.
    async fn extend_judged(&self, old: &JudgedBenchmark, submission: Submission) -> Result<Vec<String>> {
        let name = &old.name;
        let (mut planned, _) = self.planned(submission).await?;
        // Whose answers it takes is no part of a configuration.
        planned.configuration.reuse.clone_from(&old.configuration.reuse);
        planned.configuration.keep_terms_of(&old.configuration);
        let mut lines = difference::between(&old.configuration, &planned.configuration);
        if lines.is_empty() {
            self.begin_judged(name).await?;
            return Ok(lines);
        }
        if fixed(&old.configuration) != fixed(&planned.configuration) {
            return Err(invalid(format!(
                "a pipeline is extended by models, tasks and iterations; other judges are another pipeline \
                 (`kgfleet rejudge`):\n{}",
                lines.join("\n")
            )));
        }
        if planned.pack.hash().as_str() != old.manifest.pack_hash {
            return Err(invalid("--extend keeps the pack: the questions would differ"));
        }
        expect_size(&planned)?;
        let before = Planned::new(old.configuration.clone(), Arc::clone(&planned.pack)).await?;
        if let Some(lost) = before.plan.keys().find(|key| !planned.plan.contains(key)) {
            return Err(invalid(format!(
                "--extend only adds: dialogue {lost} of pipeline {name} is missing from the new configuration:\n{}",
                lines.join("\n")
            )));
        }
        if let Some(base) = self.base_of(&old.configuration).await? {
            self.expect_same_answers(&base, &planned.configuration, &old.manifest.pack_hash).await?;
        }
        lines.extend(difference::in_conditions(&old.configuration, &planned.configuration));
        let revision = old.manifest.revision + 1;
        let next =
            JudgedBenchmark::new(name.clone(), planned.configuration, &old.manifest.pack_hash, revision)?;
        if !self.extend_by(&next, old).await? {
            return Err(conflict(format!("pipeline {name} was extended by another command; ask again")));
        }
        self.begin_judged(name).await?;
        tracing::info!(pipeline = %name, revision, "extended");
        Ok(lines)
    }

    /// Makes this coordinator tend a pipeline. A paused one of a fleet stays paused.
    pub(crate) async fn begin_judged(&self, name: &RunId) -> Result<()> {
        let fleet = self.store.is_shared();
        let begun = self.change_judged_state(name, |state| {
            state.expect_kept(name)?;
            if state.phase == RunPhase::Cancelled {
                return Ok(None);
            }
            let stays = fleet && state.phase == RunPhase::Paused;
            let phase = if stays { RunPhase::Paused } else { RunPhase::Active };
            Ok(Some(JudgedState { phase, fleet, ..state }))
        });
        if begun.await?.is_none() {
            // Its runs were cancelled with it.
            return self.command_judged(name, BenchmarkCommand::Resume).await;
        }
        self.attended.add(name);
        self.tell_runs(name, Tell::Missed).await?;
        self.tend_judged(name).await
    }

    /// Pauses, resumes or cancels a pipeline: first its phase, so that no runs are derived, then its runs.
    pub(crate) async fn command_judged(&self, name: &RunId, command: BenchmarkCommand) -> Result<()> {
        let fleet = self.store.is_shared();
        self.change_judged_state(name, |state| {
            state.expect_kept(name)?;
            let phase = match (command, state.phase) {
                (BenchmarkCommand::Pause, phase @ (RunPhase::Cancelled | RunPhase::Finished))
                | (BenchmarkCommand::Cancel, phase @ RunPhase::Finished) => {
                    return Err(conflict(format!("pipeline {name} is {phase}")));
                }
                (BenchmarkCommand::Pause, _) => RunPhase::Paused,
                (BenchmarkCommand::Cancel, _) => RunPhase::Cancelled,
                (BenchmarkCommand::Resume, _) => RunPhase::Active,
            };
            Ok(Some(JudgedState { phase, fleet, telling: true, ..state }))
        })
        .await?;
        if command == BenchmarkCommand::Resume {
            // The disk may have lost what was read before.
            self.attended.forget(name);
        }
        self.attended.add(name);
        self.tell_runs(name, Tell::All).await?;
        self.tend_judged(name).await
    }

    /// Tells the runs of a pipeline of its phase, if they have perhaps not all been told. Whoever gave the command may have died
    /// over that, or be at it still: told twice, they do the same.
    pub(crate) async fn tell_runs(&self, name: &RunId, whom: Tell) -> Result<()> {
        // Who was given an earlier command may not come to tell it after a later one was told, and then die.
        let _one = self.telling.lock().await;
        for round in 0..CHANGES_MAX {
            let (revision, state) = self.revised_judged_state(name).await?;
            // Whoever gave a later command may have told the runs before the earlier one was told here: they are told again.
            let is_told = !state.telling && round == 0;
            if is_told || state.removed {
                return Ok(());
            }
            let command = command_of(state.phase);
            for run in self.own_runs(name).await? {
                let of_run = self.loaded.state(&run).await?;
                let has_heard = of_run.as_ref().is_some_and(|of_run| command_of(of_run.phase) == command);
                if is_finished(of_run.as_ref()) || (whom == Tell::Missed && has_heard) {
                    continue;
                }
                match self.runs.command(&run, command).await {
                    // It has ended just now.
                    Err(error)
                        if error.code == ErrorCode::Conflict
                            && is_finished(self.loaded.state(&run).await?.as_ref()) => {}
                    told => drop(told?),
                }
            }
            let told = JudgedState { telling: false, ..state };
            if self.revise_judged_state(name, revision, &told).await? {
                return Ok(());
            }
        }
        Ok(()) // The next round goes on with it.
    }

    /// Removes a pipeline and its runs.
    async fn remove_judged(&self, pipeline: &JudgedBenchmark, force: bool) -> Result<()> {
        let name = &pipeline.name;
        let fleet = self.store.is_shared();
        let cancelled = |state: JudgedState| match state.phase {
            phase if (fleet || state.fleet) && !phase.is_over() && !force => Err(conflict(format!(
                "pipeline {name} is {phase}{}: cancel it first, or `--force` does both",
                if fleet { "" } else { " in a fleet, which goes on with it when a coordinator starts" }
            ))),
            _ => Ok(Some(JudgedState { phase: RunPhase::Cancelled, removed: true, ..state })),
        };
        cancelled(self.judged_state(name).await?)?;
        self.expect_unused(name, force).await?;
        // Before anything is changed.
        self.expect_unwritten(&self.runs_named_after(name).await?, force).await?;
        // First of all: nobody derives any more.
        self.change_judged_state(name, cancelled).await?;
        self.finish_removal(name).await.map_err(|error| {
            // It is not refused any more: whoever comes upon it goes on with it.
            let message =
                format!("not everything of pipeline {name} is removed yet; ask again: {}", error.message);
            ServiceError::new(ErrorCode::Unavailable, message)
        })
    }

    /// Removes the runs and documents of a pipeline that is marked so. Several coordinators may be at it at once; where another
    /// one was quicker, there may be a new pipeline of this name, of which nothing is removed.
    pub(crate) async fn finish_removal(&self, name: &RunId) -> Result<()> {
        // In the newest revision: whoever extended it did so before it was marked.
        if let Some(pipeline) = self.find_judged(name).await? {
            for run in self.runs_named_after(name).await? {
                if !self.is_there(&pipeline).await? {
                    break;
                }
                self.remove_part(&run).await?;
            }
            if self.is_there(&pipeline).await? {
                self.remove_documents(name).await?;
                tracing::info!(pipeline = %name, "removed");
            }
        }
        self.attended.forget(name);
        self.caps.forget(name);
        Ok(())
    }

    /// Removes a pipeline of which a document cannot be read. Nobody derives from it, so that it needs no mark: whoever asks
    /// again goes on with its removal.
    async fn remove_damaged(&self, name: &RunId) -> Result<()> {
        self.expect_unused(name, true).await?;
        let runs = self.runs_named_after(name).await?;
        self.expect_unwritten(&runs, true).await?;
        for run in &runs {
            self.remove_part(run).await?;
        }
        self.remove_documents(name).await?;
        tracing::info!(pipeline = %name, "removed");
        self.attended.forget(name);
        self.caps.forget(name);
        Ok(())
    }

    /// Sees that no other pipeline takes its answers from this one. With `force`, one that cannot be read does not count.
    async fn expect_unused(&self, name: &RunId, force: bool) -> Result<()> {
        for other in self.store.pipelines().await? {
            if other == *name {
                continue;
            }
            let taken = match self.find_judged(&other).await {
                Ok(other) => other.and_then(|other| other.configuration.reuse),
                Err(error) if error.code.is_transient() => return Err(error),
                Err(_) if force => continue,
                Err(error) => {
                    return Err(conflict(format!(
                        "pipeline {other} cannot be read, and may take its answers from {name}; `--force` removes {name} all \
                         the same: {}",
                        error.message
                    )));
                }
            };
            if taken.as_deref() == Some(name.as_str()) {
                return Err(conflict(format!(
                    "pipeline {other} takes its answers from {name}: remove it first"
                )));
            }
        }
        Ok(())
    }

    /// Sees that no other process writes one of these runs. With `force`, one that cannot be loaded need not be.
    async fn expect_unwritten(&self, runs: &[RunId], force: bool) -> Result<()> {
        if self.store.is_shared() {
            return Ok(());
        }
        for run in runs {
            match self.loaded.known(run).await {
                Ok(run) => self.runs.logs.lock(&run).await?,
                Err(_) if force => drop(self.store.lock(run)?),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The runs whose names say that they are of this pipeline: also those that cannot be read.
    async fn runs_named_after(&self, name: &RunId) -> Result<Vec<RunId>> {
        let found = self.store.sink.runs().await?;
        let mut runs: Vec<RunId> = found.into_iter().map(|found| found.dir.run()).collect();
        runs.retain(|run| run != name && benchmark_of(run) == *name);
        Ok(runs)
    }

    /// Removes a run of a pipeline, if nobody else has.
    pub(crate) async fn remove_part(&self, run: &RunId) -> Result<()> {
        match self.runs.remove(run, true).await {
            Err(error) if error.code == ErrorCode::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The runs that a pipeline has created.
    pub(crate) async fn own_runs(&self, name: &RunId) -> Result<Vec<RunId>> {
        let pipeline = self.expect_judged(name).await?;
        self.runs_created_by(&pipeline).await
    }

    /// The same of a pipeline at hand.
    pub(crate) async fn runs_created_by(&self, pipeline: &JudgedBenchmark) -> Result<Vec<RunId>> {
        let chain = self.chain_of(pipeline).await?;
        let mut runs: Vec<RunId> = Vec::new();
        for model in &pipeline.configuration.models {
            let stages = self.find_stages(&chain, model).await?;
            // Answers taken from another pipeline belong to that one.
            let own = stages.into_iter().skip(usize::from(chain.len() > 1));
            for (run, _) in own.flatten() {
                // Models share some.
                if !runs.contains(&run) {
                    runs.push(run);
                }
            }
        }
        Ok(runs)
    }
}
