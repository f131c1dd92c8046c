//! Creates the missing runs of a pipeline, and keeps existing ones going.

use std::collections::BTreeMap;
use std::sync::Arc;

use benchmarks::{Asked, ModelReport, NewRun, RunName, Stage, StageRecords, names};
use domain::control::{BenchmarkCommand, RunPhase};
use domain::{About, ModelLabel, ModelSpec, RunId};
use packs::{Group, Header, Pack, Parts, published_password, seal_quickly};
use results::RunManifest;
use serde_json::{Map, Value};

use crate::benchmarks::Benchmarks;
use crate::benchmarks::attended::BenchmarkAsks;
use crate::benchmarks::documents::{JudgedBenchmark, JudgedState};
use crate::benchmarks::progress::{ModelProgress, StageRunStates, is_finished};
use crate::benchmarks::stages::Gathered;
use crate::benchmarks::summary::ModelSummary;
use crate::benchmarks::verbs::{Tell, command_of};
use crate::errors::{Result, internal, not_found};
use crate::plan::configuration::{Configuration, TaskChoice};
use crate::plan::planned::Planned;
use crate::plan::{Plan, PlannedTask};
use crate::runs::life::GoesOn;

/// The revision under which the models of benchmarks that are over are remembered, whatever theirs is.
const ANY_REVISION: u32 = 0;

/// The state of a model according to the records.
pub(crate) struct ModelRead {
    pub state: ModelProgress,
    /// The runs that are missing.
    pub new_runs: Vec<NewRun>,
    /// Finished runs whose logs have lost records since.
    pub lost: Vec<RunId>,
    /// Whether texts may leave only encrypted.
    pub protected: bool,
}

impl Benchmarks {
    /// Tends every pipeline once. A problem of one does not delay the others.
    pub(crate) async fn tend_all(&self) -> Result<()> {
        if self.store.is_shared() {
            for name in self.store.pipelines().await? {
                let goes_on = |state: JudgedState| {
                    state.fleet && (!state.phase.is_over() || state.telling || state.removed)
                };
                // One whose state cannot be read may go on: looking after it says what is wrong.
                if self.judged_state(&name).await.map_or(true, goes_on) {
                    self.attended.add(&name);
                } else if !self.named.has_read(&name, ANY_REVISION) {
                    match self.find_judged(&name).await {
                        Ok(over) => {
                            self.named.add(&name, ANY_REVISION, over.iter().flat_map(JudgedBenchmark::asks));
                        }
                        Err(error) if error.code.is_transient() => {
                            tracing::debug!(pipeline = %name, %error, "its models are read later");
                        }
                        // One that cannot be read names nobody.
                        Err(_) => self.named.add(&name, ANY_REVISION, []),
                    }
                }
            }
        }
        if self.store.is_shared() {
            // The folder is searched rarely; the runs of a benchmark that another coordinator began are found at once.
            for run in self.loaded.live() {
                if let Some(RunName { pipeline, .. }) = RunName::read(run.id()) {
                    self.attended.add(&RunId::new(pipeline));
                }
            }
        }
        for name in self.attended.names() {
            let tended = self.tend_judged(&name).await;
            if let Err(error) = &tended {
                tracing::warn!(pipeline = %name, %error, "the pipeline cannot be tended now");
            }
            self.attended.set_trouble(&name, tended.err().map(|error| error.message));
        }
        Ok(())
    }

