//! The scale that the benchmarks of a table share.
//!
//! The weighted accuracy (Wa) compares assessments by their difficulty. So all models of all benchmarks that stand beside each
//! other need one mean difficulty and one range of popularity. Weights that were learnt on their graph bring both; otherwise
//! both are computed from what is shown, and Wa may change when something else is shown with it.

use super::found::{JudgedQuestion, ModelFound, PipelineNumbers};
use crate::kinds::kghalubench::draw::Assessment;
use crate::kinds::kghalubench::numbers::metrics::{AnsweredQuestion, mean_difficulty};
use crate::kinds::kghalubench::numbers::{Difficulty, Ranges, Weights};

/// The share of questions about entities of known types from which on weights are weights of a graph: rare types may be missing
/// in what they were learnt from.
const KNOWN_SHARE_MIN: f64 = 0.9;

/// The questions whose entity's type the weights do not know.
pub(super) fn unknown(weights: &Weights, found: &PipelineNumbers) -> usize {
    let asked = found.assessments.iter().flat_map(|assessment| &assessment.questions);
    asked.filter(|question| !weights.types.contains_key(&question.type_id)).count()
}

/// Whether the weights are of the graph that a benchmark asks about.
pub(super) fn knows(weights: &Weights, found: &PipelineNumbers) -> bool {
    let asked: usize = found.assessments.iter().map(|assessment| assessment.questions.len()).sum();
    unknown(weights, found) as f64 <= (1.0 - KNOWN_SHARE_MIN) * asked as f64
}

/// See the text of the module.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonScale {
    ranges: Ranges,
    /// `None` if nothing is scored.
    mean_difficulty: Option<f64>,
    of: ScaleOf,
}

/// Where a scale is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaleOf {
    Weights,
    /// Of so many benchmarks that are shown together.
    Shown(usize),
}

impl CommonScale {
    /// The scale of these benchmarks, if they are shown together.
    pub fn of(shown: &[&PipelineNumbers], weights: &Weights) -> Self {
        let are_known = shown.iter().all(|found| knows(weights, found));
        if let Some(scale) = weights.scale.filter(|_| are_known) {
            let mean_difficulty = Some(scale.mean_difficulty);
            return Self { ranges: Ranges::of_scale(&scale), mean_difficulty, of: ScaleOf::Weights };
        }
        let ranges = Ranges::of(weights, shown.iter().flat_map(|found| &found.assessments));
        let answered: Vec<AnsweredModel> = shown
            .iter()
            .flat_map(|found| {
                let difficulty = Difficulty::within(weights, ranges, &found.assessments);
                let of = |model: &ModelFound| AnsweredModel::of(model, &found.assessments, &difficulty);
                found.models.iter().map(of).collect::<Vec<_>>()
            })
            .collect();
        let mean_difficulty = mean_difficulty(answered.iter().flat_map(|model| &model.by_assessment));
        Self { ranges, mean_difficulty, of: ScaleOf::Shown(shown.len()) }
    }

    /// The difficulties of questions on it.
    pub(super) fn difficulty<'w>(&self, weights: &'w Weights, assessments: &[Assessment]) -> Difficulty<'w> {
        Difficulty::within(weights, self.ranges, assessments)
    }

    /// The difficulty at which Wa equals accuracy.
    pub(super) fn mean_difficulty(&self) -> Option<f64> {
        self.mean_difficulty
    }

    /// Which scale it is, for people.
    pub(super) fn words(&self) -> String {
        let Some(mean) = self.mean_difficulty else { return "nothing is scored yet".to_owned() };
        match self.of {
            ScaleOf::Weights => format!("scale: mean difficulty {mean:.4}, of the weights"),
            ScaleOf::Shown(1) => format!("scale: mean difficulty {mean:.4}, of all models shown"),
            ScaleOf::Shown(_) => format!("scale: mean difficulty {mean:.4}, of all benchmarks shown"),
        }
    }
}

/// The answers of a model with their difficulties.
#[derive(Clone, Debug)]
pub(super) struct AnsweredModel {
    pub(super) by_assessment: Vec<Vec<AnsweredQuestion>>,
    /// Difficulty and share of points of each scored question.
    pub(super) points: Vec<(f64, f64)>,
}

impl AnsweredModel {
    pub(super) fn of(found: &ModelFound, assessments: &[Assessment], difficulty: &Difficulty<'_>) -> Self {
        let mut by_assessment: Vec<Vec<AnsweredQuestion>> = vec![Vec::new(); assessments.len()];
        let mut points = Vec::new();
        for answer in &found.answers {
            let JudgedQuestion { assessment, question, fate, .. } = *answer;
            let Some(answered) = difficulty.answered(assessments, assessment, question, fate) else {
                continue;
            };
            by_assessment[assessment].push(answered);
            points.extend(fate.share().map(|share| (answered.difficulty, share)));
        }
        Self { by_assessment, points }
    }
}
