//! The verdicts of judges on the answers of models, and the numbers computed from them with given weights: [`PipelineNumbers`]
//! is what was read of a benchmark, [`Study`] the numbers.

use std::collections::BTreeMap;

use domain::control::Better;
use domain::ranking::{Contender, ranked};

use super::about::{AboutModel, ModelFacts};
use crate::kinds::kghalubench::draw::frequency::Frequency;
use crate::kinds::kghalubench::draw::{Assessment, Date};
use crate::kinds::kghalubench::numbers::metrics::{AnsweredQuestion, Counts, Fate};
use crate::kinds::kghalubench::numbers::{Difficulty, ModelMetrics, Weights, rank};

/// The group of a type, in words.
pub(crate) fn frequency_words(frequency: Frequency) -> &'static str {
    match frequency {
        Frequency::VeryCommon => "very common",
        Frequency::Common => "common",
        Frequency::Uncommon => "uncommon",
    }
}

/// What the records of a judged benchmark contain.
#[derive(Clone, Debug, Default)]
pub struct PipelineNumbers {
    /// Its name.
    pub pipeline: String,
    /// The questions.
    pub assessments: Vec<Assessment>,
    /// The models under test, with their verdicts.
    pub models: Vec<ModelFound>,
    /// Notes for readers.
    pub remarks: Vec<String>,
}

/// The verdicts on one model.
#[derive(Clone, Debug, Default)]
pub struct ModelFound {
    /// Its name.
    pub model: String,
    /// The outcome of each planned question, in the order of the plan.
    pub answers: Vec<JudgedQuestion>,
    /// The replies of each stage.
    pub stages: Vec<Replies>,
}

/// A question with its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedQuestion {
    /// Index of the assessment.
    pub assessment: usize,
    /// Index of the question in it.
    pub question: usize,
    /// Which answer to the question it is, from 0.
    pub repetition: u32,
    /// The outcome.
    pub fate: Fate,
    /// Similarity of the answer and the entity's description, if it was asked for.
    pub similarity: Option<f64>,
}

/// The replies of one stage about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Replies {
    pub stage: String,
    /// The judge.
    pub judge: String,
    /// Number of replies.
    pub number: u64,
    /// Time of all replies together, in seconds.
    pub seconds: f64,
    /// Whether all models share these same replies.
    pub shared: bool,
}

/// The numbers of a judged benchmark under some weights.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name.
    pub pipeline: String,
    /// The models, in the order of the configuration.
    pub models: Vec<ModelStudy>,
    /// Types of entities.
    pub types: Vec<TypeStudy>,
    /// The date of the graph; the earliest, if there are several. `None` if unknown.
    pub as_of: Option<Date>,
    /// Rank correlation of difficulty and points over all answers: Spearman's rho and Kendall's tau-b.
    pub correlation: (Option<f64>, Option<f64>),
    /// Fingerprint of the weights that difficulties, and so Wa, are computed with.
    pub weights: String,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// The numbers of a model.
#[derive(Clone, Debug)]
pub struct ModelStudy {
    /// Its name.
    pub model: String,
    /// Billions of parameters, if its name or [`ModelFacts`] states them.
    pub size: Option<f64>,
    /// The date at which its training data end, if known.
    pub cut_off: Option<Date>,
    /// The numbers.
    pub metrics: ModelMetrics,
    /// Difficulty and share of points of each scored question.
    pub points: Vec<(f64, f64)>,
    /// The replies of each stage.
    pub stages: Vec<Replies>,
}

/// The questions about entities of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeStudy {
    /// Its label.
    pub name: String,
    /// How frequent it is in the graph.
    pub frequency: Frequency,
    /// Number of questions.
    pub questions: u64,
    /// The outcomes of all answers.
    pub counts: Counts,
    /// Mean share of points.
    pub score: Option<f64>,
}

