//! How often the intervals of `kgfleet halu agreement --numbers` hold the truth: models whose answers are known, judges that err at
//! known rates, and sheets that people annotate without an error.

use benchmarks::kinds::kghalubench::numbers::ModelMetrics;
use benchmarks::kinds::kghalubench::numbers::metrics::{AnsweredQuestion, FactDecision, Fate, Filter};
use benchmarks::kinds::kghalubench::numbers::people::{AnswerKind, PeopleSay, Seen, SeenNumber, seen};
use domain::seed::SplitMix64;

/// Simulated benchmarks of each line.
const REPETITIONS: u32 = 1_000;

/// Assessments of a benchmark.
const ASSESSMENTS: usize = 10;

/// Least share of intervals that hold the truth, with the standard error of measuring it taken off.
const BOUND: f64 = 0.93;

/// How a model answers, and how judges err.
#[derive(Clone, Copy)]
struct World {
    name: &'static str,
    /// Questions of an assessment.
    questions: u32,
    /// Rows of the sheet.
    rows: usize,
    /// Shares of abstentions and of answers about another entity in the middle assessment.
    abstains: f64,
    is_other: f64,
    /// Share of facts that answers about the entity state.
    states: f64,
    /// Share of verdicts on answers, and on facts, that are wrong.
    wrong_answers: f64,
    wrong_facts: f64,
}

const USUAL: World = World {
    name: "ten assessments of 150 questions, 200 rows, a tenth of the verdicts wrong",
    questions: 150,
    rows: 200,
    abstains: 0.15,
    is_other: 0.25,
    states: 0.6,
    wrong_answers: 0.1,
    wrong_facts: 0.15,
};

const WORLDS: [World; 5] = [
    USUAL,
    World { name: "judges that hardly err", wrong_answers: 0.01, wrong_facts: 0.02, ..USUAL },
    World { name: "judges that err often", wrong_answers: 0.25, wrong_facts: 0.3, ..USUAL },
    World { name: "ten assessments of 20 questions, 60 rows", questions: 20, rows: 60, ..USUAL },
    World {
        name: "a model that hardly abstains or errs",
        abstains: 0.02,
        is_other: 0.03,
        states: 0.95,
        ..USUAL
    },
];

/// An answer as it is, and as judges see it.
struct Answer {
    kind: AnswerKind,
    stated: [bool; 3],
    judged: Fate,
}

impl World {
    /// Assessments differ: the first abstain half as often as the middle one, the last half as often again.
    fn abstention(&self, assessment: usize) -> f64 {
        self.abstains * (0.5 + assessment as f64 / (ASSESSMENTS - 1) as f64)
    }

    /// The numbers with all questions that there could be.
    fn truth(&self) -> Seen<f64> {
        let mut sums = Seen::<f64>::default();
        for assessment in 0..ASSESSMENTS {
            let abstains = self.abstention(assessment);
            let same = 1.0 - abstains - self.is_other;
            sums.accuracy += abstains / 3.0 + same * self.states;
            sums.abstention += abstains;
            sums.breadth_hallucination += self.is_other / (1.0 - abstains);
            sums.depth_hallucination += 1.0 - self.states;
        }
        let mean = |sum: f64| sum / ASSESSMENTS as f64;
        Seen {
            accuracy: mean(sums.accuracy),
            // All questions are as hard as the scale.
            weighted_accuracy: mean(sums.accuracy),
            abstention: mean(sums.abstention),
            breadth_hallucination: mean(sums.breadth_hallucination),
            depth_hallucination: mean(sums.depth_hallucination),
        }
    }

    fn answer(&self, assessment: usize, random: &mut SplitMix64) -> Answer {
        let abstains = self.abstention(assessment);
        let drawn = random.unit();
        let kind = if drawn < abstains {
            AnswerKind::Abstention
        } else if drawn < abstains + self.is_other {
            AnswerKind::Other
        } else {
            AnswerKind::Same
        };
        let stated = [(); 3].map(|()| kind == AnswerKind::Same && random.unit() < self.states);
        let seen = if random.unit() >= self.wrong_answers {
            kind
        } else {
            match kind {
                AnswerKind::Abstention | AnswerKind::Same => AnswerKind::Other,
                AnswerKind::Other => AnswerKind::Same,
            }
        };
        let judged = match seen {
            AnswerKind::Abstention => Fate::Abstained,
            AnswerKind::Other => Fate::Hallucinated,
            AnswerKind::Same => Fate::Aligned(stated.map(|stated| {
                let correct = stated != (random.unit() < self.wrong_facts);
                // The classifier passes on what it does not find stated.
                let by = match random.unit() {
                    drawn if correct && drawn < 0.6 => Filter::Nli,
                    drawn if drawn < 0.9 => Filter::Llm,
                    _ => Filter::Expert,
                };
                FactDecision { correct, by }
            })),
        };
        Answer { kind, stated, judged }
    }

