//! The numbers computed from the verdicts of judges with given weights. No judge is asked for them, so other weights give other
//! numbers of an old benchmark at once.

use std::collections::BTreeMap;

use domain::control::Better;
use domain::ranking::{Contender, ranked};

use super::about::{AboutModel, ModelFacts};
use super::found::{JudgedQuestion, ModelFound, PipelineNumbers, Replies};
use super::scale::{AnsweredModel, CommonScale, knows, unknown};
use crate::kinds::kghalubench::draw::Date;
use crate::kinds::kghalubench::draw::frequency::Frequency;
use crate::kinds::kghalubench::draw::question::{FACTS, Question};
use crate::kinds::kghalubench::numbers::metrics::{Counts, Fate, Filter};
use crate::kinds::kghalubench::numbers::{ModelMetrics, Weights, mean, rank};

/// The group of a type, in words.
pub(crate) fn frequency_words(frequency: Frequency) -> &'static str {
    match frequency {
        Frequency::VeryCommon => "very common",
        Frequency::Common => "common",
        Frequency::Uncommon => "uncommon",
    }
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
    /// The number that models are ordered by.
    pub ordered_by: OrderedBy,
    /// The scale of Wa.
    pub scale: CommonScale,
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
    /// Its group, if [`ModelFacts`] name one.
    pub group: Option<String>,
    /// The numbers.
    pub metrics: ModelMetrics,
    /// Difficulty and share of points of each scored question.
    pub points: Vec<(f64, f64)>,
    /// The replies of each stage.
    pub stages: Vec<Replies>,
    pub fact_times: FactTimes,
}

/// How long it took to decide facts, by the filter that decided: what all filters before it took included (paper, Table 3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FactTimes {
    facts: [u32; Filter::ALL.len()],
    seconds: [f64; Filter::ALL.len()],
}

impl FactTimes {
    /// Of the facts of these answers.
    fn of<'a>(answers: impl IntoIterator<Item = &'a JudgedQuestion>) -> Self {
        let mut times = Self::default();
        for answer in answers {
            let (Fate::Aligned(facts), Some(seconds)) = (&answer.fate, answer.fact_seconds) else { continue };
            for (fact, seconds) in facts.iter().zip(seconds) {
                times.facts[fact.by as usize] += 1;
                times.seconds[fact.by as usize] += seconds;
            }
        }
        times
    }

    /// Both together.
    pub fn and(mut self, other: &Self) -> Self {
        for place in 0..Filter::ALL.len() {
            self.facts[place] += other.facts[place];
            self.seconds[place] += other.seconds[place];
        }
        self
    }

    /// Facts that a filter decided.
    pub fn facts(&self, filter: Filter) -> u32 {
        self.facts[filter as usize]
    }

    /// All facts.
    pub fn all_facts(&self) -> u32 {
        self.facts.iter().sum()
    }

    /// Mean seconds of the facts that a filter decided.
    pub fn decided_by(&self, filter: Filter) -> Option<f64> {
        let facts = self.facts[filter as usize];
        (facts > 0).then(|| self.seconds[filter as usize] / f64::from(facts))
    }

    /// Mean seconds of all facts.
    pub fn per_fact(&self) -> Option<f64> {
        let facts = self.all_facts();
        (facts > 0).then(|| self.seconds.iter().sum::<f64>() / f64::from(facts))
    }

    /// Mean seconds of a question, whose facts are decided one after the other.
    pub fn per_question(&self) -> Option<f64> {
        self.per_fact().map(|seconds| seconds * FACTS as f64)
    }
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
    /// The numbers of one benchmark, which is shown alone.
    pub fn of(found: &PipelineNumbers, weights: &Weights, about: &ModelFacts) -> Self {
        Self::on(&CommonScale::of(&[found], weights), found, weights, about)
    }

    /// The numbers that follow from these verdicts and weights, on a scale.
    pub fn on(scale: &CommonScale, found: &PipelineNumbers, weights: &Weights, about: &ModelFacts) -> Self {
        let difficulty = scale.difficulty(weights, &found.assessments);
        let study = |model: &ModelFound| {
            let answered = AnsweredModel::of(model, &found.assessments, &difficulty);
            ModelStudy::of(model, about.of(&model.model), answered, scale)
        };
        let models: Vec<ModelStudy> = found.models.iter().map(study).collect();
        let all: Vec<(f64, f64)> = models.iter().flat_map(|model| model.points.iter().copied()).collect();
        let mut notes = found.remarks.clone();
        notes.extend(found.wordings.told());
        let fingerprint = weights.fingerprint().unwrap_or_default();
        notes.push(format!(
            "Wa: accuracy weighted by difficulty, under weights {fingerprint} ({}); {}.",
            weights.source,
            scale.words()
        ));
        let questions = found.assessments.iter().flat_map(|assessment| &assessment.questions);
        notes.extend(Question::hard_to_tell(questions));
        let unknown = unknown(weights, found);
        if unknown > 0 {
            notes.push(format!(
                "Of {unknown} questions the weights do not know the entity's type: they count as of average difficulty. \
                 `kgfleet halu calibrate` learns weights of this graph."
            ));
        }
        let ordered_by = if knows(weights, found) { OrderedBy::Wa } else { OrderedBy::Accuracy };
        if ordered_by == OrderedBy::Accuracy {
            notes.push(
                "Ordered and marked by accuracy: without weights of its graph Wa is no better than chance."
                    .to_owned(),
            );
        }
        Self {
            pipeline: found.pipeline.clone(),
            models,
            types: types(found),
            as_of: earliest(found.assessments.iter().map(|assessment| assessment.as_of.as_ref())),
            correlation: (rank::spearman(&all), rank::kendall(&all)),
            weights: fingerprint,
            ordered_by,
            scale: scale.clone(),
            notes,
        }
    }

    /// The models by [what they are ordered by](OrderedBy), the best first, each with its rank. Models that have too little of
    /// their plan to be ranked come last and have none.
    pub fn placed(&self) -> Vec<(&ModelStudy, Option<u64>)> {
        let of = |model: &ModelStudy| model.contender(self.ordered_by);
        let contenders: Vec<Contender> = self.models.iter().map(of).collect();
        let places = ranked(&contenders, Better::Higher);
        places.into_iter().map(|place| (&self.models[place.contender], place.rank)).collect()
    }
}

