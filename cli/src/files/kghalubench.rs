//! Reads judged benchmarks of KGHaluBench, of this machine or of a fleet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use benchmarks::kinds::kghalubench;
use benchmarks::kinds::kghalubench::draw::exercise;
use benchmarks::kinds::kghalubench::numbers::Weights;
use benchmarks::kinds::kghalubench::numbers::metrics::Fate;
use benchmarks::kinds::kghalubench::show::{
    JudgedQuestion, ModelFacts, ModelFound, PipelineNumbers, Replies, Study,
};
use benchmarks::{Judgements, Subject};
use coordinator::{BenchmarkCopy, BenchmarkReading, ModelReading};
use domain::{DialogueKey, RunId};

use crate::files::tables::parsed;
use crate::kit::exit_code::{explained, usage};
use crate::place::data_dir::DataDir;
use crate::place::fetch::{Fetched, fetch_if};
use crate::place::remote::{MaybeRemote, Remote};
use crate::place::{local, names};

/// What numbers of KGHaluBench are made of besides records.
#[derive(Debug, clap::Args)]
pub struct StudyFiles {
    /// Weights of KGHaluBench's difficulties, as `kgfleet halu calibrate` writes them. Default: those that come with the
    /// program, learnt from simulated models.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// What is known of models, for KGHaluBench's tables (TOML): `[models."LABEL"]` with `cut_off = "2023-12"`, until when
    /// their training data go, and `size = 8.0`, billions of parameters.
    #[arg(long, value_name = "FILE")]
    about: Option<PathBuf>,
}

impl StudyFiles {
    /// The numbers of some judged benchmarks.
    ///
    /// # Errors
    /// A file cannot be read, or is invalid.
    pub fn studies(&self, found: &[PipelineNumbers]) -> anyhow::Result<Vec<Study>> {
        let weights = match &self.weights {
            None => Weights::simulated()?,
            Some(path) => parsed(path, Weights::parse)?,
        };
        let about = self.about.as_deref().map(|path| parsed(path, ModelFacts::parse)).transpose()?;
        let about = about.unwrap_or_default();
        Ok(found.iter().map(|found| Study::of(found, &weights, &about)).collect())
    }
}

/// Where a pipeline is: on this machine or in a fleet.
#[derive(Debug, clap::Args)]
pub struct Whose {
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

impl Whose {
    /// The judged benchmark of this name. One of a fleet is fetched.
    ///
    /// # Errors
    /// There is none; the coordinator does not answer.
    pub fn place(&self, name: &str) -> anyhow::Result<PipelinePlace> {
        let Some(remote) = self.remote.named() else {
            return Ok(PipelinePlace::Here { name: name.to_owned(), data_dir: self.data.path().to_owned() });
        };
        fetched(&remote, name)?.ok_or_else(|| usage!("{name} is no pipeline at {}", remote.address()))
    }
}

/// A judged benchmark on this machine, which can be read several times.
pub enum PipelinePlace {
    Here { name: String, data_dir: PathBuf },
    Fetched(Fetched),
}

impl PipelinePlace {
    /// The place of the same benchmark by its whole name: `latest` may mean another one by now.
    pub fn named(self, reading: &ReadPipeline) -> Self {
        match self {
            Self::Here { data_dir, .. } => Self::Here { name: reading.found.pipeline.clone(), data_dir },
            fetched @ Self::Fetched(_) => fetched,
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn read(&self, look: &mut Look<'_>) -> anyhow::Result<ReadPipeline> {
        match self {
            Self::Here { name, data_dir } => expect(name, data_dir, look),
            Self::Fetched(fetched) => expect(fetched.name.as_str(), fetched.data_dir(), look),
        }
    }
}

/// A pipeline of a fleet; `None` if the name is that of a run.
///
/// # Errors
/// It cannot be fetched or read, or is of another kind.
pub fn read_of_fleet(remote: &Remote, name: &str) -> anyhow::Result<Option<ReadPipeline>> {
    fetched(remote, name)?.map(|place| place.read(&mut |_, _, _, _| ())).transpose()
}

fn fetched(remote: &Remote, name: &str) -> anyhow::Result<Option<PipelinePlace>> {
    let wanted = |name: &RunId, documents: Option<&BenchmarkCopy>| match documents {
        Some(copy) => expect_kind(name, copy.kind()).map(|()| true),
        None => Ok(false),
    };
    let fetched = fetch_if(remote, name, wanted)?;
    // Whoever may not read the answers cannot read what verdicts are about.
    fetched.iter().try_for_each(Fetched::refuse_redacted)?;
    Ok(fetched.map(PipelinePlace::Fetched))
}

fn expect_kind(name: &RunId, kind: Option<&str>) -> anyhow::Result<()> {
    let wanted = kghalubench::KIND.name;
    match kind {
        Some(kind) if kind == wanted => Ok(()),
        kind => Err(usage!(
            "pipeline {name} is of kind {}; only those of {wanted} have tables and reports of their own. `kgfleet status` and \
             the end of `kgfleet run` show the numbers of any kind",
            kind.unwrap_or("unknown")
        )),
    }
}

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

/// Reads a pipeline; `None` if there is none of this name. The name may be the beginning of one, or `latest`.
///
/// # Errors
/// Several begin like this; it cannot be read, or is of another kind.
pub fn read(name: &str, data_dir: &Path, look: &mut Look<'_>) -> anyhow::Result<Option<ReadPipeline>> {
    let name = names::of_folder(name, data_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let access = local::beside(data_dir)?.unnamed();
        let reading = access.read_judged(&name).await.map_err(explained)?;
        let Some(reading) = reading else { return Ok(None) };
        expect_kind(&name, reading.configuration().pipeline.as_deref())?;
        let mut read = Pipeline::new(&reading);
        for spec in &reading.configuration().models {
            let model = access.read_about(&reading, spec).await.map_err(explained)?;
            read.add(&reading, &model, look)?;
        }
        Ok(Some(read.finish(&reading)))
    })
}

/// The pipeline of this name.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn expect(name: &str, data_dir: &Path, look: &mut Look<'_>) -> anyhow::Result<ReadPipeline> {
    read(name, data_dir, look)?.ok_or_else(|| usage!("there is no pipeline {name} in {}", data_dir.display()))
}

/// What is known while models are read.
struct Pipeline {
    found: PipelineNumbers,
    /// Index of each assessment by the label of its task.
    assessments: BTreeMap<String, usize>,
    protected: bool,
    not_scored: BTreeMap<String, u64>,
}

impl Pipeline {
    fn new(reading: &BenchmarkReading) -> Self {
        Self {
            found: PipelineNumbers { pipeline: reading.name().to_string(), ..PipelineNumbers::default() },
            assessments: BTreeMap::new(),
            protected: false,
            not_scored: BTreeMap::new(),
        }
    }

