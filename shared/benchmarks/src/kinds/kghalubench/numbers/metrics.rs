//! The numbers of a model (paper, 4.3), computed from the outcomes of its questions. `judge` decides outcomes, and `show` prints
//! the numbers; here they are only counted. Rates of a model are means over its assessments, and [`ModelMetrics::counts`] are
//! pooled.

use report::stats::{Interval, SampleSummary, TaskValues, ValueRange, estimate};

use crate::kinds::kghalubench::draw::question::FACTS;
use crate::kinds::kghalubench::numbers::{mean, share};

/// The outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The model said that it does not know: 1 point of 3.
    Abstained,
    /// The answer is about another entity: no points.
    Hallucinated,
    /// The answer is about the entity: a point for each fact that it states.
    Aligned([FactDecision; FACTS]),
    /// There is no answer, or a judge gave no verdict. Counted in [`Counts::not_scored`] and in no other number.
    NotScored,
}

/// The verdict on one fact of an aligned answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactDecision {
    /// Whether the answer states it.
    pub correct: bool,
    /// Which filter decided.
    pub by: Filter,
}

/// The filters of the fact level, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    /// The classifier of entailment.
    Nli,
    /// The language model that reads answer and sentence.
    Llm,
    /// The language model that is asked if the first two disagree, and decides.
    Expert,
}

impl Filter {
    /// In the order in which they are asked.
    pub const ALL: [Self; 3] = [Self::Nli, Self::Llm, Self::Expert];

    /// The name of its stage.
    pub fn stage(self) -> &'static str {
        match self {
            Self::Nli => "nli",
            Self::Llm => "llm",
            Self::Expert => "expert",
        }
    }
}

impl Fate {
    /// Points, of 3; `None` if it is not scored.
    pub fn points(&self) -> Option<u32> {
        match self {
            Self::Abstained => Some(1),
            Self::Hallucinated => Some(0),
            Self::Aligned(facts) => Some(facts.iter().filter(|fact| fact.correct).count() as u32),
            Self::NotScored => None,
        }
    }

    /// Points as a share of 3; `None` if it is not scored.
    pub fn share(&self) -> Option<f64> {
        self.points().map(|points| f64::from(points) / FACTS as f64)
    }
}

/// The outcome of a question, with how hard it was for this answer; see [`Difficulty::of`](super::Difficulty::of).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnsweredQuestion {
    /// Index of the question in its assessment.
    pub question: u32,
    /// The outcome.
    pub fate: Fate,
    /// In (0, 1).
    pub difficulty: f64,
}

/// The numbers of a model over its assessments. Shares are in [0, 1]; `None` if the denominator is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelMetrics {
    /// Share of the possible points, by assessment.
    pub accuracies: Vec<Option<f64>>,
    /// Accuracy times the assessment's mean difficulty, relative to the mean difficulty of the scale.
    pub weighted_accuracies: Vec<Option<f64>>,
    /// Outcomes, by assessment.
    pub by_assessment: Vec<Counts>,
    /// Outcomes over all assessments.
    pub counts: Counts,
    pub intervals: RateIntervals,
}

/// Numbers of outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions with a score.
    pub scored: u32,
    /// Questions without one.
    pub not_scored: u32,
    /// The model abstained.
    pub abstained: u32,
    /// The answer is about another entity.
    pub hallucinated: u32,
    /// The answer is about the entity.
    pub aligned: u32,
    /// Facts of aligned answers that are not stated.
    pub wrong_facts: u32,
    /// Aligned answers by the number of their wrong facts.
    pub by_wrong_facts: [u32; FACTS + 1],
    /// Facts of aligned answers by the filter that decided.
    pub decided_by: [u32; Filter::ALL.len()],
}

impl Counts {
    /// Counts these outcomes.
    pub fn of(fates: impl IntoIterator<Item = Fate>) -> Self {
        let mut counts = Self::default();
        for fate in fates {
            counts.add(fate);
        }
        counts
    }

