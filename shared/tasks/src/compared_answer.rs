//! The answer that a dialogue's headline is about, read again for people.

use domain::{Infos, Scores};

use crate::compared::ComparedPart;
use crate::dialogue::{headline_answer, infos_of_answer};
use crate::exercise::{Effort, EvaluationLimits, EvaluationStage, Exercise, Limit};
use crate::families::TaskClass;

/// The answer that a dialogue's headline is about, beside what its case expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedAnswer {
    /// Which answer it is, as in ` (answer 2 of 3)`; empty where there is one.
    pub place: String,
    pub parts: Vec<ComparedPart>,
    /// An answer with full marks, if the case does not say of every part what it expects.
    pub reference: Option<String>,
}

impl ComparedAnswer {
    /// Reads that answer of a dialogue again; `scores` and `infos` are those of the dialogue. Answers are hostile: this needs a
    /// stack as large as their evaluation has.
    pub fn of(
        (class, exercise): (TaskClass, &dyn Exercise),
        answers: &[&str],
        (scores, infos): (&Scores, &Infos),
        limits: EvaluationLimits,
    ) -> Self {
        let number = headline_answer(class.headline, scores, answers.len()).unwrap_or_default();
        let answer = answers.get(number).copied().unwrap_or_default();
        let infos = infos_of_answer(infos, number);
        // An answer that hit a limit would hit it again.
        let stage = Limit::in_infos(infos).map_or(EvaluationStage::Full, EvaluationStage::WithoutParsing);
        let parts = exercise.compared(answer, infos, &Effort { limits, stage });
        let count = answers.len();
        let place = if count > 1 { format!(" (answer {} of {count})", number + 1) } else { String::new() };
        Self { place, parts, reference: None }
    }

    /// The same with an answer with full marks, where parts do not say all that is expected.
    #[must_use]
    pub fn with_reference(self, reference: Option<&str>) -> Self {
        let says_all = !self.parts.is_empty() && self.parts.iter().all(|part| part.expected.is_some());
        Self { reference: reference.filter(|_| !says_all).map(str::to_owned), ..self }
    }
}