    fn add(
        &mut self,
        reading: &BenchmarkReading,
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
        let mut answers: BTreeMap<DialogueKey, JudgedQuestion> = BTreeMap::new();
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
                        *answer = JudgedQuestion { fate, similarity, ..*answer };
                        look(place, answer, subject, &judgements);
                    }
                    Err(why) => {
                        *not_scored.entry(format!("{} ({})", why.stage, why.cause)).or_default() += 1;
                    }
                }
            })
            .map_err(explained)?;
        let stages = reading.judging().stages.iter().zip(&model.stages).map(|(stage, runs)| Replies {
            stage: stage.name.to_owned(),
            judge: reading
                .configuration()
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
    fn place_of(&mut self, reading: &BenchmarkReading, key: &DialogueKey) -> anyhow::Result<JudgedQuestion> {
        let label = key.task.as_str();
        let assessment = match self.assessments.get(label) {
            Some(known) => *known,
            None => {
                let task = reading.pack.tasks().iter().find(|task| task.label.as_str() == label);
                let task = task
                    .ok_or_else(|| anyhow!("the pack of pipeline {} has no task {label}", reading.name()))?;
                let assessment = exercise::assessment_of(task)
                    .map_err(|error| usage!("task {label} is no assessment of KGHaluBench: {error}"))?;
                self.found.assessments.push(assessment);
                self.assessments.insert(label.to_owned(), self.found.assessments.len() - 1);
                self.found.assessments.len() - 1
            }
        };
        let questions = self.found.assessments[assessment].questions.len().max(1);
        let iteration = key.iteration as usize;
        let repetition = u32::try_from(iteration / questions).unwrap_or(u32::MAX);
        let (question, fate) = (iteration % questions, Fate::NotScored);
        Ok(JudgedQuestion { assessment, question, repetition, fate, similarity: None })
    }

    fn finish(mut self, reading: &BenchmarkReading) -> ReadPipeline {
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
        let settings = &reading.configuration().settings;
        let threshold = settings.get(kghalubench::THRESHOLD.name).copied();
        ReadPipeline {
            found: self.found,
            protected: self.protected,
            threshold: threshold.unwrap_or(kghalubench::THRESHOLD.default),
        }
    }
}
