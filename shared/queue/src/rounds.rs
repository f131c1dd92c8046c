//! What a coordinator knows about leading, and the rounds in which everything leaves a leader.
//!
//! An operation on the queue changes memory and leaves a mark: its answer goes out once a round with its changes was applied. A round
//! that Redis does not take is repeated with the same number and the same changes; until it is taken, operations are refused, nothing
//! leaves, and the queue's clock stands still, so that nothing expires.

use std::collections::{BTreeMap, VecDeque};

use domain::RunId;

use crate::error::{Error, Result};
use crate::kept::Change;

/// Changes of one round: about a megabyte, and a few milliseconds of Redis.
pub(crate) const CHANGES_PER_ROUND_MAX: usize = 2_000;

/// Whether this process leads.
#[derive(Clone, Debug, Default)]
pub(crate) enum Role {
    /// It has not looked yet.
    #[default]
    Starting,
    /// It does not, or does not know.
    Waiting(Error),
    Leading {
        epoch: u64,
    },
    /// It did, and another one does since.
    Followed(Error),
}

/// The rounds of one process.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    role: Role,
    /// The number of the round that is under way, or comes next; 1 is a leader's first.
    number: u64,
    under_way: Vec<Change>,
    pending: VecDeque<Change>,
    /// Changes that were ever enqueued, and those of them that were applied.
    enqueued: u64,
    applied: u64,
    /// Up to where changes replace everything that was enqueued before, until they were applied.
    replaced: Option<u64>,
    /// Why the last round was not taken.
    trouble: Option<Error>,
    /// The latest time that the queue was told, and how much of the clock's time did not pass for it.
    told_ms: u64,
    paused_ms: u64,
}

impl Rounds {
    pub(crate) fn role(&self) -> &Role {
        &self.role
    }

    /// Whether an operation may be carried out now.
    ///
    /// # Errors
    /// This process does not lead, or Redis takes no rounds. What only reads goes on where Redis can be read.
    pub(crate) fn may(&self, writes: bool) -> Result<()> {
        match (&self.role, &self.trouble) {
            (Role::Starting, _) => {
                Err(Error::NotLeader { leader: "who leads this fleet is not known yet".to_owned() })
            }
            (Role::Waiting(why) | Role::Followed(why), _) => Err(why.clone()),
            (Role::Leading { .. }, Some(Error::Unwritable { .. })) if !writes => Ok(()),
            (Role::Leading { .. }, Some(trouble)) => Err(trouble.clone()),
            (Role::Leading { .. }, None) => Ok(()),
        }
    }

    /// The queue's time at this time of the clock.
    pub(crate) fn now(&mut self, clock_ms: u64) -> u64 {
        if self.trouble.is_none() {
            self.told_ms = self.told_ms.max(clock_ms.saturating_sub(self.paused_ms));
        }
        self.told_ms
    }

    /// Takes changes for a round. The mark for [`is_applied`](Self::is_applied); `None` if there are none.
    pub(crate) fn enqueue(&mut self, changes: Vec<Change>) -> Option<u64> {
        if changes.is_empty() {
            return None;
        }
        self.enqueued += changes.len() as u64;
        self.pending.extend(changes);
        Some(self.enqueued)
    }

    /// Whether the changes up to a mark were applied; `None` while that is not known.
    ///
    /// # Errors
    /// They were perhaps not: Redis does not take them, or another one leads.
    pub(crate) fn is_applied(&self, mark: u64) -> Option<Result<()>> {
        match self.may(true) {
            Err(error) => Some(Err(error)),
            Ok(()) => (self.applied >= mark.max(self.replaced.unwrap_or_default())).then_some(Ok(())),
        }
    }

    /// Whether there is something for a round.
    pub(crate) fn is_due(&self) -> bool {
        !self.under_way.is_empty() || !self.pending.is_empty() || self.trouble.is_some()
    }

    /// The next round, or the one that was not taken: its number and its changes.
    pub(crate) fn next(&mut self) -> (u64, &[Change]) {
        if self.under_way.is_empty() {
            let count = self.pending.len().min(CHANGES_PER_ROUND_MAX);
            self.under_way.extend(self.pending.drain(..count));
        }
        (self.number, &self.under_way)
    }

    /// Redis has applied the round.
    pub(crate) fn is_good(&mut self, clock_ms: u64) {
        self.number += 1;
        self.applied += std::mem::take(&mut self.under_way).len() as u64;
        self.replaced = self.replaced.filter(|end| self.applied < *end);
        if self.trouble.take().is_some() {
            self.paused_ms = clock_ms.saturating_sub(self.told_ms);
        }
    }

    /// Redis has not taken the round. One that takes no writes for lack of room has applied nothing of it, and still takes what makes
    /// room: removed runs come first then, and nothing else of them.
    pub(crate) fn has_failed(&mut self, error: Error) {
        if matches!(error, Error::Unwritable { .. }) {
            let again =
                std::mem::take(&mut self.under_way).into_iter().chain(self.pending.drain(..)).collect();
            self.pending = self.gone_first(again);
        }
        self.trouble = Some(error);
    }