    /// Derives the missing runs of an active pipeline.
    pub(crate) async fn tend_judged(&self, name: &RunId) -> Result<()> {
        let _turn = self.attended.turn().await;
        // First its phase: a paused or cancelled pipeline derives nothing.
        let (mut revision, mut state) = self.revised_judged_state(name).await?;
        if state.telling && !state.removed {
            self.tell_runs(name, Tell::Missed).await?;
            (revision, state) = self.revised_judged_state(name).await?;
        }
        if state.removed && self.store.is_shared() {
            // Whoever began with it has perhaps died over that.
            return self.finish_removal(name).await;
        }
        if state.removed || state.phase.is_over() {
            self.attended.forget(name);
            return Box::pin(self.count_if_live(name)).await;
        }
        let Some(pipeline) = self.find_judged(name).await? else {
            self.attended.forget(name);
            return Box::pin(self.count_if_live(name)).await;
        };
        self.attended.expect(name, pipeline.begun);
        self.named.add(name, pipeline.manifest.revision, pipeline.asks());
        self.count_spent(&pipeline).await?;
        if state.phase != RunPhase::Active {
            self.note_asks(&pipeline, state.phase);
            return Ok(());
        }
        let chain = self.chain_of(&pipeline).await?;
        self.tend_shared(&chain).await?;
        let mut done = true;
        let (mut counts, mut summaries) = ([0; 3], Vec::new());
        for model in &pipeline.configuration.models {
            let known = self.tend_model(&chain, model).await?;
            done &= known.as_ref().is_some_and(ModelProgress::is_done);
            if let Some(known) = known {
                summaries.push(ModelSummary::of(&known));
                let ModelReport { planned, scored, .. } = known.report;
                counts = [counts[0] + planned, counts[1] + scored, counts[2] + (planned - scored)];
            }
        }
        self.note_asks(&pipeline, state.phase);
        if !done {
            return Ok(());
        }
        // One that was extended is not finished, even if who extended it has died.
        if !self.is_newest(&pipeline).await? {
            return Ok(());
        }
        // A command that arrived since this round began takes precedence.
        let state = JudgedState { phase: RunPhase::Finished, counts, summaries, ..state };
        if self.revise_judged_state(name, revision, &state).await? {
            // Its results can be read again, and what it has used.
            self.attended.forget(name);
            self.caps.forget(name);
            tracing::info!(pipeline = %name, "finished");
        }
        Ok(())
    }

    /// Notes whom a benchmark still asks, as far as its models were looked at.
    fn note_asks(&self, pipeline: &JudgedBenchmark, phase: RunPhase) {
        let answers =
            |model: &&ModelSpec| !self.attended.has_answered(&pipeline.name, &names::slug(&model.label));
        let asks = BenchmarkAsks {
            is_held: phase == RunPhase::Paused || self.caps.told(&pipeline.name).is_some(),
            judges: pipeline.configuration.judges.values().cloned().collect(),
            unanswered: pipeline.configuration.models.iter().filter(answers).cloned().collect(),
        };
        self.attended.note_asks(&pipeline.name, asks);
    }

    /// Creates the runs about cases that are missing: they need no answer.
    async fn tend_shared(&self, chain: &[JudgedBenchmark]) -> Result<()> {
        let pipeline = &chain[0];
        let revision = pipeline.manifest.revision;
        let judging = pipeline.judging;
        // What they ask follows from the manifest alone.
        if !judging.stages.iter().any(Stage::is_shared) || self.attended.has_shared(&pipeline.name, revision)
        {
            return Ok(());
        }
        let all = ModelLabel::new(names::SHARED);
        let mut stages = Vec::with_capacity(judging.stages.len());
        for stage in judging.stages {
            stages.push(if stage.is_shared() {
                let found = self.find_stage(pipeline, stage.name, &all).await?;
                // What these lack is looked for with each model.
                self.stage_runs(chain, stage, &all, &found, &mut Vec::new()).await?
            } else {
                StageRecords::default()
            });
        }
        let pack = self.packs.of_hash(&pipeline.manifest.pack_hash, &pipeline.configuration.pack).await?;
        let Planned { plan, .. } = Planned::new(pipeline.configuration.clone(), Arc::clone(&pack)).await?;
        let cases = asked_cases(&plan, &pack);
        let judges = pipeline.judges()?;
        for run in pipeline.derivation(&judges).shared_runs(&cases, &stages) {
            self.create_stage(pipeline, judges[run.stage], run, pack.header().protected).await?;
        }
        self.attended.note_shared(&pipeline.name, revision);
        Ok(())
    }