    fn add(&mut self, fate: Fate) {
        self.scored += 1;
        match fate {
            Fate::NotScored => {
                self.scored -= 1;
                self.not_scored += 1;
            }
            Fate::Abstained => self.abstained += 1,
            Fate::Hallucinated => self.hallucinated += 1,
            Fate::Aligned(facts) => {
                self.aligned += 1;
                let wrong = facts.iter().filter(|fact| !fact.correct).count();
                self.wrong_facts += wrong as u32;
                self.by_wrong_facts[wrong] += 1;
                for fact in facts {
                    self.decided_by[fact.by as usize] += 1;
                }
            }
        }
    }

    /// Points, as a share of those that there could be.
    pub fn accuracy(&self) -> Option<f64> {
        let stated = FACTS as u32 * self.aligned - self.wrong_facts;
        share(stated + self.abstained, FACTS as u32 * self.scored)
    }

    /// Halu_BOK: answers about another entity, as a share of all answers except abstentions.
    pub fn breadth_hallucination(&self) -> Option<f64> {
        share(self.hallucinated, self.scored - self.abstained)
    }

    /// Halu_DOK: facts that are not stated, as a share of the facts of aligned answers.
    pub fn depth_hallucination(&self) -> Option<f64> {
        share(self.wrong_facts, FACTS as u32 * self.aligned)
    }

    /// Abstentions, as a share of scored questions.
    pub fn abstention(&self) -> Option<f64> {
        share(self.abstained, self.scored)
    }

    /// Facts that this filter decided, as a share of the facts of aligned answers.
    pub fn decided(&self, filter: Filter) -> Option<f64> {
        share(self.decided_by[filter as usize], FACTS as u32 * self.aligned)
    }
}

impl ModelMetrics {
    /// Computes the numbers from all assessments of a model. Weighted accuracy is relative to this mean difficulty, which is one
    /// for all models that are compared ([`mean_difficulty`]).
    pub fn of(assessments: &[Vec<AnsweredQuestion>], mean_difficulty: Option<f64>) -> Self {
        let fates =
            |answers: &Vec<AnsweredQuestion>| Counts::of(answers.iter().map(|answered| answered.fate));
        let by_assessment: Vec<Counts> = assessments.iter().map(fates).collect();
        let accuracies: Vec<Option<f64>> = by_assessment.iter().map(Counts::accuracy).collect();
        let weigh = |(accuracy, answers): (&Option<f64>, &Vec<AnsweredQuestion>)| {
            let (accuracy, difficulty, average) = ((*accuracy)?, difficulty(answers)?, mean_difficulty?);
            (average > 0.0).then(|| accuracy * difficulty / average)
        };
        let weighted_accuracies = accuracies.iter().zip(assessments).map(weigh).collect();
        let counts = Counts::of(assessments.iter().flatten().map(|answered| answered.fate));
        let intervals = RateIntervals::of(assessments, mean_difficulty);
        Self { accuracies, weighted_accuracies, by_assessment, counts, intervals }
    }

    /// Mean and standard deviation of the accuracy over assessments.
    pub fn accuracy(&self) -> Option<Spread> {
        Spread::of(&self.accuracies)
    }

    /// Wa: mean and standard deviation of the weighted accuracy over assessments.
    pub fn weighted_accuracy(&self) -> Option<Spread> {
        Spread::of(&self.weighted_accuracies)
    }

    /// Halu_BOK: its mean and standard deviation over assessments.
    pub fn breadth_hallucination(&self) -> Option<Spread> {
        self.over_assessments(Counts::breadth_hallucination)
    }

    /// Halu_DOK: its mean and standard deviation over assessments.
    pub fn depth_hallucination(&self) -> Option<Spread> {
        self.over_assessments(Counts::depth_hallucination)
    }

    /// Mean and standard deviation of the share of abstentions over assessments.
    pub fn abstention(&self) -> Option<Spread> {
        self.over_assessments(Counts::abstention)
    }

