//! Which questions are open, and the run that asks them.
//!
//! Run n+1 of a stage for a model holds exactly the questions that today's answers and verdicts need and that the runs 1 to n
//! lack. Its name follows from what it is, and the sink refuses a second run of a name; so of two coordinators that derive at
//! once one creates it, and the other finds it there. Nothing is asked twice, because what was created is looked at before
//! anything is derived, and no run ever changes.

use std::collections::HashSet;
use std::sync::Arc;

use domain::{CaseUid, ModelLabel, ModelSpec};
use serde_json::{Map, Value};
use tasks::TaskData;

use crate::judging::{JudgeQuestion, Judgements, Judging, PromptTexts, Settings, StageInput, Subject};
use crate::names::{RunName, SHARED};
use crate::report::{JudgedDialogue, NotJudged};
use crate::verdicts::{Ruling, Verdicts};
use crate::wordings::JudgeWordings;

/// What the sink holds of one stage for one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageRecords {
    /// Number of its runs: the next one is this plus 1.
    pub runs: u32,
    /// The questions that they hold, and those that runs of other pipelines hold whose verdicts are taken over.
    pub held: HashSet<CaseUid>,
    /// What was said.
    pub verdicts: Verdicts,
    /// Number of replies among it, and how long the judge took for all of them, in seconds.
    pub replies: (u64, f64),
    /// Whether every dialogue of every run has a record.
    pub finished: bool,
}

/// What the sink holds of a pipeline for one model under test, whose own dialogues all have a record.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The model.
    pub model: &'a ModelLabel,
    /// Its answers that count.
    pub subjects: &'a [Subject],
    /// By stage, in the order of the kind.
    pub stages: &'a [StageRecords],
}

/// A pipeline, ready to be derived.
pub struct Derivation<'a> {
    /// Its name.
    pub pipeline: &'a str,
    pub judging: &'a Judging,
    /// The judge of each stage, in the order of the kind.
    pub judges: &'a [&'a ModelSpec],
    /// What its configuration chose.
    pub settings: &'a Settings,
    /// What its configuration words otherwise.
    pub wordings: &'a JudgeWordings,
}

/// A run to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    pub name: RunName,
    /// Index of the stage in the kind.
    pub stage: usize,
    /// Its one task, with a case for every question.
    pub task: TaskData,
}

/// How far one stage is for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageProgress {
    /// A stage before it is not done.
    Waiting,
    /// Questions have no run yet.
    Open,
    /// Its runs go on.
    Asking,
    /// Every question that is needed has a record.
    Done,
}

