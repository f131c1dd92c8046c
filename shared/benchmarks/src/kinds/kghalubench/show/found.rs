//! The verdicts of judges on the answers of models, as they were read from a benchmark. No weights are in them, so the same
//! verdicts give a study for any weights.

use std::collections::BTreeSet;

use tasks::{TaskData, Wording};

use crate::judging::Judging;
use crate::kinds::kghalubench::draw::question::FACTS;
use crate::kinds::kghalubench::draw::{Assessment, question};
use crate::kinds::kghalubench::judge::edition1::EDITION_1;
use crate::kinds::kghalubench::numbers::metrics::Fate;
use crate::wordings::{JudgeWordings, fingerprint};

/// What the records of a judged benchmark contain.
#[derive(Clone, Debug, Default)]
pub struct PipelineNumbers {
    /// Its name.
    pub pipeline: String,
    /// The questions.
    pub assessments: Vec<Assessment>,
    /// The models under test, with their verdicts.
    pub models: Vec<ModelFound>,
    /// What was asked in which words.
    pub wordings: WordingsUsed,
    /// Notes for readers.
    pub remarks: Vec<String>,
}

/// The wordings of a benchmark, by their fingerprints: results under others are of another question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordingsUsed {
    /// Of the questions to models under test, with whether they are the program's own; several where packs of several are mixed.
    pub questions: BTreeSet<(String, bool)>,
    /// Of the questions to all judges together.
    pub judges: String,
    /// The stages whose wording the configuration brings.
    pub chosen: Vec<String>,
}

impl WordingsUsed {
    /// The wordings of the judges; none of questions yet.
    pub fn of_judges(judging: &Judging, chosen: &JudgeWordings) -> Self {
        let tasks: Vec<TaskData> = judging.stages.iter().map(|stage| stage.task_in(chosen)).collect();
        Self {
            questions: BTreeSet::new(),
            judges: fingerprint(tasks.iter().map(|task| &task.wording)),
            chosen: chosen.keys().cloned().collect(),
        }
    }

    /// Takes the wording of an assessment into account.
    pub fn add_questions(&mut self, wording: &Wording) {
        self.questions.insert((fingerprint([wording]), *wording == question::wording()));
    }

    /// A note for people, unless all is worded as it is where nobody chooses anything.
    pub fn told(&self) -> Option<String> {
        let first = Self::of_judges(&EDITION_1, &JudgeWordings::new());
        if self.judges == first.judges && self.questions.iter().all(|(_, is_own)| *is_own) {
            return None;
        }
        let of_questions = self.questions.iter().map(|(fingerprint, is_own)| {
            format!("{fingerprint} ({})", if *is_own { "the program's" } else { "the pack's" })
        });
        let questions: Vec<String> = of_questions.collect();
        let of_judges = match self.chosen.as_slice() {
            [] => "the program's".to_owned(),
            chosen => format!("the program's, but for {}", chosen.join(", ")),
        };
        Some(format!("Wordings: questions {}; judges {} ({of_judges}).", questions.join(", "), self.judges))
    }
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
    /// How long it took to decide each fact of an aligned answer, in seconds.
    pub fact_seconds: Option<[f64; FACTS]>,
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
                    fact_seconds: matches!(fates[place % 4], Fate::Aligned(_)).then_some([0.5, 2.0, 3.5]),
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
        PipelineNumbers { pipeline: "p".to_owned(), assessments, models, ..PipelineNumbers::default() }
    }
}