    fn over_assessments(&self, rate: fn(&Counts) -> Option<f64>) -> Option<Spread> {
        let rates: Vec<Option<f64>> = self.by_assessment.iter().map(rate).collect();
        Spread::of(&rates)
    }
}

/// How a number varies over assessments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    /// Standard deviation of the sample (divisor n - 1); nothing for a single assessment.
    pub standard_deviation: Option<f64>,
}

impl Spread {
    fn of(values: &[Option<f64>]) -> Option<Self> {
        let of = SampleSummary::of(values.iter().copied().flatten())?;
        Some(Self { mean: of.mean, standard_deviation: of.sd })
    }
}

/// A rate, as it is made of single answers: the value of each that counts for it.
type RateValue = fn(&Fate) -> Option<f64>;

impl Fate {
    fn one_if(self, counts: bool, holds: bool) -> Option<f64> {
        (counts && self != Self::NotScored).then_some(if holds { 1.0 } else { 0.0 })
    }

    /// Of the abstention rate.
    pub fn abstention(&self) -> Option<f64> {
        self.one_if(true, *self == Self::Abstained)
    }

    /// Of Halu_BOK.
    pub fn breadth_hallucination(&self) -> Option<f64> {
        self.one_if(*self != Self::Abstained, *self == Self::Hallucinated)
    }

    /// Of Halu_DOK: the share of its facts that are not stated.
    pub fn depth_hallucination(&self) -> Option<f64> {
        match self {
            Self::Aligned(facts) => {
                Some(facts.iter().filter(|fact| !fact.correct).count() as f64 / FACTS as f64)
            }
            Self::Abstained | Self::Hallucinated | Self::NotScored => None,
        }
    }
}

/// The intervals of a model's numbers, by the method of all tables: each assessment is a task, and each question an exercise. They say
/// within what the numbers would lie with other questions of these assessments; nothing of how far judges err. `None` of fewer than two
/// answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateIntervals {
    pub accuracy: Option<Interval>,
    /// Of Wa: assessments count by their difficulty relative to the scale, which is taken as known.
    pub weighted_accuracy: Option<Interval>,
    pub abstention: Option<Interval>,
    pub breadth_hallucination: Option<Interval>,
    pub depth_hallucination: Option<Interval>,
}

impl RateIntervals {
    fn of(assessments: &[Vec<AnsweredQuestion>], mean_difficulty: Option<f64>) -> Self {
        let of = |value: RateValue| interval(assessments, value, |_| Some(1.0)).map(|(interval, _)| interval);
        let weighted = mean_difficulty.and_then(|average| {
            let (interval, weight) =
                interval(assessments, Fate::share, |answers| relative(answers, average))?;
            Some(Interval { low: weight * interval.low, high: weight * interval.high })
        });
        Self {
            accuracy: of(Fate::share),
            weighted_accuracy: weighted,
            abstention: of(Fate::abstention),
            breadth_hallucination: of(Fate::breadth_hallucination),
            depth_hallucination: of(Fate::depth_hallucination),
        }
    }
}

/// An interval of the mean of assessments by their weights, with the mean weight.
fn interval(
    assessments: &[Vec<AnsweredQuestion>],
    value: RateValue,
    weight: impl Fn(&[AnsweredQuestion]) -> Option<f64>,
) -> Option<(Interval, f64)> {
    let task = |answers: &Vec<AnsweredQuestion>| {
        let values: Vec<(u32, f64)> =
            answers.iter().filter_map(|answered| Some((answered.question, value(&answered.fate)?))).collect();
        (!values.is_empty()).then_some(())?;
        Some(TaskValues { weight: weight(answers)?, values })
    };
    let tasks: Vec<TaskValues> = assessments.iter().filter_map(task).collect();
    let weight = tasks.iter().map(|task| task.weight).sum::<f64>() / tasks.len().max(1) as f64;
    estimate(&tasks, ValueRange::SCORE).map(|estimate| (estimate.interval, weight))
}

