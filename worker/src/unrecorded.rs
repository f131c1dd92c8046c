//! What dialogues have used whose records are dropped: a model was parked, or an answer could not be judged here. It was paid, and
//! costs and caps follow from records alone, so the next record of the same model and run carries it, as a failed call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::dialogue::FailedCall;
use domain::{FailureCause, ModelUsage, RunId, Usage};
use jiff::Timestamp;

use crate::slots::LaneKey;

/// The sums of all lanes, and why the last record of each was dropped. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unrecorded(Arc<Mutex<BTreeMap<LaneKey, (ModelUsage, FailureCause)>>>);

impl Unrecorded {
    /// Keeps what a dialogue used whose record is dropped.
    pub(crate) fn add(&self, lane: LaneKey, used: &ModelUsage, cause: FailureCause) {
        if used.prompt_tokens == 0 && used.completion_tokens == 0 {
            return;
        }
        let mut lanes = self.lock();
        let (sum, last) = lanes.entry(lane).or_insert_with(|| (ModelUsage::default(), cause));
        *sum += used;
        *last = cause;
    }

    /// Hands over what is kept of a lane, for a record of it. If that is dropped, too, it comes back with it.
    pub(crate) fn take(&self, lane: &LaneKey, now: Timestamp) -> Option<FailedCall> {
        let (used, cause) = self.lock().remove(lane)?;
        let usage = Usage {
            prompt_tokens: Some(used.prompt_tokens),
            cached_tokens: Some(used.cached_tokens).filter(|tokens| *tokens > 0),
            completion_tokens: Some(used.completion_tokens),
            reasoning_tokens: None,
        };
        let message = "used by dialogues of this model whose records were dropped".to_owned();
        Some(FailedCall { at: now, cause, message, usage })
    }

    /// Forgets a run that this worker holds no longer.
    pub(crate) fn forget(&self, run: &RunId) {
        self.lock().retain(|lane, _| lane.run != *run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LaneKey, (ModelUsage, FailureCause)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(run: &str) -> LaneKey {
        LaneKey { run: RunId::new(run), model: "m".into() }
    }

    #[test]
    fn what_is_dropped_is_handed_over_once_and_as_a_whole() {
        let unrecorded = Unrecorded::default();
        let used = ModelUsage { prompt_tokens: 100, completion_tokens: 7, ..ModelUsage::default() };
        unrecorded.add(lane("a"), &used, FailureCause::Server);
        unrecorded.add(lane("a"), &used, FailureCause::WrongModel);
        unrecorded.add(lane("b"), &ModelUsage::default(), FailureCause::Connection);
        let now = Timestamp::UNIX_EPOCH;
        let call = unrecorded.take(&lane("a"), now).unwrap();
        let tokens = (call.usage.prompt_tokens, call.usage.completion_tokens, call.usage.cached_tokens);
        assert_eq!((tokens, call.cause), ((Some(200), Some(14), None), FailureCause::WrongModel));
        assert_eq!((unrecorded.take(&lane("a"), now), unrecorded.take(&lane("b"), now)), (None, None));
        unrecorded.add(lane("a"), &used, FailureCause::Server);
        unrecorded.forget(&RunId::new("a"));
        assert_eq!(unrecorded.take(&lane("a"), now), None);
    }
}
