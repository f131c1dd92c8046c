//! Judges a recorded dialogue again: its scores, and whether it continued by the rules.

use domain::PromptKind;
use results::llmkgbench::{ResultRecord, Speaker};
use tasks::wording::recognise_follow_up;
use tasks::{Effort, Evaluation, Exercise};

/// The step after an answer, recorded and predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepPair {
    pub(super) recorded: ReplayStep,
    pub(super) predicted: ReplayStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayStep {
    Stopped,
    Asked(PromptKind),
    /// A recorded prompt that is not a known follow-up.
    AskedUnknown,
}

impl StepPair {
    pub(super) fn is_equal(self) -> bool {
        self.recorded == self.predicted
    }
}

impl ReplayStep {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stop",
            Self::Asked(kind) => kind.as_str(),
            Self::AskedUnknown => "unknown",
        }
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
    let predicted = replayed.follow_ups.iter().map(|follow_up| {
        follow_up.as_ref().map_or(ReplayStep::Stopped, |follow_up| ReplayStep::Asked(follow_up.kind))
    });
    let steps = recorded.zip(predicted).map(|(recorded, predicted)| StepPair { recorded, predicted });
    Rejudged { evaluation: replayed.evaluation, steps: steps.collect() }
}

/// The recorded step after each answer.
fn recorded_steps(record: &ResultRecord) -> Vec<ReplayStep> {
    let mut steps = Vec::new();
    for interaction in record.interactions() {
        match interaction.speaker {
            Speaker::Response => steps.push(ReplayStep::Stopped),
            Speaker::Prompt => {
                if let Some(step) = steps.last_mut() {
                    *step = recognise_follow_up(interaction.text)
                        .map_or(ReplayStep::AskedUnknown, ReplayStep::Asked);
                }
            }
        }
    }
    steps
}
