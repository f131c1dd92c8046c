//! The retry logic of one judgement when children die.

use tasks::{Limit, Stage};

use super::death::Death;
use crate::evaluate::EvaluatorError;

/// Children that one judgement may lose for external reasons. One death is bad luck; after this many in a row,
/// something is wrong here that another worker may not have.
pub(super) const LOSSES_MAX: u32 = 3;

/// The progress of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    stage: Stage,
    /// A child died at this stage, possibly because of the answer.
    suspected: bool,
    /// Children lost for external reasons.
    losses: u32,
}

impl Course {
    /// Starts with full effort.
    pub(super) fn new() -> Self {
        Self { stage: Stage::Full, suspected: false, losses: 0 }
    }

    /// The effort to try now.
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Records the death of a child. A limit that is proven, or hit again by a fresh child, lowers the effort by one
    /// stage; after any other death the judgement is repeated unchanged.
    ///
    /// # Errors
    /// Nothing is left to try.
    pub(super) fn after(&mut self, death: Death) -> Result<(), EvaluatorError> {
        match death {
            Death::Ours(why) => {
                self.losses += 1;
                if self.losses < LOSSES_MAX {
                    return Ok(());
                }
                Err(EvaluatorError::Interrupted { losses: self.losses, why })
            }
            Death::Suspected(_) if !self.suspected => {
                self.suspected = true;
                Ok(())
            }
            Death::Suspected(limit) | Death::Proven(limit) => self.descend(limit),
        }
    }

    fn descend(&mut self, limit: Limit) -> Result<(), EvaluatorError> {
        self.suspected = false;
        self.stage = match self.stage {
            Stage::Full => Stage::WithoutExecution(limit),
            Stage::WithoutExecution(limit) => Stage::WithoutParsing(limit),
            Stage::WithoutParsing(_) => return Err(EvaluatorError::Died(limit.message().into())),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Death {
        Death::Ours("signal 9 ended it".into())
    }

    #[test]
    fn a_death_of_ours_takes_nothing_away_until_there_are_too_many() {
        let mut course = Course::new();
        for _ in 1..LOSSES_MAX {
            assert_eq!(course.after(ours()), Ok(()));
            assert_eq!(course.stage(), Stage::Full);
        }
        assert!(matches!(course.after(ours()), Err(EvaluatorError::Interrupted { .. })));
    }

    #[test]
    fn a_suspicion_must_be_confirmed_by_a_fresh_child() {
        let mut course = Course::new();
        let suspected = || Death::Suspected(Limit::Memory);
        for (death, stage) in [
            (suspected(), Stage::Full),
            (ours(), Stage::Full),
            (suspected(), Stage::WithoutExecution(Limit::Memory)),
            (suspected(), Stage::WithoutExecution(Limit::Memory)),
            (Death::Proven(Limit::CpuTime), Stage::WithoutParsing(Limit::Memory)),
        ] {
            assert_eq!(course.after(death), Ok(()));
            assert_eq!(course.stage(), stage);
        }
        assert!(matches!(course.after(Death::Proven(Limit::CpuTime)), Err(EvaluatorError::Died(_))));
    }
}
