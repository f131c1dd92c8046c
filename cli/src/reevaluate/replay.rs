//! Judges a recorded dialogue again: its scores, and whether it continued by the rules.

use domain::PromptKind;
use results::llmkgbench::{ResultRecord, Speaker};
use tasks::wording::recognise_follow_up;
use tasks::{Effort, Evaluation, Exercise};

/// The step where a dialogue ended.
const STOPPED: &str = "stop";

/// The step of a recorded prompt that is not a known follow-up.
const UNKNOWN: &str = "unknown";

/// The step after an answer, recorded and predicted: the name of a follow-up, or one of the above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepPair {
    pub(super) recorded: &'static str,
    pub(super) predicted: &'static str,
}

impl StepPair {
    pub(super) fn is_equal(self) -> bool {
        self.recorded == self.predicted
    }
}

/// The result of judging a dialogue again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rejudged {
    pub(super) evaluation: Evaluation,
    pub(super) steps: Vec<StepPair>,
}

/// Judges every recorded answer, including those after the point where the dialogue would end by the rules: scores of
/// later rounds are compared in any case.
pub(super) fn rejudge(exercise: &dyn Exercise, record: &ResultRecord, effort: &Effort) -> Rejudged {
    let replayed = tasks::replay(exercise, record.answers(), effort);
    let recorded = recorded_steps(record).into_iter();
    let follow_ups = replayed.follow_ups.iter();
    let predicted =
        follow_ups.map(|follow_up| follow_up.as_ref().map_or(STOPPED, |follow_up| follow_up.kind.as_str()));
    let steps = recorded.zip(predicted).map(|(recorded, predicted)| StepPair { recorded, predicted });
    Rejudged { evaluation: replayed.evaluation, steps: steps.collect() }
}

/// The recorded step after each answer.
fn recorded_steps(record: &ResultRecord) -> Vec<&'static str> {
    let mut steps = Vec::new();
    for interaction in record.interactions() {
        match interaction.speaker {
            Speaker::Response => steps.push(STOPPED),
            Speaker::Prompt => {
                if let Some(step) = steps.last_mut() {
                    *step = recognise_follow_up(interaction.text).map_or(UNKNOWN, PromptKind::as_str);
                }
            }
        }
    }
    steps
}
