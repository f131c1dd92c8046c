//! Reads the results of a pipeline's runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use benchmarks::{ModelReading, Ruling, Stage, StageRecords, Subject, names};
use domain::{CaseUid, DialogueTime, FailureCause, ModelLabel, ModelSpec, Outcome, Record, RunId};
use results::log::PlaceReader;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::documents::JudgedBenchmark;
use crate::benchmarks::progress::{StageRunStates, is_finished};
use crate::errors::{Result, internal};
use crate::records::dialogues::DialogueTable;
use crate::records::run::Run;

/// Maximum number of runs of a stage for one model. More is an error, not a history of retries.
const RUNS_MAX: u32 = 10_000;

/// What the records about a model say.
pub(crate) struct Gathered {
    pub reading: ModelReading,
    /// Runs of which dialogues have no record: those of a finished one were lost since.
    pub lacking: Vec<RunId>,
}

impl Benchmarks {
    /// The runs of each stage for a model, the asking one first. Runs of a stage are numbered without gaps.
    pub(crate) async fn find_stages(
        &self,
        chain: &[JudgedBenchmark],
        model: &ModelSpec,
    ) -> Result<Vec<StageRunStates>> {
        let (pipeline, asking) = (&chain[0], &chain[chain.len() - 1]);
        let mut found = vec![self.find_stage(asking, names::ASK, &model.label).await?];
        for stage in pipeline.judging.stages {
            found.push(self.find_stage(pipeline, stage.name, &about(stage, &model.label)).await?);
        }
        Ok(found)
    }

    /// The runs of a stage for a model, or for all where its label is that of [all](names::SHARED).
    pub(crate) async fn find_stage(
        &self,
        pipeline: &JudgedBenchmark,
        stage: &str,
        model: &ModelLabel,
    ) -> Result<StageRunStates> {
        let mut found = Vec::new();
        for number in 1..=RUNS_MAX {
            let run = pipeline.run_name(stage, model, number).run();
            let state = self.loaded.state(&run).await?;
            if state.is_none() && self.store.manifest(&run).await?.is_none() {
                break;
            }
            found.push((run, state));
        }
        Ok(found)
    }

    /// Reads the records about a model whose own dialogues all have one.
    pub(crate) async fn gather(
        &self,
        chain: &[JudgedBenchmark],
        model: &ModelSpec,
        runs: &[StageRunStates],
    ) -> Result<Gathered> {
        let (ask, judging) = runs.split_first().ok_or_else(|| internal("a pipeline without stages"))?;
        let mut gathered = ModelReading { model: model.label.clone(), ..ModelReading::default() };
        let mut lacking = Vec::new();
        for (run, _) in ask {
            let run = self.loaded.known(run).await?;
            gathered.protected |= run.manifest.protected;
            let pack = self.packs.of_run(&run.manifest).await?;
            let cases: Vec<_> = run.plan.tasks.iter().map(|task| &pack.tasks()[task.index].cases).collect();
            let mut found: BTreeMap<usize, Record> = BTreeMap::new();
            for record in self.winners(&run, &mut lacking).await? {
                if let Some(slot) = run.layout.slot_of(&record.key) {
                    found.insert(slot, record);
                }
            }
            for slot in 0..run.layout.slots() {
                let (_, task, iteration) = run.layout.place(slot);
                let case = &cases[task][iteration as usize % cases[task].len().max(1)];
                let record = found.remove(&slot);
                let failure = match &record {
                    Some(record) => record.outcome.failure(),
                    None => Some(FailureCause::Aborted),
                };
                gathered.dialogues.push((run.layout.key(slot), failure));
                if let Some(record) = record.filter(|_| failure.is_none()) {
                    gathered.subjects.extend(subject(record, &case.data));
                }
            }
        }
        for (stage, found) in chain[0].judging.stages.iter().zip(judging) {
            let of_stage = self.stage_runs(chain, stage, &model.label, found, &mut lacking).await?;
            gathered.stages.push(of_stage);
        }
        Ok(Gathered { reading: gathered, lacking })
    }

