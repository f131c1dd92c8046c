//! The numbers of a model as people would have judged its answers.
//!
//! People see some answers and facts otherwise than the judges. A sheet of rows that people annotated says how often, by what the
//! judges said; the same is taken to hold of the answers that nobody annotated, of all models alike. So the numbers are computed
//! with what people would say in the place of what judges said: the stratified estimate of survey sampling (Cochran, "Sampling
//! Techniques", 1977, section 5.3). Nobody judged the facts of answers that judges took for abstentions or for answers about
//! another entity; where people would call them answers about the entity, they are taken to state as many facts as the others.

use domain::seed::SplitMix64;
use stats::Interval;
use stats::share::likely_shares;

use super::metrics::{FactDecision, Fate, Filter, ModelMetrics, RateIntervals, Spread};
use crate::kinds::kghalubench::draw::question::FACTS;

/// How many times what people would say of everything is drawn from what they say of a sheet.
const DRAWS: usize = 400;

/// Share of the draws that an interval leaves out at each end. Half of 0.05 would hold the truth too seldom where judges err often
/// and a sheet has some thirty rows of each kind, as `cargo bench -p benchmarks --bench people` measures.
const TAIL: f64 = 0.015;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    Abstention,
    /// About another entity.
    Other,
    /// About the entity.
    Same,
}

/// Number of kinds of answers.
const KINDS: usize = 3;

impl AnswerKind {
    /// What judges say of an answer; `None` if it is not scored.
    pub fn of(fate: &Fate) -> Option<Self> {
        match fate {
            Fate::Abstained => Some(Self::Abstention),
            Fate::Hallucinated => Some(Self::Other),
            Fate::Aligned(_) => Some(Self::Same),
            Fate::NotScored => None,
        }
    }
}

/// A number for each filter that decides about facts, and for each of its verdicts.
type ByDecision<T> = [[T; 2]; Filter::ALL.len()];

/// Rows about facts.
#[derive(Clone, Copy, Debug, Default)]
struct FactRows {
    /// Those of which people find that the fact is stated.
    stated: u32,
    all: u32,
}

/// What people say of a sheet, by what judges said.
#[derive(Clone, Debug, Default)]
pub struct PeopleSay {
    /// Rows about answers, by the judges' kind and that of people.
    answers: [[u32; KINDS]; KINDS],
    facts: ByDecision<FactRows>,
}

/// The share of answers of each kind that people would call this or that, and the share of facts that they would find stated.
/// Not a number where no row says anything.
#[derive(Clone, Copy, Debug)]
struct Shares {
    answers: [[f64; KINDS]; KINDS],
    stated: ByDecision<f64>,
}

/// What the shares of a sheet are taken to be, for the numbers of every model.
#[derive(Debug)]
pub struct SheetShares {
    /// As they were seen.
    seen: Shares,
    /// As likely as each other after this sheet.
    likely: Vec<Shares>,
}

impl PeopleSay {
    /// Adds a row about an answer.
    pub fn add_answer(&mut self, judged: AnswerKind, said: AnswerKind) {
        self.answers[judged as usize][said as usize] += 1;
    }

    /// Adds a row about a fact.
    pub fn add_fact(&mut self, judged: FactDecision, is_stated: bool) {
        let rows = &mut self.facts[judged.by as usize][usize::from(judged.correct)];
        rows.all += 1;
        rows.stated += u32::from(is_stated);
    }

    /// The shares of the sheet.
    pub fn shares(&self) -> SheetShares {
        SheetShares { seen: self.seen(), likely: self.likely() }
    }

    fn seen(&self) -> Shares {
        let share = |part: u32, all: u32| if all == 0 { f64::NAN } else { f64::from(part) / f64::from(all) };
        let answers = self.answers.map(|said| said.map(|part| share(part, said.iter().sum())));
        let stated = self.facts.map(|of_filter| of_filter.map(|rows| share(rows.stated, rows.all)));
        Shares { answers, stated }
    }

