//! Reads pipelines of KGHaluBench on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use coordinator::{ModelReading, PipelineReading};
use domain::DialogueKey;
use halu::metrics::Fate;
use halu::{Weights, exercise};
use report::hallucination::{Answer, Found, ModelFound, Replies, Study};
use stages::kinds::kghalubench;
use stages::{Judgements, Subject};

use crate::commands::fleet::explained;
use crate::exit_code::Exit;
use crate::run::judged;
use crate::run_name;

/// Which weights difficulties are computed with.
#[derive(Debug, clap::Args)]
pub struct WeightsFile {
    /// Weights of KGHaluBench's difficulties, as `kgfleet halu calibrate` writes them. Default: those that come with the
    /// program, learnt from simulated models.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
}

impl WeightsFile {
    /// The weights.
    ///
    /// # Errors
    /// The file cannot be read, or holds no weights.
    pub fn read(&self) -> anyhow::Result<Weights> {
        let Some(path) = &self.weights else { return Ok(Weights::simulated()?) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Weights::parse(&text).map_err(|error| Exit::usage(anyhow!("{}: {error}", path.display())))
    }

    /// The numbers of some pipelines.
    ///
    /// # Errors
    /// See [`WeightsFile::read`].
    pub fn studies(&self, found: &[Found]) -> anyhow::Result<Vec<Study>> {
        let weights = self.read()?;
        Ok(found.iter().map(|found| Study::of(found, &weights)).collect())
    }
}

/// A pipeline that was read.
pub struct Reading {
    /// What judges found.
    pub found: Found,
    /// Whether its texts may leave only encrypted.
    pub protected: bool,
    /// Similarity from which on an answer is about the entity.
    pub threshold: f64,
}

/// Who looks at every scored answer while a pipeline is read: index of the model, what was found, the answer, what
/// judges said.
pub type Look<'l> = dyn FnMut(usize, &Answer, &Subject, &Judgements<'_>) + 'l;

/// Reads a pipeline; `None` if there is none of this name. The name may be the beginning of one, or `latest`.
///
/// # Errors
/// Several begin like this; it cannot be read, or is of another kind.
pub fn read(name: &str, data_dir: &Path, look: &mut Look<'_>) -> anyhow::Result<Option<Reading>> {
    let name = run_name::of_folder(name, data_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let coordinator = judged::beside(data_dir)?;
        let reading = coordinator.read_pipeline(&name).await.map_err(explained)?;
        let Some(reading) = reading else { return Ok(None) };
        if reading.kind().name != kghalubench::KIND.name {
            return Err(Exit::usage(anyhow!(
                "pipeline {name} is of kind {}; only those of {} have tables and reports of their own. `kgfleet status` and \
                 the end of `kgfleet run` show the numbers of any kind",
                reading.kind().name,
                kghalubench::KIND.name
            )));
        }
        let mut read = Pipeline::new(&reading);
        for spec in &reading.benchmark().models {
            let model = coordinator.read_about(&reading, spec).await.map_err(explained)?;
            read.add(&reading, &model, look)?;
        }
        Ok(Some(read.finish(&reading)))
    })
}

/// The pipeline of this name.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn expect(name: &str, data_dir: &Path, look: &mut Look<'_>) -> anyhow::Result<Reading> {
    read(name, data_dir, look)?
        .ok_or_else(|| Exit::usage(anyhow!("there is no pipeline {name} in {}", data_dir.display())))
}

/// What is known while models are read.
struct Pipeline {
    found: Found,
    /// Index of each assessment by the label of its task.
    assessments: BTreeMap<String, usize>,
    protected: bool,
    not_scored: BTreeMap<String, u64>,
}

impl Pipeline {
    fn new(reading: &PipelineReading) -> Self {
        Self {
            found: Found { pipeline: reading.name().to_string(), ..Found::default() },
            assessments: BTreeMap::new(),
            protected: false,
            not_scored: BTreeMap::new(),
        }
    }

    fn add(
        &mut self,
        reading: &PipelineReading,
        model: &ModelReading,
        look: &mut Look<'_>,
    ) -> anyhow::Result<()> {
        self.protected |= model.protected;
        if model.dialogues.is_empty() {
            *self
                .not_scored
                .entry(format!("answers of {} that are not complete", model.model))
                .or_default() += 1;
        }
        let place = self.found.models.len();
        let mut answers: BTreeMap<DialogueKey, Answer> = BTreeMap::new();
        for (key, failure) in &model.dialogues {
            answers.insert(key.clone(), self.place_of(reading, key)?);
            if let Some(cause) = failure {
                *self.not_scored.entry(format!("ask ({cause})")).or_default() += 1;
            }
        }
        let not_scored = &mut self.not_scored;
        reading
            .judgements(model, |subject, judgements| {
                let Some(answer) = answers.get_mut(&subject.key) else { return };
                let Some(judgements) = judgements else {
                    *not_scored.entry("waiting for verdicts".to_owned()).or_default() += 1;
                    return;
                };
                match kghalubench::fate(subject, &judgements) {
                    Ok((fate, similarity)) => {
                        *answer = Answer { fate, similarity, ..*answer };
                        look(place, answer, subject, &judgements);
                    }
                    Err(why) => {
                        *not_scored.entry(format!("{} ({})", why.stage, why.cause)).or_default() += 1;
                    }
                }
            })
            .map_err(explained)?;
        let stages = reading.kind().stages.iter().zip(&model.stages).map(|(stage, runs)| Replies {
            stage: stage.name.to_owned(),
            judge: reading
                .benchmark()
                .judges
                .get(stage.judge)
                .map(|spec| spec.label.to_string())
                .unwrap_or_default(),
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
    fn place_of(&mut self, reading: &PipelineReading, key: &DialogueKey) -> anyhow::Result<Answer> {
        let label = key.task.as_str();
        let assessment = match self.assessments.get(label) {
            Some(known) => *known,
            None => {
                let task = reading.pack.tasks().iter().find(|task| task.label.as_str() == label);
                let task = task
                    .ok_or_else(|| anyhow!("the pack of pipeline {} has no task {label}", reading.name()))?;
                let assessment = exercise::assessment_of(task).map_err(|error| {
                    Exit::usage(anyhow!("task {label} is no assessment of KGHaluBench: {error}"))
                })?;
                self.found.assessments.push(assessment);
                self.assessments.insert(label.to_owned(), self.found.assessments.len() - 1);
                self.found.assessments.len() - 1
            }
        };
        let questions = self.found.assessments[assessment].questions.len().max(1);
        let iteration = key.iteration as usize;
        let repetition = u32::try_from(iteration / questions).unwrap_or(u32::MAX);
        let (question, fate) = (iteration % questions, Fate::NotScored);
        Ok(Answer { assessment, question, repetition, fate, similarity: None })
    }

    fn finish(mut self, reading: &PipelineReading) -> Reading {
        if !reading.is_finished {
            let name = reading.name();
            self.found
                .remarks
                .push(format!("Pipeline {name} is not finished: numbers are of what is judged so far."));
        }
        if !self.not_scored.is_empty() {
            let told: Vec<String> =
                self.not_scored.iter().map(|(why, number)| format!("{number} {why}")).collect();
            self.found.remarks.push(format!("In no number: {}.", told.join(", ")));
        }
        let settings = &reading.benchmark().settings;
        let threshold = settings.get(kghalubench::THRESHOLD.name).copied();
        Reading {
            found: self.found,
            protected: self.protected,
            threshold: threshold.unwrap_or(kghalubench::THRESHOLD.default),
        }
    }
}