    /// The numbers by people of one simulated benchmark.
    fn once(&self, random: &mut SplitMix64) -> Seen<Option<SeenNumber>> {
        let answers: Vec<Vec<Answer>> = (0..ASSESSMENTS)
            .map(|assessment| (0..self.questions).map(|_| self.answer(assessment, random)).collect())
            .collect();
        let answered = |answers: &Vec<Answer>| {
            let of = |(question, answer): (u32, &Answer)| AnsweredQuestion {
                question,
                fate: answer.judged,
                difficulty: 0.5,
            };
            (0..).zip(answers).map(of).collect()
        };
        let by_assessment: Vec<Vec<AnsweredQuestion>> = answers.iter().map(answered).collect();
        let metrics = ModelMetrics::of(&by_assessment, Some(0.5));
        let people = self.sheet(answers.iter().flatten(), random);
        seen(answers.iter().flatten().map(|answer| &answer.judged), &metrics, &people.shares())
    }

    /// A sheet with as many rows of each deciding stage, as far as it reaches.
    fn sheet<'a>(&self, answers: impl Iterator<Item = &'a Answer>, random: &mut SplitMix64) -> PeopleSay {
        let mut strata: [Vec<(&Answer, Option<usize>)>; 6] = Default::default();
        for answer in answers {
            match &answer.judged {
                Fate::Abstained => strata[0].push((answer, None)),
                Fate::Hallucinated => strata[1].push((answer, None)),
                Fate::Aligned(facts) => {
                    strata[2].push((answer, None));
                    for (number, fact) in facts.iter().enumerate() {
                        strata[3 + fact.by as usize].push((answer, Some(number)));
                    }
                }
                Fate::NotScored => {}
            }
        }
        let mut people = PeopleSay::default();
        let mut drawn = 0;
        while drawn < self.rows && strata.iter().any(|stratum| !stratum.is_empty()) {
            for stratum in &mut strata {
                if drawn == self.rows || stratum.is_empty() {
                    continue;
                }
                let (answer, fact) = stratum.swap_remove((random.next_u64() % stratum.len() as u64) as usize);
                drawn += 1;
                match (fact, &answer.judged) {
                    (Some(fact), Fate::Aligned(facts)) => people.add_fact(facts[fact], answer.stated[fact]),
                    (_, judged) => {
                        if let Some(judged) = AnswerKind::of(judged) {
                            people.add_answer(judged, answer.kind);
                        }
                    }
                }
            }
        }
        people
    }
}

/// Of how many intervals it is known, and how many hold the truth.
#[derive(Clone, Copy, Default)]
struct Held {
    known: u32,
    held: u32,
}

impl Held {
    fn add(&mut self, truth: f64, number: Option<SeenNumber>) {
        if let Some(interval) = number.and_then(|number| number.interval) {
            self.known += 1;
            self.held += u32::from(interval.low <= truth && truth <= interval.high);
        }
    }
}

fn main() {
    println!("{REPETITIONS} benchmarks a line; a share less its standard error must be {BOUND}");
    let mut below = 0;
    for world in WORLDS {
        let truth = world.truth();
        let mut random = SplitMix64::new(SplitMix64::mix(7));
        let mut held = [Held::default(); 4];
        for _ in 0..REPETITIONS {
            let numbers = world.once(&mut random);
            held[0].add(truth.accuracy, numbers.accuracy);
            held[1].add(truth.abstention, numbers.abstention);
            held[2].add(truth.breadth_hallucination, numbers.breadth_hallucination);
            held[3].add(truth.depth_hallucination, numbers.depth_hallucination);
        }
        let names = ["accuracy", "abstained", "Halu_BOK", "Halu_DOK"];
        let told = names.into_iter().zip(held).map(|(name, held)| {
            let share = f64::from(held.held) / f64::from(held.known.max(1));
            let error = (share * (1.0 - share) / f64::from(held.known.max(1))).sqrt();
            below += u32::from(share - error < BOUND);
            format!("{name} {share:.3} of {}", held.known)
        });
        println!("{}: {}", world.name, told.collect::<Vec<_>>().join(", "));
    }
    println!("{below} of {} are below the bound", 4 * WORLDS.len());
}
