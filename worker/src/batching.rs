//! What is otherwise for models that are asked in batches: their answers come after hours.

use std::time::Duration;

use domain::ModelSpec;
use models::{BATCH_WINDOW, RetryPolicy};

use crate::dialogue::Deadlines;

/// Dialogues in flight, where the configuration does not say so: as many share a batch, and each holds its prompt in
/// memory.
const DIALOGUES: u32 = 2048;

/// How long a call may take beyond the time that its batch has: questions are gathered before it, and its answers read
/// after it.
const BESIDE_WINDOW: Duration = Duration::from_secs(2 * 3600);

/// Batches that a dialogue may wait for: one for each of its rounds, and one more where a batch has come to nothing.
const BATCHES_PER_DIALOGUE_MAX: u32 = 4;

/// Attempts of a call after faults, including the first. Each of them may take a day.
const ATTEMPTS_MAX: u32 = 3;

/// Longest pause before a batch that was refused because too much waits already is asked for again.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// How many dialogues of a model are in flight; `None` if that adapts.
pub(crate) fn dialogues(spec: &ModelSpec) -> Option<u32> {
    spec.concurrency.or_else(|| spec.is_batched().then_some(DIALOGUES))
}

/// How long a dialogue of a model may take.
pub(crate) fn deadlines(spec: &ModelSpec, usual: Deadlines) -> Deadlines {
    if !spec.is_batched() {
        return usual;
    }
    let call = BATCH_WINDOW + BESIDE_WINDOW;
    Deadlines { call, dialogue: call * BATCHES_PER_DIALOGUE_MAX }
}

/// How often its calls are repeated.
pub(crate) fn retries(spec: &ModelSpec, usual: &RetryPolicy) -> RetryPolicy {
    if !spec.is_batched() {
        return usual.clone();
    }
    RetryPolicy {
        attempts_max: ATTEMPTS_MAX.min(usual.attempts_max),
        delay_max: PAUSE_MAX,
        retry_after_max: PAUSE_MAX,
        total_max: deadlines(spec, Deadlines::default()).dialogue,
        ..usual.clone()
    }
}

#[cfg(test)]
mod tests {
    use domain::{CallMode, Connector, RetryAdvice};
    use models::retry::RetryState;

    use super::*;

    #[test]
    fn a_batch_that_expired_is_asked_again_within_the_time_of_its_dialogue() {
        let spec = ModelSpec { mode: CallMode::Batch, ..ModelSpec::new("m", Connector::Anthropic) };
        let deadlines = deadlines(&spec, Deadlines::default());
        assert!(deadlines.call > BATCH_WINDOW && deadlines.dialogue >= 3 * BATCH_WINDOW);
        let policy = retries(&spec, &RetryPolicy::default());
        let mut attempts = RetryState::new(&policy, 1);
        let pause = attempts.after(RetryAdvice::Transient, BATCH_WINDOW).unwrap();
        assert!(pause <= PAUSE_MAX);
        assert!(attempts.after(RetryAdvice::Transient, 2 * BATCH_WINDOW).is_some());
        assert!(attempts.after(RetryAdvice::Transient, 3 * BATCH_WINDOW).is_none());
        assert_eq!(dialogues(&spec), Some(DIALOGUES));
    }

    #[test]
    fn whoever_answers_at_once_has_the_usual_time() {
        let spec = ModelSpec { concurrency: Some(3), ..ModelSpec::new("m", Connector::Anthropic) };
        assert_eq!(deadlines(&spec, Deadlines::default()), Deadlines::default());
        assert_eq!(retries(&spec, &RetryPolicy::none()), RetryPolicy::none());
        assert_eq!(dialogues(&spec), Some(3));
        assert_eq!(dialogues(&ModelSpec::new("m", Connector::Anthropic)), None);
    }
}
