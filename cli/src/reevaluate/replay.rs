//! One recorded dialogue judged again: the step function fed with recorded answers.

use domain::PromptKind;
use tasks::wording::recognise_follow_up;
use tasks::{Dialogue, Effort, Evaluation, Exercise, Next};

/// A recorded dialogue as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transcript<'a> {
    /// The answers, in order.
    pub(super) answers: Vec<&'a str>,
    /// The prompt that followed each answer, if one did.
    pub(super) followed_by: Vec<Option<&'a str>>,
}

/// What happened after an answer, recorded and predicted. Nothing means that the dialogue stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepPair {
    pub(super) recorded: RecordedStep,
    pub(super) predicted: Option<PromptKind>,
}

/// What a record says about the step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedStep {
    Stopped,
    Asked(PromptKind),
    /// A prompt that is none of the known follow-ups.
    AskedUnknown,
}

impl StepPair {
    pub(super) fn is_equal(self) -> bool {
        match (self.recorded, self.predicted) {
            (RecordedStep::Stopped, None) => true,
            (RecordedStep::Asked(recorded), Some(predicted)) => recorded == predicted,
            _ => false,
        }
    }
}

/// The outcome of judging a dialogue again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Replayed {
    pub(super) evaluation: Evaluation,
    pub(super) steps: Vec<StepPair>,
}

/// Judges every recorded answer, also those after a point where the rules would have stopped: the scores of later
/// rounds are compared whatever happened before.
pub(super) fn replay(exercise: &dyn Exercise, transcript: &Transcript<'_>, effort: &Effort) -> Replayed {
    let mut dialogue = Dialogue::new(exercise.shots());
    let mut steps = Vec::with_capacity(transcript.answers.len());
    for (answer, followed_by) in transcript.answers.iter().zip(&transcript.followed_by) {
        let predicted = match dialogue.take(exercise.judge(answer, effort)) {
            Next::Ask(follow_up) => Some(follow_up.kind),
            Next::Done => None,
        };
        let recorded = match followed_by {
            None => RecordedStep::Stopped,
            Some(prompt) => {
                recognise_follow_up(prompt).map_or(RecordedStep::AskedUnknown, RecordedStep::Asked)
            }
        };
        steps.push(StepPair { recorded, predicted });
    }
    Replayed { evaluation: dialogue.into_evaluation(), steps }
}