/// The number that models are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedBy {
    Wa,
    /// Where the weights know nothing of the graph.
    Accuracy,
}

/// The earliest of some dates, if all are known.
fn earliest<'a>(dates: impl Iterator<Item = Option<&'a Date>>) -> Option<Date> {
    let dates = dates.collect::<Option<Vec<&Date>>>()?;
    dates.into_iter().reduce(|first, other| if other.is_before(first) { other } else { first }).cloned()
}

impl ModelStudy {
    /// What its place is decided by. What Wa could still become is not known: it is no mean of points.
    fn contender(&self, ordered_by: OrderedBy) -> Contender {
        let value = match ordered_by {
            OrderedBy::Wa => self.metrics.weighted_accuracy(),
            OrderedBy::Accuracy => self.metrics.accuracy(),
        };
        let covered = u64::from(self.metrics.counts.scored);
        let planned = covered + u64::from(self.metrics.counts.not_scored);
        Contender { value: value.map(|spread| spread.mean), covered, planned, bounds: None }
    }

    fn of(found: &ModelFound, about: AboutModel, answered: AnsweredModel, scale: &CommonScale) -> Self {
        Self {
            size: about.size,
            cut_off: about.cut_off,
            group: about.group,
            model: found.model.clone(),
            metrics: ModelMetrics::of(&answered.by_assessment, scale.mean_difficulty()),
            points: answered.points,
            stages: found.stages.clone(),
            fact_times: FactTimes::of(&found.answers),
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
            let score = mean(fates.iter().filter_map(Fate::share));
            TypeStudy { counts: Counts::of(fates), score, ..study }
        })
        .collect();
    types.sort_by(|a, b| b.questions.cmp(&a.questions).then_with(|| a.name.cmp(&b.name)));
    types
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::show::found::testing;

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
    fn descriptions_that_are_too_short_to_tell_entities_apart_are_counted() {
        let mut found = testing::found();
        let note = |found: &PipelineNumbers| {
            let study = Study::of(found, &Weights::simulated().unwrap(), &ModelFacts::default());
            study.notes.iter().find(|note| note.contains("too short")).cloned()
        };
        assert_eq!(note(&found), None);
        found.assessments[0].questions[0].description = "Austrian composer".to_owned();
        assert!(note(&found).unwrap().starts_with("1 of 8 questions"), "{:?}", note(&found));
    }

    #[test]
    fn without_weights_of_the_graph_models_are_ordered_by_accuracy() {
        let study = |weights: &Weights| Study::of(&testing::found(), weights, &ModelFacts::default());
        assert_eq!(study(&Weights::simulated().unwrap()).ordered_by, OrderedBy::Wa);
        let unknown = study(&Weights::default());
        assert_eq!(unknown.ordered_by, OrderedBy::Accuracy);
        assert!(unknown.notes.iter().any(|note| note.contains("marked by accuracy")));
    }

    #[test]
    fn a_question_that_does_not_exist_is_in_no_number() {
        let mut found = testing::found();
        found.models[0].answers[0].question = 99;
        let study = Study::of(&found, &Weights::default(), &ModelFacts::default());
        assert_eq!(study.models[0].metrics.counts.scored, 7);
    }
}
