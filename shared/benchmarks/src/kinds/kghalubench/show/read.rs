//! Reads what judges said of the answers of a benchmark of this kind. A benchmark that goes on is read as far as it is; answers
//! without a verdict are not scored, and a remark says how many they are and why.

use std::collections::BTreeMap;

use domain::DialogueKey;

use super::found::{JudgedQuestion, ModelFound, PipelineNumbers, Replies, WordingsUsed};
use crate::judging::{Judgements, Subject};
use crate::kinds::kghalubench::draw::exercise;
use crate::kinds::kghalubench::numbers::Fate;
use crate::kinds::kghalubench::{THRESHOLD, fact_seconds, fate};
use crate::reading::{BenchmarkFacts, BenchmarkReader, ModelReading};
use crate::showing::ShowingError;

/// The result of reading.
pub struct ReadPipeline {
    /// The verdicts of judges.
    pub found: PipelineNumbers,
    /// Whether its texts may be written only encrypted.
    pub protected: bool,
    /// Similarity from which on an answer is about the entity.
    pub threshold: f64,
}

/// Called for every scored answer while a benchmark is read, with the index of the model, the question, the answer and
/// the replies of judges.
pub type Look<'l> = dyn FnMut(usize, &JudgedQuestion, &Subject, &Judgements<'_>) + 'l;

/// Reads a benchmark.
///
/// # Errors
/// Its records cannot be read, or its tasks are none of this kind.
pub fn read(reader: &mut dyn BenchmarkReader, look: &mut Look<'_>) -> Result<ReadPipeline, ShowingError> {
    let facts = reader.facts().clone();
    let mut reading = Reading::new(&facts);
    for model in &facts.models {
        let model = reader.model(model)?;
        reading.add(reader, &model, look)?;
    }
    Ok(reading.finish())
}

/// What is known while models are read.
struct Reading<'f> {
    facts: &'f BenchmarkFacts,
    found: PipelineNumbers,
    /// Index of each assessment by the label of its task.
    assessments: BTreeMap<String, usize>,
    protected: bool,
    not_scored: BTreeMap<String, u64>,
}

impl<'f> Reading<'f> {
    fn new(facts: &'f BenchmarkFacts) -> Self {
        Self {
            facts,
            found: PipelineNumbers {
                pipeline: facts.name.clone(),
                wordings: WordingsUsed::of_judges(facts.judging, &facts.wordings),
                ..PipelineNumbers::default()
            },
            assessments: BTreeMap::new(),
            protected: false,
            not_scored: BTreeMap::new(),
        }
    }

    fn add(
        &mut self,
        reader: &dyn BenchmarkReader,
        model: &ModelReading,
        look: &mut Look<'_>,
    ) -> Result<(), ShowingError> {
        self.protected |= model.protected;
        if model.dialogues.is_empty() {
            *self
                .not_scored
                .entry(format!("answers of {} that are not complete", model.model))
                .or_default() += 1;
        }
        let place = self.found.models.len();
        let mut answers: BTreeMap<DialogueKey, JudgedQuestion> = BTreeMap::new();
        for (key, failure) in &model.dialogues {
            answers.insert(key.clone(), self.place_of(reader, key)?);
            if let Some(cause) = failure {
                *self.not_scored.entry(format!("ask ({cause})")).or_default() += 1;
            }
        }
        let not_scored = &mut self.not_scored;
        model.judgements(self.facts, |subject, judgements| {
            let Some(answer) = answers.get_mut(&subject.key) else { return };
            let Some(judgements) = judgements else {
                *not_scored.entry("waiting for verdicts".to_owned()).or_default() += 1;
                return;
            };
            match fate(subject, &judgements) {
                Ok((fate, similarity)) => {
                    let fact_seconds = fact_seconds(subject, &judgements, &fate);
                    *answer = JudgedQuestion { fate, similarity, fact_seconds, ..*answer };
                    look(place, answer, subject, &judgements);
                }
                Err(why) => {
                    *not_scored.entry(format!("{} ({})", why.stage, why.cause)).or_default() += 1;
                }
            }
        })?;
        let judges = &self.facts.judges;
        let stages = self.facts.judging.stages.iter().zip(&model.stages).map(|(stage, runs)| Replies {
            stage: stage.name.to_owned(),
            judge: judges.get(stage.judge).map(|spec| spec.label.to_string()).unwrap_or_default(),
            number: runs.replies.0,
            seconds: runs.replies.1,
            shared: stage.is_shared(),
        });
        self.found.models.push(ModelFound {
            model: model.model.to_string(),
            answers: model.dialogues.iter().filter_map(|(key, _)| answers.get(key).copied()).collect(),
            stages: stages.collect(),
        });
        Ok(())
    }

    /// Which question a dialogue is about.
    fn place_of(
        &mut self,
        reader: &dyn BenchmarkReader,
        key: &DialogueKey,
    ) -> Result<JudgedQuestion, ShowingError> {
        let label = key.task.as_str();
        let assessment = match self.assessments.get(label) {
            Some(known) => *known,
            None => {
                let task = reader.task(&key.task).ok_or_else(|| {
                    ShowingError::Unusable(format!("the pack of {} has no task {label}", self.facts.name))
                })?;
                let assessment = exercise::assessment_of(task).map_err(|error| {
                    ShowingError::Unusable(format!("task {label} is no assessment of KGHaluBench: {error}"))
                })?;
                self.found.wordings.add_questions(&task.wording);
                self.found.assessments.push(assessment);
                self.assessments.insert(label.to_owned(), self.found.assessments.len() - 1);
                self.found.assessments.len() - 1
            }
        };
        let questions = self.found.assessments[assessment].questions.len().max(1);
        let iteration = key.iteration as usize;
        let repetition = u32::try_from(iteration / questions).unwrap_or(u32::MAX);
        let (question, fate) = (iteration % questions, Fate::NotScored);
        Ok(JudgedQuestion { assessment, question, repetition, fate, similarity: None, fact_seconds: None })
    }

    fn finish(mut self) -> ReadPipeline {
        if !self.facts.is_finished {
            let name = &self.facts.name;
            self.found
                .remarks
                .push(format!("Pipeline {name} is not finished: numbers are of what is judged so far."));
        }
        if !self.not_scored.is_empty() {
            let told: Vec<String> =
                self.not_scored.iter().map(|(why, number)| format!("{number} {why}")).collect();
            self.found.remarks.push(format!("In no number: {}.", told.join(", ")));
        }
        let threshold = self.facts.settings.get(THRESHOLD.name).copied();
        ReadPipeline {
            found: self.found,
            protected: self.protected,
            threshold: threshold.unwrap_or(THRESHOLD.default),
        }
    }
}
