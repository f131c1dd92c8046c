//! The first question of a model at a server: it is asked alone, and its result decides whether others follow.
//!
//! A list of models is advice: servers chat with models that they do not list, and list models that do not chat. So a
//! question of the benchmark shows it, whose record counts. Until one was answered, a refused key or a wrong name costs one
//! call, and no hundred. A plain state machine, one for each model at a server.

use std::time::Duration;

use domain::FailureCause;
use tokio::time::Instant;

use crate::breaker::{STREAK_MAX, parking_after};

/// Questions under way at once after the first one has failed, to see whether that was its own fault.
pub const SECOND_QUESTIONS_MAX: u32 = STREAK_MAX - 1;

/// What is known of a model at a server from questions.
#[derive(Debug, Default)]
pub struct FirstQuestion {
    stage: Stage,
    /// How often it was left alone in a row, until when, and why.
    left_alone: u32,
    until: Option<Instant>,
    reason: Option<String>,
}

#[derive(Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Open,
    /// The first one failed, which may be its own fault.
    Failed,
    Answered,
}

impl FirstQuestion {
    /// For models that answer in this process: nothing can refuse them.
    pub fn skipped() -> Self {
        Self { stage: Stage::Answered, ..Self::default() }
    }

    /// Questions that may be under way at once; `None` once there was an answer.
    pub fn most(&self) -> Option<u32> {
        match self.stage {
            Stage::Open => Some(1),
            Stage::Failed => Some(SECOND_QUESTIONS_MAX),
            Stage::Answered => None,
        }
    }

    /// A question was answered.
    pub fn answered(&mut self) {
        *self = Self::skipped();
    }

    /// A question failed before any was answered.
    pub fn failed(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Failed;
        }
    }

    /// The next question is a first one again.
    pub fn begin_again(&mut self) {
        self.stage = Stage::Open;
    }

    /// Leaves the server alone for this reason, because others serve the model. Returns for how long.
    pub fn leave_alone(&mut self, reason: String, now: Instant) -> Duration {
        let time = parking_after(self.left_alone);
        self.left_alone += 1;
        (self.stage, self.until, self.reason) = (Stage::Open, Some(now + time), Some(reason));
        time
    }

    /// Whether it is left alone.
    pub fn is_left_alone(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Why the last first question failed, until one is answered.
    pub fn trouble(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// Whether a failure before any answer says that the model cannot be asked there.
pub fn turns_away(cause: FailureCause) -> bool {
    use FailureCause::{Cancelled, ContextExceeded, EvaluatorFailed, JudgeUnparseable, Poisoned};
    !matches!(cause, Cancelled | ContextExceeded | EvaluatorFailed | JudgeUnparseable | Poisoned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::PARKED_FIRST;

    #[test]
    fn one_question_is_asked_until_it_is_answered_and_a_few_after_it_has_failed() {
        let mut first = FirstQuestion::default();
        assert_eq!(first.most(), Some(1));
        first.failed();
        assert_eq!(first.most(), Some(SECOND_QUESTIONS_MAX));
        first.begin_again();
        assert_eq!(first.most(), Some(1), "after a pause");
        first.answered();
        first.failed();
        assert_eq!(first.most(), None, "what answers may fail");
    }

    #[test]
    fn a_server_that_turns_a_model_away_is_left_alone_ever_longer_until_it_answers() {
        let (mut first, mut now) = (FirstQuestion::default(), Instant::now());
        let mut times = Vec::new();
        for _ in 0..6 {
            let time = first.leave_alone("HTTP 404".to_owned(), now);
            assert!(first.is_left_alone(now) && !first.is_left_alone(now + time));
            assert_eq!((first.trouble(), first.most()), (Some("HTTP 404"), Some(1)));
            times.push(time.as_secs());
            now += time;
        }
        assert_eq!(times, [60, 120, 240, 480, 900, 900]);
        first.answered();
        assert_eq!((first.trouble(), first.is_left_alone(now)), (None, false));
        assert_eq!(first.leave_alone(String::new(), now), PARKED_FIRST);
    }
}
