//! The retry logic of one judgement when children die.

use tasks::{EvaluationStage, Limit};

use super::death::ChildDeath;
use crate::evaluate::EvaluatorError;

/// Children that one judgement may lose for external reasons. One death is bad luck; after this many in a row,
/// something is wrong here that another worker may not have.
pub(super) const LOSSES_MAX: u32 = 3;

/// The progress of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    /// The effort to try now.
    pub(super) stage: EvaluationStage,
    /// A child died at this stage, possibly because of the answer.
    suspected: bool,
    /// Children lost for external reasons.
    losses: u32,
}

impl Default for Course {
    fn default() -> Self {
        Self { stage: EvaluationStage::Full, suspected: false, losses: 0 }
    }
}

impl Course {
    /// Records the death of a child. A limit that is proven, or hit again by a fresh child, lowers the effort by one
    /// stage; after any other death the judgement is repeated unchanged.
    ///
    /// # Errors
    /// Nothing is left to try.
    pub(super) fn after(&mut self, death: ChildDeath) -> Result<(), EvaluatorError> {
        match death {
            ChildDeath::Ours(why) => {
                self.losses += 1;
                if self.losses < LOSSES_MAX {
                    return Ok(());
                }
                Err(EvaluatorError::Interrupted { losses: self.losses, why })
            }
            ChildDeath::Suspected(_) if !self.suspected => {
                self.suspected = true;
                Ok(())
            }
            ChildDeath::Suspected(limit) | ChildDeath::Proven(limit) => self.descend(limit),
        }
    }

    fn descend(&mut self, limit: Limit) -> Result<(), EvaluatorError> {
        self.suspected = false;
        self.stage = match self.stage {
            EvaluationStage::Full => EvaluationStage::WithoutExecution(limit),
            EvaluationStage::WithoutExecution(limit) => EvaluationStage::WithoutParsing(limit),
            EvaluationStage::WithoutParsing(_) => return Err(EvaluatorError::Died(limit.message().into())),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> ChildDeath {
        ChildDeath::Ours("signal 9 ended it".into())
    }

    #[test]
    fn a_death_of_ours_takes_nothing_away_until_there_are_too_many() {
        let mut course = Course::default();
        for _ in 1..LOSSES_MAX {
            assert_eq!(course.after(ours()), Ok(()));
            assert_eq!(course.stage, EvaluationStage::Full);
        }
        assert!(matches!(course.after(ours()), Err(EvaluatorError::Interrupted { .. })));
    }

    #[test]
    fn a_suspicion_must_be_confirmed_by_a_fresh_child() {
        let mut course = Course::default();
        let suspected = || ChildDeath::Suspected(Limit::Memory);
        for (death, stage) in [
            (suspected(), EvaluationStage::Full),
            (ours(), EvaluationStage::Full),
            (suspected(), EvaluationStage::WithoutExecution(Limit::Memory)),
            (suspected(), EvaluationStage::WithoutExecution(Limit::Memory)),
            (ChildDeath::Proven(Limit::CpuTime), EvaluationStage::WithoutParsing(Limit::Memory)),
        ] {
            assert_eq!(course.after(death), Ok(()));
            assert_eq!(course.stage, stage);
        }
        assert!(matches!(course.after(ChildDeath::Proven(Limit::CpuTime)), Err(EvaluatorError::Died(_))));
    }
}