    fn likely(&self) -> Vec<Shares> {
        let nothing = Shares { answers: Default::default(), stated: ByDecision::default() };
        let mut drawn = vec![nothing; DRAWS];
        let mut random = SplitMix64::new(SplitMix64::mix(0));
        let mut shares = |yes, all| {
            let mut shares = likely_shares(yes, all, DRAWS);
            for last in (1..DRAWS).rev() {
                shares.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
            }
            shares
        };
        for (judged, said) in self.answers.iter().enumerate() {
            let [abstentions, others, _] = *said;
            let all: u32 = said.iter().sum();
            let of_rest = shares(others, all - abstentions);
            for ((into, abstains), other) in drawn.iter_mut().zip(shares(abstentions, all)).zip(of_rest) {
                let rest = 1.0 - abstains;
                into.answers[judged] = [abstains, rest * other, rest * (1.0 - other)];
            }
        }
        for (filter, of_filter) in self.facts.iter().enumerate() {
            for (correct, rows) in of_filter.iter().enumerate() {
                for (into, share) in drawn.iter_mut().zip(shares(rows.stated, rows.all)) {
                    into.stated[filter][correct] = share;
                }
            }
        }
        drawn
    }
}

impl Shares {
    /// Of people who say in everything what the judges say.
    const OF_JUDGES: Self = Self {
        answers: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        stated: [[0.0, 1.0]; Filter::ALL.len()],
    };
}

/// What judges said of the answers of a model.
#[derive(Clone, Debug, Default)]
struct Judged {
    answers: [f64; KINDS],
    facts: ByDecision<f64>,
    /// What accuracy is multiplied with for Wa; not a number where there is no Wa.
    weight: f64,
}

/// The numbers of a model; see [`ModelMetrics`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen<T> {
    pub accuracy: T,
    pub weighted_accuracy: T,
    pub abstention: T,
    pub breadth_hallucination: T,
    pub depth_hallucination: T,
}

impl<T> Seen<T> {
    fn map<U>(self, mut to: impl FnMut(T) -> U) -> Seen<U> {
        Seen {
            accuracy: to(self.accuracy),
            weighted_accuracy: to(self.weighted_accuracy),
            abstention: to(self.abstention),
            breadth_hallucination: to(self.breadth_hallucination),
            depth_hallucination: to(self.depth_hallucination),
        }
    }

    fn zip<U>(self, other: Seen<U>) -> Seen<(T, U)> {
        Seen {
            accuracy: (self.accuracy, other.accuracy),
            weighted_accuracy: (self.weighted_accuracy, other.weighted_accuracy),
            abstention: (self.abstention, other.abstention),
            breadth_hallucination: (self.breadth_hallucination, other.breadth_hallucination),
            depth_hallucination: (self.depth_hallucination, other.depth_hallucination),
        }
    }
}

/// A number by people, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenNumber {
    pub mean: f64,
    /// `None` where there is none of what judges say.
    pub interval: Option<Interval>,
}

impl Judged {
    /// Of the outcomes of a model.
    fn of<'f>(fates: impl IntoIterator<Item = &'f Fate>, weight: f64) -> Self {
        let mut judged = Self { weight, ..Self::default() };
        for fate in fates {
            let Some(kind) = AnswerKind::of(fate) else { continue };
            judged.answers[kind as usize] += 1.0;
            let Fate::Aligned(facts) = fate else { continue };
            for fact in facts {
                judged.facts[fact.by as usize][usize::from(fact.correct)] += 1.0;
            }
        }
        judged
    }

    /// Its numbers by people; not a number where the sheet says nothing of what counts, or there is none.
    fn seen(&self, shares: &Shares) -> Seen<f64> {
        let part = |count: f64, share: f64| if count > 0.0 { count * share } else { 0.0 };
        let of_kind = |said: AnswerKind| -> f64 {
            let judged = self.answers.iter().zip(&shares.answers);
            judged.map(|(count, shares)| part(*count, shares[said as usize])).sum()
        };
        let all: f64 = self.answers.iter().sum();
        let [abstentions, others, same] =
            [AnswerKind::Abstention, AnswerKind::Other, AnswerKind::Same].map(of_kind);
        let facts = self.facts.iter().flatten().zip(shares.stated.iter().flatten());
        let stated: f64 = facts.map(|(count, share)| part(*count, *share)).sum();
        // Stated facts are those of answers about the entity.
        let place = AnswerKind::Same as usize;
        let judged_same = part(self.answers[place], shares.answers[place][place]);
        let stated_share = stated / (FACTS as f64 * judged_same);
        // `f64::min` would make a share of 1 of what is not a number.
        let stated_share = if stated_share > 1.0 { 1.0 } else { stated_share };
        let points = abstentions + part(same, FACTS as f64 * stated_share);
        let accuracy = points / (FACTS as f64 * all);
        Seen {
            accuracy,
            weighted_accuracy: accuracy * self.weight,
            abstention: abstentions / all,
            breadth_hallucination: others / (all - abstentions),
            depth_hallucination: 1.0 - stated_share,
        }
    }
}

