//! Which generation a run's queue has.
//!
//! A lease proves nothing but its generation, unit and attempt. So no two queues of a run may have the same generation,
//! whatever the store has lost, whatever it remembers, and whatever its clock says. The sink keeps count: a generation is
//! claimed there, for good and by one coordinator only, before a queue is built in it.
//!
//! A sink that was restored from a copy of before has lost the latest claims, or the whole run, and counts from there once
//! more. If the queue is lost too, before anybody has read its number, nothing is left that knows it. So a number is no
//! mere count: it is above the highest that is known and above the time of day in milliseconds, by a random step. The time
//! keeps numbers in order where claims were lost; the step keeps them apart where a clock that was ahead has made the time
//! say nothing.

use std::hash::{BuildHasher, RandomState};

use domain::machine;
use results::run_dir::GENERATION_STEP_MAX;

/// The number that a generation is to be above: a time of day and chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond {
    now_ms: u64,
    step: u64,
}

impl Beyond {
    /// By the clock of this machine.
    pub(crate) fn now() -> Self {
        let now_ms = u64::try_from(machine::now().as_millisecond()).unwrap_or_default();
        let step = machine::random(|| RandomState::new().hash_one(now_ms)) % GENERATION_STEP_MAX;
        Self { now_ms, step }
    }

    fn above(self, highest: u64) -> u64 {
        (highest + 1).max(self.now_ms) + self.step
    }
}

/// What is to be done about a run's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is there, in the generation that was claimed last.
    Join,
    /// It is there in a generation that nobody claimed: it was built by a version that claimed none, or the claims were lost
    /// with their sink. It counts as claimed from now on.
    Adopt(u64),
    /// It is not there, or in an earlier generation: the store was restored from an older state. It is built in this one.
    Build(u64),
}

/// What is to be done, by the generation in which the queue was `found`, the highest that was `claimed`, the highest that
/// records tell of, one that was claimed here and is still `unused`, and what a new one is to be `beyond`.
pub(crate) fn step(
    found: Option<u64>,
    claimed: Option<u64>,
    recorded: u64,
    unused: Option<u64>,
    beyond: Beyond,
) -> Step {
    match found {
        Some(found) if claimed == Some(found) => Step::Join,
        Some(found) if claimed.is_none_or(|claimed| claimed < found) => Step::Adopt(found),
        _ if unused.is_some() && unused == claimed => Step::Build(claimed.unwrap_or_default()),
        _ => Step::Build(beyond.above(claimed.unwrap_or_default().max(recorded))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At this time, a step of this length further.
    fn at(now_ms: u64, step: u64) -> Beyond {
        Beyond { now_ms, step }
    }

    #[test]
    fn a_queue_is_built_above_everything_that_is_known() {
        assert_eq!(step(None, None, 0, None, at(0, 0)), Step::Build(1));
        assert_eq!(step(None, Some(4), 0, None, at(0, 0)), Step::Build(5));
        assert_eq!(step(None, Some(4), 9, None, at(0, 0)), Step::Build(10));
        assert_eq!(step(Some(3), Some(4), 2, None, at(0, 0)), Step::Build(5), "an older state came back");
    }

    #[test]
    fn the_latest_queue_is_joined_whoever_built_it() {
        assert_eq!(step(Some(4), Some(4), 4, None, at(0, 0)), Step::Join);
        assert_eq!(step(Some(4), Some(4), 900, None, at(0, 0)), Step::Join, "no record makes a queue old");
        assert_eq!(step(Some(4), Some(3), 0, None, at(0, 0)), Step::Adopt(4));
        assert_eq!(step(Some(4), None, 0, None, at(0, 0)), Step::Adopt(4));
    }

    #[test]
    fn a_claim_that_built_nothing_is_used_unless_another_came_after_it() {
        assert_eq!(step(None, Some(4), 0, Some(4), at(0, 0)), Step::Build(4));
        assert_eq!(step(Some(2), Some(4), 0, Some(4), at(0, 0)), Step::Build(4));
        assert_eq!(step(None, Some(5), 0, Some(4), at(0, 0)), Step::Build(6));
    }

    #[test]
    fn a_number_is_not_used_again_though_its_claim_is_forgotten() {
        assert_eq!(step(None, None, 0, None, at(1_000, 5)), Step::Build(1_005));
        assert_eq!(step(None, Some(1_000), 0, None, at(2_000, 5)), Step::Build(2_005));
        assert_eq!(
            step(None, Some(1_000), 0, None, at(3_000, 5)),
            Step::Build(3_005),
            "2 005 was restored away"
        );
        assert_eq!(step(None, None, 0, None, at(4_000, 5)), Step::Build(4_005), "and the whole run");
        assert_eq!(step(None, Some(4_000), 0, None, at(10, 5)), Step::Build(4_006), "the clock was set back");
        assert_eq!(
            step(None, Some(4_000), 0, None, at(10, 9)),
            Step::Build(4_010),
            "and 4 006 restored away"
        );
        let drawn = [Beyond::now(), Beyond::now()].map(|beyond| beyond.step);
        assert!(drawn[0] != drawn[1] && drawn.iter().all(|step| *step < GENERATION_STEP_MAX), "{drawn:?}");
    }
}
