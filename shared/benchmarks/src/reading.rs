//! What counts in a judged benchmark, for whoever makes numbers, tables and figures of it.

use std::collections::BTreeMap;

use domain::{DialogueKey, ErrorCode, FailureCause, ModelLabel, ModelSpec, ServiceError, TaskLabel};
use tasks::TaskData;

use crate::derive::{Asked, Derivation, StageRecords};
use crate::judging::{Judgements, Judging, Settings, Stage, Subject};
use crate::report::JudgedDialogue;
use crate::wordings::JudgeWordings;

/// A judged benchmark whose records are read one model at a time, so that memory does not grow with the number of models.
pub trait BenchmarkReader {
    fn facts(&self) -> &BenchmarkFacts;

    /// A task that the models under test are asked, with its cases; `None` if the pack has none of this label.
    fn task(&self, label: &TaskLabel) -> Option<&TaskData>;

    /// What the records say of a model now.
    ///
    /// # Errors
    /// They cannot be read.
    fn model(&mut self, model: &ModelLabel) -> Result<ModelReading, ServiceError>;
}

/// What is known of a judged benchmark before its records are read.
#[derive(Clone)]
pub struct BenchmarkFacts {
    pub name: String,
    /// The name of its kind.
    pub kind: String,
    pub judging: &'static Judging,
    /// Whether it is finished; otherwise its numbers are of what is there.
    pub is_finished: bool,
    /// The models under test, in the order of the configuration.
    pub models: Vec<ModelLabel>,
    /// By what they are called in the kind's stages.
    pub judges: BTreeMap<String, ModelSpec>,
    /// What the configuration chose.
    pub settings: Settings,
    /// What the configuration words otherwise.
    pub wordings: JudgeWordings,
}

impl BenchmarkFacts {
    /// The judge of each stage, in the order of the kind.
    ///
    /// # Errors
    /// The configuration names none for a stage.
    pub fn judges(&self) -> Result<Vec<&ModelSpec>, ServiceError> {
        let judge = |stage: &Stage| {
            self.judges.get(stage.judge).ok_or_else(|| {
                let message =
                    format!("benchmark {}: nobody is named for the judge `{}`", self.name, stage.judge);
                ServiceError::new(ErrorCode::Conflict, message)
            })
        };
        self.judging.stages.iter().map(judge).collect()
    }
}

/// What the records say of one model under test.
#[derive(Default)]
pub struct ModelReading {
    pub model: ModelLabel,
    /// Every planned dialogue, in the order of the plan, with the reason if it has no answer. None while the model is asked.
    pub dialogues: Vec<(DialogueKey, Option<FailureCause>)>,
    /// The answers, in the same order.
    pub subjects: Vec<Subject>,
    /// What judges said, by stage, in the order of the kind.
    pub stages: Vec<StageRecords>,
    /// Whether texts may leave only encrypted; derived runs inherit it.
    pub protected: bool,
}

impl ModelReading {
    /// Hands each answer to `each`, with what judges said; nothing in its place while a stage has still to say it.
    ///
    /// # Errors
    /// The configuration lacks a judge.
    pub fn judgements<'m>(
        &'m self,
        facts: &BenchmarkFacts,
        mut each: impl FnMut(&'m Subject, Option<Judgements<'_>>),
    ) -> Result<(), ServiceError> {
        let judges = facts.judges()?;
        let derivation = derivation(facts, &judges);
        for subject in &self.subjects {
            each(subject, derivation.judgements(subject, &self.stages).ok());
        }
        Ok(())
    }

    /// What became of every planned dialogue, in the order of the plan.
    ///
    /// # Errors
    /// The configuration lacks a judge.
    pub fn judged(&self, facts: &BenchmarkFacts) -> Result<Vec<JudgedDialogue>, ServiceError> {
        let judges = facts.judges()?;
        Ok(self.judged_by(&derivation(facts, &judges)))
    }

    /// What became of every planned dialogue, in the order of the plan.
    pub fn judged_by(&self, derivation: &Derivation<'_>) -> Vec<JudgedDialogue> {
        let asked = Asked { model: &self.model, subjects: &self.subjects, stages: &self.stages };
        let mut answered = derivation.judged(&asked).into_iter();
        let of = |(key, failure): &(DialogueKey, Option<FailureCause>)| match failure {
            Some(cause) => Some(JudgedDialogue::unanswered(key.clone(), *cause)),
            None => answered.next(),
        };
        self.dialogues.iter().filter_map(of).collect()
    }
}

fn derivation<'a>(facts: &'a BenchmarkFacts, judges: &'a [&'a ModelSpec]) -> Derivation<'a> {
    let BenchmarkFacts { name, judging, settings, wordings, .. } = facts;
    Derivation { pipeline: name, judging, judges, settings, wordings }
}
