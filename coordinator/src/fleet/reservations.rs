//! Reserves workers for suspects that wait too long.
//!
//! A suspect runs alone, so it waits until its model has no other unit left and a worker is idle. If another run keeps all
//! workers busy, this never happens. Then one worker is reserved: it gets nothing until it holds nothing, and then a
//! suspect. Each coordinator remembers this on its own; another one may reserve a worker too, which only costs time.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{ModelLabel, RunId, WorkerId};

/// A reserved worker that was silent for this long is replaced by another one. Workers that wait for work report at least
/// twice in this time.
const KEPT_FREE_FOR: Duration = Duration::from_secs(60);

/// Waiting suspects.
#[derive(Debug, Default)]
pub(crate) struct SuspectReservations {
    waiting: BTreeMap<(RunId, ModelLabel), Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// Since when none of them was leased.
    since: Duration,
    /// Their number when last observed.
    suspects: u64,
    /// The reserved worker, and until when.
    kept_free: Option<(WorkerId, Duration)>,
}

impl SuspectReservations {
    /// Notes the number of waiting suspects with no other unit before them.
    pub(crate) fn observe(&mut self, run: &RunId, model: &ModelLabel, suspects: u64, now: Duration) {
        let key = (run.clone(), model.clone());
        if suspects == 0 {
            self.waiting.remove(&key);
            return;
        }
        let waiting = self.waiting.entry(key).or_insert(Waiting { since: now, suspects, kept_free: None });
        if suspects < waiting.suspects {
            (waiting.since, waiting.kept_free) = (now, None);
        }
        waiting.suspects = suspects;
    }

    /// Whether this worker is reserved, now or already, for the suspects of a model that have waited for `max_wait`.
    pub(crate) fn keeps_free(
        &mut self,
        run: &RunId,
        model: &ModelLabel,
        worker: &WorkerId,
        now: Duration,
        max_wait: Duration,
    ) -> bool {
        let Some(waiting) = self.waiting.get_mut(&(run.clone(), model.clone())) else { return false };
        let overdue = now.saturating_sub(waiting.since) >= max_wait;
        let is_other = |(other, until): &(WorkerId, Duration)| other != worker && now < *until;
        if !overdue || waiting.kept_free.as_ref().is_some_and(is_other) {
            return false;
        }
        waiting.kept_free = Some((worker.clone(), now + KEPT_FREE_FOR));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_is_kept_free_for_suspects_that_waited_too_long() {
        let (run, model) = (RunId::new("r"), ModelLabel::new("m"));
        let (one, two) = (WorkerId::new("one"), WorkerId::new("two"));
        let at = |s| Duration::from_secs(s);
        let late = 60;
        let keeps_free = |patience: &mut SuspectReservations, worker: &WorkerId, now| {
            patience.keeps_free(&run, &model, worker, now, at(late))
        };
        let mut patience = SuspectReservations::default();
        patience.observe(&run, &model, 2, at(0));
        assert!(!keeps_free(&mut patience, &one, at(late - 1)));
        assert!(keeps_free(&mut patience, &one, at(late)));
        assert!(!keeps_free(&mut patience, &two, at(late + 1)));
        assert!(keeps_free(&mut patience, &one, at(late + 2)));
        // It was not heard of again.
        let gone = late + 2 + KEPT_FREE_FOR.as_secs();
        assert!(keeps_free(&mut patience, &two, at(gone)));
        // One ran: the others wait from then on.
        patience.observe(&run, &model, 1, at(gone));
        assert!(!keeps_free(&mut patience, &two, at(gone + late - 1)));
        assert!(keeps_free(&mut patience, &one, at(gone + late)));
        // Another unit of the model stands before it.
        patience.observe(&run, &model, 0, at(gone + late));
        assert!(!keeps_free(&mut patience, &one, at(gone + late)));
    }
}