/// The numbers of a model by people, from the outcomes of its answers as judges decided and the numbers of those: by how much people
/// would change the number of all answers together is added to the mean over assessments. An interval adds what other questions
/// would change, as [`RateIntervals`] says, to what another sheet would: both are independent, so their squares add up. `None`
/// where the sheet says nothing of what counts.
pub fn seen<'f>(
    fates: impl IntoIterator<Item = &'f Fate>,
    metrics: &ModelMetrics,
    people: &SheetShares,
) -> Seen<Option<SeenNumber>> {
    let by_judges: Seen<Option<Spread>> = Seen {
        accuracy: metrics.accuracy(),
        weighted_accuracy: metrics.weighted_accuracy(),
        abstention: metrics.abstention(),
        breadth_hallucination: metrics.breadth_hallucination(),
        depth_hallucination: metrics.depth_hallucination(),
    };
    let weight = match (by_judges.weighted_accuracy, by_judges.accuracy) {
        (Some(weighted), Some(accuracy)) if accuracy.mean > 0.0 => weighted.mean / accuracy.mean,
        _ => f64::NAN,
    };
    let judged = Judged::of(fates, weight);
    let of_judges = judged.seen(&Shares::OF_JUDGES);
    let changes =
        |shares: &Shares| judged.seen(shares).zip(of_judges).map(|(people, judges)| people - judges);
    let mut drawn: Seen<Vec<f64>> = Seen::default();
    for likely in &people.likely {
        drawn = drawn.zip(changes(likely)).map(|(mut values, value)| {
            values.push(value);
            values
        });
    }
    let RateIntervals { accuracy, weighted_accuracy, abstention, breadth_hallucination, depth_hallucination } =
        metrics.intervals;
    let intervals =
        Seen { accuracy, weighted_accuracy, abstention, breadth_hallucination, depth_hallucination };
    // Only Wa has no greatest value.
    let most = Seen {
        accuracy: 1.0,
        weighted_accuracy: f64::INFINITY,
        abstention: 1.0,
        breadth_hallucination: 1.0,
        depth_hallucination: 1.0,
    };
    let all = changes(&people.seen).zip(drawn).zip(by_judges.zip(intervals)).zip(most);
    all.map(|(((change, drawn), (by_judges, interval)), most)| {
        let by_judges = by_judges.filter(|_| change.is_finite())?.mean;
        let interval = interval.and_then(|interval| {
            around(by_judges + change, (by_judges - interval.low, interval.high - by_judges), change, drawn)
        });
        let within = |number: f64| number.clamp(0.0, most);
        let interval = interval.map(|of| Interval { low: within(of.low), high: within(of.high) });
        Some(SeenNumber { mean: within(by_judges + change), interval })
    })
}

