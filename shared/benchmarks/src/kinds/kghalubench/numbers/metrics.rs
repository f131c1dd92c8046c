//! The numbers of a model (paper, 4.3), computed from the outcomes of its questions.

use crate::kinds::kghalubench::draw::question::FACTS;
use crate::kinds::kghalubench::numbers::difficulty::mean;

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

/// The outcome of a question, with how hard it was for this answer; see [`Difficulty::of`](crate::kinds::kghalubench::numbers::Difficulty::of).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnsweredQuestion {
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
    /// Accuracy times the assessment's mean difficulty, relative to that of all assessments.
    pub weighted_accuracies: Vec<Option<f64>>,
    /// Outcomes over all assessments.
    pub counts: Counts,
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
    /// Computes the numbers from all assessments of a model.
    pub fn of(assessments: &[Vec<AnsweredQuestion>]) -> Self {
        let accuracies: Vec<Option<f64>> = assessments.iter().map(|answers| accuracy(answers)).collect();
        let difficulties: Vec<Option<f64>> = assessments.iter().map(|answers| difficulty(answers)).collect();
        let average = mean(difficulties.iter().flatten());
        let weigh = |(accuracy, difficulty): (&Option<f64>, &Option<f64>)| {
            let (accuracy, difficulty, average) = ((*accuracy)?, (*difficulty)?, average?);
            (average > 0.0).then(|| accuracy * difficulty / average)
        };
        let weighted_accuracies = accuracies.iter().zip(&difficulties).map(weigh).collect();
        let counts = Counts::of(assessments.iter().flatten().map(|answered| answered.fate));
        Self { accuracies, weighted_accuracies, counts }
    }

    /// Mean and standard deviation of the accuracy over assessments.
    pub fn accuracy(&self) -> Option<Spread> {
        Spread::of(&self.accuracies)
    }

    /// Wa: mean and standard deviation of the weighted accuracy over assessments.
    pub fn weighted_accuracy(&self) -> Option<Spread> {
        Spread::of(&self.weighted_accuracies)
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
        let mean = mean(values.iter().flatten())?;
        let squares: Vec<f64> = values.iter().flatten().map(|value| (value - mean).powi(2)).collect();
        let others = squares.len().checked_sub(1).filter(|others| *others > 0);
        let standard_deviation = others.map(|others| (squares.iter().sum::<f64>() / others as f64).sqrt());
        Some(Self { mean, standard_deviation })
    }
}

fn accuracy(answers: &[AnsweredQuestion]) -> Option<f64> {
    let points: Vec<u32> = answers.iter().filter_map(|answered| answered.fate.points()).collect();
    share(points.iter().sum(), (FACTS * points.len()) as u32)
}

/// The mean difficulty of the scored questions, which are those that count for accuracy.
fn difficulty(answers: &[AnsweredQuestion]) -> Option<f64> {
    let scored: Vec<f64> = answers
        .iter()
        .filter(|answered| answered.fate != Fate::NotScored)
        .map(|answered| answered.difficulty)
        .collect();
    mean(scored.iter())
}

fn share(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(correct: [bool; FACTS]) -> Fate {
        Fate::Aligned(correct.map(|correct| FactDecision { correct, by: Filter::Llm }))
    }

    fn alike(fates: &[Fate]) -> Vec<AnsweredQuestion> {
        fates.iter().map(|fate| AnsweredQuestion { fate: *fate, difficulty: 0.5 }).collect()
    }

    #[test]
    fn four_questions_by_hand() {
        let fates = [Fate::Abstained, Fate::Hallucinated, aligned([true; 3]), aligned([true, false, false])];
        let metrics = ModelMetrics::of(&[alike(&fates)]);
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
        let (without, with) = (ModelMetrics::of(&[alike(&fates)]), ModelMetrics::of(&[alike(&with)]));
        assert_eq!(without.accuracies, with.accuracies);
        assert_eq!(without.weighted_accuracies, with.weighted_accuracies);
        assert_eq!(with.counts, Counts { not_scored: 2, ..without.counts });
    }

    #[test]
    fn the_harder_assessment_counts_for_more() {
        let of = |difficulty| vec![AnsweredQuestion { fate: aligned([true, true, false]), difficulty }; 5];
        let metrics = ModelMetrics::of(&[of(0.4), of(0.6)]);
        let weighted: Vec<f64> = metrics.weighted_accuracies.iter().flatten().copied().collect();
        assert!(
            (weighted[0] - 2.0 / 3.0 * 0.8).abs() < 1e-12 && (weighted[1] - 2.0 / 3.0 * 1.2).abs() < 1e-12
        );
        let spread = metrics.accuracy().unwrap();
        assert!((spread.mean - 2.0 / 3.0).abs() < 1e-12 && spread.standard_deviation.unwrap() < 1e-12);
    }

    #[test]
    fn numbers_without_a_denominator_are_missing() {
        let metrics = ModelMetrics::of(&[alike(&[Fate::NotScored]), vec![]]);
        assert_eq!((metrics.accuracy(), metrics.weighted_accuracy()), (None, None));
        assert_eq!((metrics.counts.abstention(), metrics.counts.breadth_hallucination()), (None, None));
        let metrics = ModelMetrics::of(&[alike(&[Fate::Abstained])]);
        assert_eq!(metrics.counts.breadth_hallucination(), None);
        assert_eq!(metrics.accuracy().unwrap().mean, 1.0 / 3.0);
    }
}