    /// Does what is to be done for one model, which waits for no other one. What is known of it then; `None` where its own
    /// dialogues are not done.
    async fn tend_model(
        &self,
        chain: &[JudgedBenchmark],
        model: &ModelSpec,
    ) -> Result<Option<ModelProgress>> {
        let pipeline = &chain[0];
        let slug = names::slug(&model.label);
        let runs = self.find_stages(chain, model).await?;
        let answered = !runs[0].is_empty() && runs[0].iter().all(|(_, state)| is_finished(state.as_ref()));
        self.attended.note_answered(&pipeline.name, &slug, answered);
        if runs[0].is_empty() && chain.len() == 1 {
            self.create_ask(pipeline, model).await?;
            return Ok(None);
        }
        if chain.len() == 1 && self.grow_ask(pipeline, model).await? {
            self.attended.note_answered(&pipeline.name, &slug, false);
            return Ok(None); // Its states are other ones now.
        }
        for (run, state) in runs.iter().skip(usize::from(chain.len() > 1)).flatten() {
            // Created by somebody who died before it was begun; or, within one process, by one of before.
            let is_attended = || self.loaded.get(run).is_some_and(|run| run.is_attended());
            let begun = state.is_some() && (self.store.is_shared() || is_attended());
            if !begun && !is_finished(state.as_ref()) {
                let run = self.loaded.known(run).await?;
                self.runs.begin(&run, GoesOn::Named).await?;
            }
        }
        if !answered {
            return Ok(None);
        }
        if let Some(known) = self.attended.known(&pipeline.name, pipeline.begun, &slug)
            && known.runs == runs
        {
            return Ok(Some(known));
        }
        let judges = pipeline.judges()?;
        let ModelRead { state, new_runs, lost, protected } = self.read_model(chain, model, runs).await?;
        if !lost.is_empty() {
            for run in lost {
                tracing::warn!(%run, "a finished run lacks records; they are asked again");
                self.runs.command(&run, BenchmarkCommand::Resume).await?;
            }
            return Ok(None); // What is derived depends on them.
        }
        if !new_runs.is_empty() {
            for run in new_runs {
                self.create_stage(pipeline, judges[run.stage], run, protected).await?;
            }
            return Ok(None); // Checked again in the next round.
        }
        self.attended.learn(&pipeline.name, slug, state.clone());
        Ok(Some(state))
    }

    /// The state of a model whose own dialogues all have a record, and its missing runs. Writes nothing.
    pub(crate) async fn read_model(
        &self,
        chain: &[JudgedBenchmark],
        model: &ModelSpec,
        runs: Vec<StageRunStates>,
    ) -> Result<ModelRead> {
        let pipeline = &chain[0];
        let Gathered { reading: gathered, mut lacking } = self.gather(chain, model, &runs).await?;
        let is_over = |run: &RunId| {
            runs.iter().flatten().any(|(known, state)| known == run && is_finished(state.as_ref()))
        };
        lacking.retain(is_over);
        let judges = pipeline.judges()?;
        let derivation = pipeline.derivation(&judges);
        let asked = Asked { model: &model.label, subjects: &gathered.subjects, stages: &gathered.stages };
        let new_runs = derivation.new_runs(&asked);
        let standings = derivation.standings(&asked);
        let judged = gathered.judged_by(&derivation);
        let report = ModelReport::of(model.label.clone(), &judged, pipeline.judging.metrics);
        let state = ModelProgress { runs, standings, report, judged };
        Ok(ModelRead { state, new_runs, lost: lacking, protected: gathered.protected })
    }