/// The interval around a mean to which people add `change`: by how far it reaches below and above with judges, and what else people
/// may add.
fn around(mean: f64, (below, above): (f64, f64), change: f64, mut drawn: Vec<f64>) -> Option<Interval> {
    drawn.retain(|value| value.is_finite());
    if drawn.is_empty() {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    let (low, high) =
        (stats::describe::quantile(&drawn, TAIL), stats::describe::quantile(&drawn, 1.0 - TAIL));
    let (less, more) = ((change - low).max(0.0), (high - change).max(0.0));
    Some(Interval { low: mean - below.hypot(less), high: mean + above.hypot(more) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::kghalubench::numbers::metrics::AnsweredQuestion;

    fn aligned(correct: [bool; FACTS]) -> Fate {
        Fate::Aligned(correct.map(|correct| FactDecision { correct, by: Filter::Llm }))
    }

    /// An assessment of ten abstentions, ten answers about others, and twenty about the entity with two of three facts stated.
    fn assessment() -> Vec<Fate> {
        let mut fates = vec![Fate::Abstained; 10];
        fates.extend([Fate::Hallucinated; 10]);
        fates.extend([aligned([true, true, false]); 20]);
        fates
    }

    fn metrics(fates: &[Fate]) -> ModelMetrics {
        let answered = fates.iter().zip(0..).map(|(fate, question)| AnsweredQuestion {
            question,
            fate: *fate,
            difficulty: 0.5,
        });
        ModelMetrics::of(&[answered.collect()], Some(0.5))
    }

    /// People who say so of this many rows each.
    fn people(answers: [[u32; KINDS]; KINDS], stated: [[u32; 2]; 2]) -> PeopleSay {
        let mut people = PeopleSay { answers, ..PeopleSay::default() };
        people.facts[Filter::Llm as usize] = stated.map(|[stated, all]| FactRows { stated, all });
        people
    }

    /// The numbers of these answers by people.
    fn by(fates: &[Fate], people: &PeopleSay) -> Seen<Option<SeenNumber>> {
        seen(fates, &metrics(fates), &people.shares())
    }

    const AGREE: [[u32; KINDS]; KINDS] = [[20, 0, 0], [0, 20, 0], [0, 0, 20]];

    fn near(found: Option<SeenNumber>, expected: f64) -> bool {
        (found.unwrap().mean - expected).abs() < 1e-12
    }

    #[test]
    fn verdicts_of_people_stand_in_the_place_of_the_judges() {
        let fates = assessment();
        // A tenth of the abstentions is none: half of them are about another entity, half about the entity. A fifth of what was
        // taken for answers about others is about the entity. A tenth of the stated facts is not.
        let said = people([[18, 1, 1], [0, 16, 4], [0, 0, 20]], [[0, 20], [18, 20]]);
        let seen = by(&fates, &said);
        let (abstentions, others, same) = (9.0, 0.5 + 8.0, 0.5 + 2.0 + 20.0);
        let stated = 0.9 * 2.0 / 3.0;
        assert!(near(seen.abstention, abstentions / 40.0));
        assert!(near(seen.breadth_hallucination, others / 31.0));
        assert!(near(seen.depth_hallucination, 1.0 - stated));
        assert!(near(seen.accuracy, (abstentions + 3.0 * stated * same) / 120.0));
        assert_eq!(seen.accuracy, seen.weighted_accuracy, "all are as hard as the scale");
    }

    #[test]
    fn answers_that_people_find_about_another_entity_state_nothing() {
        let fates = assessment();
        // Half of what was taken for answers about the entity is about another, and states none of its facts.
        let said = people([[20, 0, 0], [0, 20, 0], [0, 10, 10]], [[0, 20], [10, 20]]);
        let seen = by(&fates, &said);
        assert!(near(seen.depth_hallucination, 1.0 / 3.0), "{seen:?}");
        assert!(near(seen.accuracy, (10.0 + 20.0) / 120.0), "{seen:?}");
    }

    #[test]
    fn nobody_knows_what_answers_state_whose_facts_nobody_judged() {
        let fates = [Fate::Hallucinated; 10];
        // A fifth of what was taken for answers about others is about the entity.
        let said = people([[20, 0, 0], [0, 16, 4], [0, 0, 20]], [[0, 20], [20, 20]]);
        let seen = by(&fates, &said);
        assert!(near(seen.breadth_hallucination, 0.8), "{seen:?}");
        assert_eq!((seen.accuracy, seen.depth_hallucination), (None, None));
        // Where none is, there is nothing to know of facts.
        let seen = by(&fates, &people(AGREE, [[0, 0]; 2]));
        assert!(near(seen.accuracy, 0.0), "{seen:?}");
    }

    #[test]
    fn a_longer_sheet_leaves_less_open() {
        let fates = assessment();
        let width = |times: u32| {
            let said = people(AGREE.map(|said| said.map(|rows| rows * times)), [[0, 20 * times]; 2]);
            let interval = by(&fates, &said).abstention.unwrap().interval.unwrap();
            interval.high - interval.low
        };
        let of_judges = metrics(&fates).intervals.abstention.unwrap();
        assert!(width(1) > width(10) && width(10) > of_judges.high - of_judges.low);
        assert!(width(1_000) < 1.02 * (of_judges.high - of_judges.low), "what is left is the questions");
    }

    #[test]
    fn nothing_is_said_of_verdicts_that_nobody_looked_at() {
        let fates = assessment();
        let no_facts = by(&fates, &people(AGREE, [[0, 0]; 2]));
        assert_eq!((no_facts.accuracy, no_facts.depth_hallucination), (None, None));
        assert!(no_facts.abstention.is_some() && no_facts.breadth_hallucination.is_some());
        let no_abstentions = people([[0; KINDS], AGREE[1], AGREE[2]], [[0, 20], [20, 20]]);
        let found = by(&fates, &no_abstentions);
        assert!(near(found.depth_hallucination, 1.0 / 3.0), "it needs no abstentions: {found:?}");
        assert_eq!(Seen { depth_hallucination: None, ..found }, Seen::default());
    }
}