impl Derivation<'_> {
    /// The runs that are to be created now, one for each stage that is ready and lacks questions.
    pub fn new_runs(&self, asked: &Asked<'_>) -> Vec<NewRun> {
        let mut runs = Vec::new();
        self.walk(asked, |stage, open, _| {
            if !open.is_empty() {
                let number = asked.stages[stage].runs + 1;
                runs.push(self.run(asked.model, number, stage, open));
            }
        });
        runs
    }

    /// The runs about cases that are to be created now, which all models share. They need no answer.
    pub fn shared_runs(&self, cases: &[Map<String, Value>], stages: &[StageRecords]) -> Vec<NewRun> {
        let mut runs = Vec::new();
        for (stage, (spec, held)) in self.judging.stages.iter().zip(stages).enumerate() {
            let StageInput::Cases(questions) = spec.about else { continue };
            let mut seen = HashSet::new();
            let questions = cases.iter().flat_map(questions);
            let questions = questions.map(|texts| self.question(stage, texts));
            let open: Vec<JudgeQuestion> = questions
                .filter(|question| !held.held.contains(&question.uid) && seen.insert(question.uid.clone()))
                .collect();
            if !open.is_empty() {
                runs.push(self.run(&ModelLabel::new(SHARED), held.runs + 1, stage, open));
            }
        }
        runs
    }

    /// How far the stages are.
    pub fn standings(&self, asked: &Asked<'_>) -> Vec<StageProgress> {
        let mut standings = vec![StageProgress::Waiting; self.judging.stages.len()];
        self.walk(asked, |stage, open, done| {
            standings[stage] = match (open.is_empty(), done) {
                (false, _) => StageProgress::Open,
                (true, false) => StageProgress::Asking,
                (true, true) => StageProgress::Done,
            };
        });
        standings
    }

    /// Hands the open questions of each stage to `each`, up to the first stage that is not done: what is asked after it
    /// depends on its verdicts. A stage about cases is asked for all models at once, so nothing of it is open here; it
    /// holds up those that read it.
    fn walk(&self, asked: &Asked<'_>, mut each: impl FnMut(usize, Vec<JudgeQuestion>, bool)) {
        let mut judgements: Vec<Judgements<'_>> =
            vec![Judgements::under(self.settings); asked.subjects.len()];
        let mut unfinished: Vec<&str> = Vec::new();
        for (stage, (spec, held)) in self.judging.stages.iter().zip(asked.stages).enumerate() {
            if let StageInput::Answers { reads, .. } = spec.about
                && reads.iter().any(|read| unfinished.contains(read))
            {
                return;
            }
            let mut open = Vec::new();
            let mut seen = HashSet::new();
            let mut known = true;
            for (subject, judgements) in asked.subjects.iter().zip(&mut judgements) {
                let questions = spec.questions(subject, judgements);
                let mut rulings = Vec::with_capacity(questions.len());
                for texts in questions {
                    let question = self.question(stage, texts);
                    match held.verdicts.of(&question.uid) {
                        Some(ruling) => rulings.push(ruling),
                        None => known = false,
                    }
                    // Answers that are alike are one question.
                    let is_new = !held.held.contains(&question.uid) && seen.insert(question.uid.clone());
                    if is_new && !spec.is_shared() {
                        open.push(question);
                    }
                }
                judgements.push(spec.name, rulings);
            }
            let done = open.is_empty() && held.finished && known;
            if spec.is_shared() {
                if !done {
                    unfinished.push(spec.name);
                }
                each(stage, open, done);
                continue;
            }
            each(stage, open, done);
            if !done {
                return;
            }
        }
    }

    fn question(&self, stage: usize, texts: PromptTexts) -> JudgeQuestion {
        JudgeQuestion::new(&self.judging.stages[stage], self.wordings, self.judges[stage], texts)
    }

    fn run(&self, model: &ModelLabel, number: u32, stage: usize, open: Vec<JudgeQuestion>) -> NewRun {
        let spec = &self.judging.stages[stage];
        let cases = open.into_iter().map(|question| Arc::new(question.into_case())).collect();
        NewRun {
            name: RunName::new(self.pipeline, spec.name, model, number),
            stage,
            task: TaskData { cases, ..spec.task_in(self.wordings) },
        }
    }

    /// What became of every answer, by the verdicts there are; an answer that waits for a verdict is not judged yet.
    pub fn judged(&self, asked: &Asked<'_>) -> Vec<JudgedDialogue> {
        asked.subjects.iter().map(|subject| self.judge(subject, asked.stages)).collect()
    }

    fn judge(&self, subject: &Subject, stages: &[StageRecords]) -> JudgedDialogue {
        match self.judgements(subject, stages) {
            Ok(judgements) => {
                let outcome: Result<_, NotJudged> = (self.judging.conclude)(subject, &judgements);
                JudgedDialogue::of(subject.key.clone(), outcome)
            }
            Err(stage) => JudgedDialogue::waiting(subject.key.clone(), stage),
        }
    }

    /// All that judges said about an answer.
    ///
    /// # Errors
    /// A stage, by its name, has not said all of it yet.
    pub fn judgements<'s>(
        &'s self,
        subject: &Subject,
        stages: &'s [StageRecords],
    ) -> Result<Judgements<'s>, &'static str> {
        let mut judgements = Judgements::under(self.settings);
        for (stage, (spec, held)) in self.judging.stages.iter().zip(stages).enumerate() {
            let mut rulings: Vec<&Ruling> = Vec::new();
            for texts in spec.questions(subject, &judgements) {
                let question = self.question(stage, texts);
                match held.verdicts.of(&question.uid) {
                    Some(ruling) => rulings.push(ruling),
                    None => return Err(spec.name),
                }
            }
            judgements.push(spec.name, rulings);
        }
        Ok(judgements)
    }
}

#[cfg(test)]
mod tests;