    fn gone_first(&mut self, changes: Vec<Change>) -> VecDeque<Change> {
        let mut gone: BTreeMap<RunId, usize> = BTreeMap::new();
        for (place, change) in changes.iter().enumerate() {
            if let Change::RunGone(run) = change {
                gone.insert(run.clone(), place);
            }
        }
        let all = changes.len();
        let stays = |(place, change): &(usize, Change)| match change {
            Change::Run(run, _) | Change::Unit(run, ..) | Change::UnitGone(run, _) | Change::RunGone(run) => {
                gone.get(run).is_none_or(|last| place > last)
            }
            _ => true,
        };
        let rest: Vec<Change> =
            changes.into_iter().enumerate().filter(stays).map(|(_, change)| change).collect();
        let first = gone.into_keys().map(Change::RunGone);
        let left: VecDeque<Change> = first.chain(rest).collect();
        self.applied += (all - left.len()) as u64;
        left
    }

    /// Leads from now on in this epoch. With `anew`, these changes replace what Redis keeps; what was to be written is among them.
    pub(crate) fn lead(&mut self, epoch: u64, anew: Option<Vec<Change>>) {
        self.role = Role::Leading { epoch };
        self.number = 1;
        self.trouble = None;
        if let Some(anew) = anew {
            self.under_way.clear();
            self.pending = anew.into();
            // Marks of before wait for all of it.
            self.applied = self.enqueued;
            self.enqueued += self.pending.len() as u64;
            self.replaced = Some(self.enqueued);
        }
    }

    /// Does not lead, for this reason.
    pub(crate) fn wait(&mut self, why: Error) {
        self.role = Role::Waiting(why);
    }

    /// Leads no more.
    pub(crate) fn is_followed(&mut self, by: Error) {
        self.role = Role::Followed(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::UnitId;

    fn leading() -> Rounds {
        let mut rounds = Rounds::default();
        rounds.lead(1, None);
        rounds
    }

    fn probes(count: usize) -> Vec<Change> {
        vec![Change::Probe; count]
    }

    #[test]
    fn an_answer_leaves_after_all_of_its_changes() {
        let mut rounds = leading();
        assert_eq!(rounds.enqueue(Vec::new()), None);
        let mark = rounds.enqueue(probes(CHANGES_PER_ROUND_MAX + 1)).unwrap();
        assert_eq!(rounds.next().1.len(), CHANGES_PER_ROUND_MAX);
        rounds.is_good(0);
        assert!(rounds.is_applied(mark).is_none() && rounds.is_due());
        assert_eq!((rounds.next().0, rounds.next().1.len()), (2, 1));
        rounds.is_good(0);
        assert!(matches!(rounds.is_applied(mark), Some(Ok(()))) && !rounds.is_due());
    }

    #[test]
    fn a_round_that_is_not_taken_stops_the_clock_and_comes_again() {
        let mut rounds = leading();
        assert_eq!(rounds.now(1_000), 1_000);
        let mark = rounds.enqueue(probes(1)).unwrap();
        let (number, changes) = rounds.next();
        assert_eq!((number, changes.len()), (1, 1));
        rounds.has_failed(Error::Unwritable { message: "full".into() });
        assert!(matches!(rounds.is_applied(mark), Some(Err(Error::Unwritable { .. }))));
        assert!(rounds.may(true).is_err() && rounds.may(false).is_ok());
        rounds.enqueue(probes(1));
        assert_eq!((rounds.now(60_000), rounds.next().0, rounds.next().1.len()), (1_000, 1, 2));
        rounds.has_failed(Error::Unavailable { message: "away".into() });
        assert!(rounds.may(false).is_err());
        rounds.is_good(61_000);
        assert_eq!((rounds.now(61_000), rounds.now(62_000)), (1_000, 2_000));
    }

    #[test]
    fn a_full_redis_is_first_told_which_runs_are_gone() {
        let mut rounds = leading();
        let unit = |run: &str| Change::UnitGone(run.into(), UnitId(0));
        rounds.enqueue(vec![unit("a"), unit("b")]);
        rounds.next();
        rounds.has_failed(Error::Unwritable { message: "full".into() });
        let mark = rounds.enqueue(vec![unit("b"), Change::RunGone("b".into()), unit("b")]).unwrap();
        rounds.next();
        rounds.has_failed(Error::Unwritable { message: "full".into() });
        assert_eq!(rounds.next(), (1, &[Change::RunGone("b".into()), unit("a"), unit("b")][..]));
        rounds.is_good(0);
        assert!(matches!(rounds.is_applied(mark), Some(Ok(()))));
    }

    #[test]
    fn what_replaces_everything_is_what_earlier_answers_wait_for() {
        let mut rounds = leading();
        let mark = rounds.enqueue(probes(3)).unwrap();
        rounds.next();
        rounds.lead(7, Some(probes(CHANGES_PER_ROUND_MAX + 1)));
        assert_eq!(rounds.next().0, 1);
        rounds.is_good(0);
        assert!(rounds.is_applied(mark).is_none());
        rounds.next();
        rounds.is_good(0);
        assert!(matches!(rounds.is_applied(mark), Some(Ok(()))));
    }

    #[test]
    fn who_does_not_lead_answers_nobody() {
        let mut rounds = Rounds::default();
        assert!(matches!(rounds.may(false), Err(Error::NotLeader { .. })));
        rounds.wait(Error::NotLeader { leader: "one leads".into() });
        assert_eq!(rounds.may(false).unwrap_err().to_string(), "one leads");
        rounds.lead(2, None);
        assert!(rounds.may(true).is_ok());
        rounds.is_followed(Error::NotLeader { leader: "two leads".into() });
        assert_eq!(rounds.may(true).unwrap_err().to_string(), "two leads");
    }
}