/// Their mean difficulty relative to the mean difficulty of the scale.
fn relative(answers: &[AnsweredQuestion], average: f64) -> Option<f64> {
    let difficulty = difficulty(answers)?;
    (average > 0.0).then(|| difficulty / average)
}

/// The mean difficulty of the scored questions, which are those that count for accuracy.
fn difficulty(answers: &[AnsweredQuestion]) -> Option<f64> {
    let scored = answers.iter().filter(|answered| answered.fate != Fate::NotScored);
    mean(scored.map(|answered| answered.difficulty))
}

/// The mean difficulty of all assessments of all these models: Avg(Qd) of the paper's formula 2. `None` if nothing is scored.
pub fn mean_difficulty<'a>(assessments: impl IntoIterator<Item = &'a Vec<AnsweredQuestion>>) -> Option<f64> {
    mean(assessments.into_iter().filter_map(|answers| difficulty(answers)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(correct: [bool; FACTS]) -> Fate {
        Fate::Aligned(correct.map(|correct| FactDecision { correct, by: Filter::Llm }))
    }

    fn alike(fates: &[Fate]) -> Vec<AnsweredQuestion> {
        (0..)
            .zip(fates)
            .map(|(question, fate)| AnsweredQuestion { question, fate: *fate, difficulty: 0.5 })
            .collect()
    }

    fn own_scale(assessments: &[Vec<AnsweredQuestion>]) -> ModelMetrics {
        ModelMetrics::of(assessments, mean_difficulty(assessments))
    }

    #[test]
    fn intervals_hold_the_numbers_and_narrow_with_more_questions() {
        let fates = |times: usize| {
            let one =
                [Fate::Abstained, Fate::Hallucinated, aligned([true; 3]), aligned([true, false, false])];
            one.into_iter().cycle().take(4 * times).collect::<Vec<_>>()
        };
        let metrics = |times: usize| {
            let assessment = |difficulty| {
                let answered = (0..).zip(fates(times));
                answered.map(|(question, fate)| AnsweredQuestion { question, fate, difficulty }).collect()
            };
            ModelMetrics::of(&[assessment(0.4), assessment(0.6)], Some(0.5))
        };
        let (few, many) = (metrics(2), metrics(50));
        let numbers = |metrics: &ModelMetrics| {
            let of = metrics.intervals;
            [
                (metrics.accuracy(), of.accuracy),
                (metrics.weighted_accuracy(), of.weighted_accuracy),
                (metrics.abstention(), of.abstention),
                (metrics.breadth_hallucination(), of.breadth_hallucination),
                (metrics.depth_hallucination(), of.depth_hallucination),
            ]
            .map(|(spread, interval)| (spread.unwrap().mean, interval.unwrap()))
        };
        for ((mean, wide), (_, narrow)) in numbers(&few).into_iter().zip(numbers(&many)) {
            assert!(wide.low <= mean + 1e-12 && mean <= wide.high + 1e-12, "{mean} {wide:?}");
            assert!(2.0 * (narrow.high - narrow.low) < wide.high - wide.low, "{narrow:?} {wide:?}");
        }
        assert_eq!(ModelMetrics::of(&[], Some(0.5)).intervals, RateIntervals::default());
    }

    #[test]
    fn four_questions_by_hand() {
        let fates = [Fate::Abstained, Fate::Hallucinated, aligned([true; 3]), aligned([true, false, false])];
        let metrics = own_scale(&[alike(&fates)]);
        let accuracy = metrics.accuracy().unwrap();
        assert_eq!((accuracy.mean, accuracy.standard_deviation), (5.0 / 12.0, None));
        assert_eq!(metrics.weighted_accuracy().unwrap().mean, 5.0 / 12.0);
        let counts = metrics.counts;
        assert_eq!(counts.abstention(), Some(0.25));
        assert_eq!(counts.breadth_hallucination(), Some(1.0 / 3.0));
        assert_eq!(counts.depth_hallucination(), Some(2.0 / 6.0));
        assert_eq!(counts.by_wrong_facts, [1, 0, 1, 0]);
        assert_eq!(counts.decided(Filter::Llm), Some(1.0));
        assert_eq!(counts.decided(Filter::Expert), Some(0.0));
    }

    #[test]
    fn what_is_not_scored_changes_no_number() {
        let fates = [Fate::Abstained, aligned([true, false, true])];
        let with = [Fate::NotScored, Fate::Abstained, aligned([true, false, true]), Fate::NotScored];
        let (without, with) = (own_scale(&[alike(&fates)]), own_scale(&[alike(&with)]));
        assert_eq!(without.accuracies, with.accuracies);
        assert_eq!(without.weighted_accuracies, with.weighted_accuracies);
        assert_eq!(with.counts, Counts { not_scored: 2, ..without.counts });
    }

    #[test]
    fn the_harder_assessment_counts_for_more() {
        let of = |difficulty| {
            vec![AnsweredQuestion { question: 0, fate: aligned([true, true, false]), difficulty }; 5]
        };
        let metrics = own_scale(&[of(0.4), of(0.6)]);
        let weighted: Vec<f64> = metrics.weighted_accuracies.iter().flatten().copied().collect();
        assert!(
            (weighted[0] - 2.0 / 3.0 * 0.8).abs() < 1e-12 && (weighted[1] - 2.0 / 3.0 * 1.2).abs() < 1e-12
        );
        let spread = metrics.accuracy().unwrap();
        assert!((spread.mean - 2.0 / 3.0).abs() < 1e-12 && spread.standard_deviation.unwrap() < 1e-12);
    }

    #[test]
    fn models_on_hard_questions_are_compared_with_models_on_easy_ones() {
        let of = |correct, difficulty| {
            vec![AnsweredQuestion { question: 0, fate: aligned(correct), difficulty }; 5]
        };
        let (easy, hard) = ([of([true; 3], 0.3)], [of([true, true, false], 0.6)]);
        let average = mean_difficulty(easy.iter().chain(&hard));
        assert!((average.unwrap() - 0.45).abs() < 1e-12);
        let weighted = |answers| ModelMetrics::of(answers, average).weighted_accuracy().unwrap().mean;
        assert!((weighted(&easy) - 0.3 / 0.45).abs() < 1e-12);
        assert!((weighted(&hard) - 2.0 / 3.0 * 0.6 / 0.45).abs() < 1e-12);
    }

    #[test]
    fn rates_are_means_over_assessments() {
        // In one assessment one of one answers is about another entity, in the other one none of three.
        let first = alike(&[Fate::Hallucinated, Fate::Abstained, Fate::Abstained]);
        let second = alike(&[aligned([true; 3]), aligned([false; 3]), aligned([false; 3])]);
        let metrics = own_scale(&[first, second]);
        assert_eq!(metrics.breadth_hallucination().unwrap().mean, 0.5);
        assert_eq!(metrics.counts.breadth_hallucination(), Some(0.25));
        assert_eq!(metrics.abstention().unwrap().mean, 1.0 / 3.0);
        // Without an answer about its entity an assessment has no facts, and so no part in Halu_DOK.
        let depth = metrics.depth_hallucination().unwrap();
        assert_eq!((depth.mean, depth.standard_deviation), (2.0 / 3.0, None));
    }

    #[test]
    fn numbers_without_a_denominator_are_missing() {
        let metrics = own_scale(&[alike(&[Fate::NotScored]), vec![]]);
        assert_eq!((metrics.accuracy(), metrics.weighted_accuracy()), (None, None));
        assert_eq!((metrics.counts.abstention(), metrics.counts.breadth_hallucination()), (None, None));
        let metrics = own_scale(&[alike(&[Fate::Abstained])]);
        assert_eq!(metrics.counts.breadth_hallucination(), None);
        assert_eq!(metrics.accuracy().unwrap().mean, 1.0 / 3.0);
    }
}