    /// What the runs of a stage hold and what was said in them, those of pipelines whose verdicts are taken over included. Notes
    /// those of which dialogues have no record.
    pub(crate) async fn stage_runs(
        &self,
        chain: &[JudgedBenchmark],
        stage: &Stage,
        model: &ModelLabel,
        found: &StageRunStates,
        lacking: &mut Vec<RunId>,
    ) -> Result<StageRecords> {
        let mut of_stage = StageRecords {
            runs: u32::try_from(found.len()).map_err(internal)?,
            finished: found.iter().all(|(_, state)| is_finished(state.as_ref())),
            ..StageRecords::default()
        };
        let mut number = 0;
        // What was asked for another pipeline came first.
        for base in chain[1..].iter().rev() {
            for (run, _) in self.find_stage(base, stage.name, &about(stage, model)).await? {
                number += 1;
                self.read_rulings(&run, number, &mut of_stage, lacking).await?;
            }
        }
        for (run, _) in found {
            number += 1;
            self.read_rulings(run, number, &mut of_stage, lacking).await?;
        }
        Ok(of_stage)
    }

    async fn read_rulings(
        &self,
        run: &RunId,
        number: u32,
        stage: &mut StageRecords,
        lacking: &mut Vec<RunId>,
    ) -> Result<()> {
        let run = self.loaded.known(run).await?;
        let Some(task) = run.tasks.first() else { return Ok(()) };
        let uid = |iteration: usize| task.cases.get(iteration).map(|uid| CaseUid::read(uid));
        stage.held.extend(task.cases.iter().map(|uid| CaseUid::read(uid)));
        for record in self.winners(&run, lacking).await? {
            let Some(uid) = uid(record.key.iteration as usize) else { continue };
            let answered = record.rounds.iter().map(|round| round.answered_at);
            let time = DialogueTime::of(record.started_at, answered, record.ended_at);
            stage.replies = (stage.replies.0 + 1, stage.replies.1 + time.dialogue_s);
            let ruling = match record.outcome {
                Outcome::Scored { scores, infos } => {
                    Ruling::Scored { scores, infos, seconds: time.dialogue_s }
                }
                Outcome::Unscored { cause, .. } | Outcome::Failed { cause, .. } => Ruling::Not(cause),
            };
            stage.verdicts.add(number, uid, ruling);
        }
        Ok(())
    }

    async fn winners(&self, run: &Arc<Run>, lacking: &mut Vec<RunId>) -> Result<Vec<Record>> {
        let folder = self.store.sink.run_dir(run.id())?.log();
        let (id, slots, run) = (run.id().clone(), run.layout.slots(), Arc::clone(run));
        let read = service_kit::aside::run(move || winners_of(&run, &folder));
        let winners = read.await.map_err(internal)??;
        if winners.len() < slots {
            lacking.push(id);
        }
        Ok(winners)
    }
}

/// The records that count, in the order of the plan. Blocks.
fn winners_of(run: &Run, log: &Path) -> Result<Vec<Record>> {
    let mut reader = PlaceReader::new(log, run.cipher.as_ref());
    let locations = run.table(DialogueTable::locations).into_iter().flatten();
    locations.map(|location| run.read(&mut reader, location).map(|(record, _)| record)).collect()
}

/// Whom the runs of a stage are about: a model, or all of them.
pub(crate) fn about(stage: &Stage, model: &ModelLabel) -> ModelLabel {
    if stage.is_shared() { ModelLabel::new(names::SHARED) } else { model.clone() }
}

/// An answer, with what it answers.
fn subject(record: Record, case: &serde_json::Map<String, serde_json::Value>) -> Option<Subject> {
    let Outcome::Scored { scores, .. } = record.outcome else { return None };
    let question = record.rounds.first()?.prompt.text.clone();
    let answer = record.rounds.into_iter().next_back()?.answer.text;
    Some(Subject { key: record.key, question, answer, case: case.clone(), scores })
}