    /// The run of a judging stage: first its pack, under its hash, then the run, which only one coordinator can create.
    async fn create_stage(
        &self,
        pipeline: &JudgedBenchmark,
        judge: &ModelSpec,
        run: NewRun,
        protected: bool,
    ) -> Result<()> {
        let NewRun { name, task, stage: run_stage } = run;
        let questions = u32::try_from(task.cases.len()).map_err(internal)?;
        let about = About {
            pipeline: pipeline.name.to_string(),
            stage: name.stage.clone(),
            model: match pipeline.judging.stages[run_stage].is_shared() {
                true => ModelLabel::new(names::SHARED),
                false => pipeline
                    .configuration
                    .models
                    .iter()
                    .find(|model| names::slug(&model.label) == name.model)
                    .map(|model| model.label.clone())
                    .ok_or_else(|| internal(format!("run {name} is about no model of its pipeline")))?,
            },
            number: name.number,
        };
        let configuration = Configuration {
            name: format!("{}: {} of {}", pipeline.configuration.name, about.stage, about.model),
            pack: name.to_string(),
            iterations: Some(questions),
            tasks: vec![TaskChoice::Label(task.label.to_string())],
            models: vec![ModelSpec { iterations: None, task_iterations: BTreeMap::new(), ..judge.clone() }],
            task_iterations: BTreeMap::new(),
            ..pipeline.configuration.unjudged()
        };
        let of_pack = (name.clone(), about.clone());
        let made = service_kit::aside::run(move || make_pack(&of_pack.0, &of_pack.1, &task, protected));
        let (pack, sealed) = made.await.map_err(internal)??;
        self.health.note_sink(
            self.store.sink.put_pack(pack.hash().as_str(), bytes::Bytes::from_owner(sealed)).await,
        )?;
        let planned = Planned::new(configuration, pack).await?;
        let manifest = RunManifest { run: name.run(), about: Some(about), ..planned.manifest()? };
        tracing::info!(run = %manifest.run, questions, "derived");
        self.create_part(pipeline, manifest).await
    }

    /// Creates a run of a pipeline. Whoever removes, cancels or pauses the pipeline marks it and then does so with the runs that
    /// there are; to one that comes after that it is done here.
    pub(crate) async fn create_part(&self, pipeline: &JudgedBenchmark, manifest: RunManifest) -> Result<()> {
        let run = manifest.run.clone();
        let created = self.runs.create(manifest).await;
        if self.is_gone(pipeline).await? {
            self.remove_part(&run).await?;
            return Err(not_found(format!("pipeline {} was removed", pipeline.name)));
        }
        created?;
        let phase = self.judged_state(&pipeline.name).await?.phase;
        if matches!(phase, RunPhase::Paused | RunPhase::Cancelled) {
            self.runs.command(&run, command_of(phase)).await?;
        }
        Ok(())
    }
}

/// The data of the cases that models under test are asked, each once.
fn asked_cases(plan: &Plan, pack: &Pack) -> Vec<Map<String, Value>> {
    let of_task = |(number, task): (usize, &PlannedTask)| {
        let asked = plan.models.iter().map(|model| model.iterations_of(number) as usize).max().unwrap_or(0);
        pack.tasks()[task.index].cases.iter().take(asked).map(|case| case.data.clone())
    };
    plan.tasks.iter().enumerate().flat_map(of_task).collect()
}

/// A pack of one task. Equal questions give equal packs, whichever coordinator creates them.
fn make_pack(
    name: &RunName,
    about: &About,
    task: &tasks::TaskData,
    protected: bool,
) -> Result<(Arc<Pack>, Arc<[u8]>)> {
    let make = || -> std::result::Result<_, Box<dyn std::error::Error + Send + Sync>> {
        let mut parts = Parts::new(name.to_string());
        parts.insert_header(&Header {
            name: name.to_string(),
            version: "1".to_owned(),
            licence: "as the answers it holds".to_owned(),
            description: format!(
                "Questions to the judge of stage {} about answers of {}.",
                about.stage, about.model
            ),
            provenance: format!("Derived from the records of pipeline {}.", about.pipeline),
            canary: String::new(),
            protected,
            compat: tasks::Compat::default(),
            limits: tasks::EvaluationLimits::default(),
            groups: vec![Group { name: "judge".to_owned(), default: true, tasks: vec![task.label.clone()] }],
            graphs: Vec::new(),
        })?;
        parts.insert_task(task)?;
        let sealed = seal_quickly(&parts, &published_password())?;
        Ok((Arc::new(Pack::from_parts(parts)?), sealed.into()))
    };
    make().map_err(|error| internal(format!("the pack of run {name}: {error}")))
}