impl Study {
    /// The numbers that follow from these verdicts and weights.
    pub fn of(found: &PipelineNumbers, weights: &Weights, about: &ModelFacts) -> Self {
        let difficulty = Difficulty::new(weights, &found.assessments);
        let study = |model: &ModelFound| {
            let known = about.of(&model.model);
            ModelStudy::of(model, known, &found.assessments, &difficulty)
        };
        let models: Vec<ModelStudy> = found.models.iter().map(study).collect();
        let all: Vec<(f64, f64)> = models.iter().flat_map(|model| model.points.iter().copied()).collect();
        let mut notes = found.remarks.clone();
        let fingerprint = weights.fingerprint().unwrap_or_default();
        notes.push(format!(
            "Wa: accuracy weighted by difficulty, under weights {fingerprint} ({}).",
            weights.source
        ));
        let asked = found.assessments.iter().flat_map(|assessment| &assessment.questions);
        let unknown = asked.filter(|question| !weights.types.contains_key(&question.type_id)).count();
        if unknown > 0 {
            notes.push(format!(
                "Of {unknown} questions the weights do not know the entity's type: they count as of average difficulty. \
                 `kgfleet halu calibrate` learns weights of this graph."
            ));
        }
        Self {
            pipeline: found.pipeline.clone(),
            models,
            types: types(found),
            as_of: earliest(found.assessments.iter().map(|assessment| assessment.as_of.as_ref())),
            correlation: (rank::spearman(&all), rank::kendall(&all)),
            weights: fingerprint,
            notes,
        }
    }
}

impl Study {
    /// The models by weighted accuracy, the best first, each with its rank; those below that have too little of their plan to be
    /// ranked.
    pub fn placed(&self) -> Vec<(&ModelStudy, Option<u64>)> {
        let contenders: Vec<Contender> = self.models.iter().map(ModelStudy::contender).collect();
        let places = ranked(&contenders, Better::Higher);
        places.into_iter().map(|place| (&self.models[place.contender], place.rank)).collect()
    }
}

/// The earliest of some dates, if all are known.
fn earliest<'a>(dates: impl Iterator<Item = Option<&'a Date>>) -> Option<Date> {
    let dates = dates.collect::<Option<Vec<&Date>>>()?;
    dates.into_iter().reduce(|first, other| if other.is_before(first) { other } else { first }).cloned()
}

impl ModelStudy {
    /// What its place is decided by. What Wa could still become is not known: it is no mean of points.
    fn contender(&self) -> Contender {
        let (value, counts) = (self.metrics.weighted_accuracy(), &self.metrics.counts);
        let covered = u64::from(counts.scored);
        let planned = covered + u64::from(counts.not_scored);
        Contender { value: value.map(|spread| spread.mean), covered, planned, bounds: None }
    }

    fn of(
        found: &ModelFound,
        about: AboutModel,
        assessments: &[Assessment],
        difficulty: &Difficulty<'_>,
    ) -> Self {
        let mut answered: Vec<Vec<AnsweredQuestion>> = vec![Vec::new(); assessments.len()];
        let mut points = Vec::new();
        for answer in &found.answers {
            let question =
                assessments.get(answer.assessment).and_then(|of| of.questions.get(answer.question));
            let about_another = answer.fate == Fate::Hallucinated;
            let hard = question.and_then(|question| {
                difficulty.of(answer.assessment, answer.question, question, about_another)
            });
            let Some(hard) = hard else { continue };
            answered[answer.assessment].push(AnsweredQuestion { fate: answer.fate, difficulty: hard });
            points.extend(answer.fate.share().map(|share| (hard, share)));
        }
        Self {
            size: about.size,
            cut_off: about.cut_off,
            model: found.model.clone(),
            metrics: ModelMetrics::of(&answered),
            points,
            stages: found.stages.clone(),
        }
    }
}

/// The types, those with most questions first, then by name.
fn types(found: &PipelineNumbers) -> Vec<TypeStudy> {
    let mut by_type: BTreeMap<&str, (TypeStudy, Vec<Fate>)> = BTreeMap::new();
    for question in found.assessments.iter().flat_map(|assessment| &assessment.questions) {
        let new = || {
            let (name, frequency) = (question.type_name.clone(), question.frequency);
            let study = TypeStudy { name, frequency, questions: 0, counts: Counts::default(), score: None };
            (study, Vec::new())
        };
        by_type.entry(&question.type_id).or_insert_with(new).0.questions += 1;
    }
    for answer in found.models.iter().flat_map(|model| &model.answers) {
        let of = found.assessments.get(answer.assessment).and_then(|of| of.questions.get(answer.question));
        if let Some((_, fates)) = of.and_then(|question| by_type.get_mut(question.type_id.as_str())) {
            fates.push(answer.fate);
        }
    }
    let mut types: Vec<TypeStudy> = by_type
        .into_values()
        .map(|(study, fates)| {
            let shares: Vec<f64> = fates.iter().filter_map(Fate::share).collect();
            let score = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
            TypeStudy { counts: Counts::of(fates), score, ..study }
        })
        .collect();
    types.sort_by(|a, b| b.questions.cmp(&a.questions).then_with(|| a.name.cmp(&b.name)));
    types
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::kinds::kghalubench::draw::Recipe;
    use crate::kinds::kghalubench::draw::assessment::draw;
    use crate::kinds::kghalubench::draw::testing::invented;
    use crate::kinds::kghalubench::numbers::metrics::{FactDecision, Filter};

    /// An answer about the entity with these facts right, decided by the three filters in turn.
    pub fn aligned(correct: [bool; 3]) -> Fate {
        let mut filters = Filter::ALL.into_iter();
        Fate::Aligned(
            correct.map(|correct| FactDecision { correct, by: filters.next().unwrap_or(Filter::Nli) }),
        )
    }

    /// Two assessments of an invented graph, answered by two models: one knows everything, the other nearly nothing.
    pub fn found() -> PipelineNumbers {
        let mut dump = invented(1);
        let recipe = Recipe { questions: 4, ..Recipe::default() };
        let assessments = vec![draw(&mut dump, recipe, 0).unwrap(), draw(&mut dump, recipe, 1).unwrap()];
        let weak = [Fate::Abstained, Fate::Hallucinated, aligned([true; 3]), aligned([true, false, false])];
        let model = |name: &str, fates: [Fate; 4]| ModelFound {
            model: name.to_owned(),
            answers: (0..8)
                .map(|place| JudgedQuestion {
                    assessment: place / 4,
                    question: place % 4,
                    repetition: 0,
                    fate: fates[place % 4],
                    similarity: (fates[place % 4] != Fate::Abstained).then_some(0.6 + place as f64 / 100.0),
                })
                .collect(),
            stages: vec![Replies {
                stage: "nli".to_owned(),
                judge: "judge".to_owned(),
                number: 12,
                seconds: 3.0,
                shared: false,
            }],
        };
        let models = vec![model("weak-1B", weak), model("strong-8B", [aligned([true; 3]); 4])];
        PipelineNumbers { pipeline: "p".to_owned(), assessments, models, remarks: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_four_questions() {
        let study = Study::of(&testing::found(), &Weights::simulated().unwrap(), &ModelFacts::default());
        let weak = &study.models[0];
        let accuracy = weak.metrics.accuracy().unwrap();
        assert!((accuracy.mean - 5.0 / 12.0).abs() < 1e-12 && accuracy.standard_deviation == Some(0.0));
        let counts = weak.metrics.counts;
        assert_eq!((counts.abstention(), counts.breadth_hallucination()), (Some(0.25), Some(1.0 / 3.0)));
        assert_eq!(weak.size, Some(1.0));
        assert_eq!(weak.points.len(), 8);
        assert_eq!(study.types.iter().map(|of_type| of_type.questions).sum::<u64>(), 8);
        assert!(study.types.iter().all(|of_type| of_type.score.is_some()));
        assert!(study.notes.iter().all(|note| !note.contains("do not know")), "{:?}", study.notes);
        let unknown = Study::of(&testing::found(), &Weights::default(), &ModelFacts::default());
        assert!(unknown.notes.iter().any(|note| note.contains("do not know")));
    }

    #[test]
    fn a_question_that_does_not_exist_is_in_no_number() {
        let mut found = testing::found();
        found.models[0].answers[0].question = 99;
        let study = Study::of(&found, &Weights::default(), &ModelFacts::default());
        assert_eq!(study.models[0].metrics.counts.scored, 7);
    }
}
