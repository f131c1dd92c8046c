//! Which record of a dialogue wins.
//!
//! The winner is a pure function of the set of records: [`Standing`] says which. It does not depend on the order in which
//! coordinators report them, so the queue and every reader of the record log agree. Records that came after a run had
//! finished are not reported where another one counts.

use domain::{DialogueKey, Standing};

/// A record that is durable in the log and shall count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub key: DialogueKey,
    /// What the record says and where it stands in the order of records.
    pub record: Committed,
}

/// What the queue keeps of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Committed {
    /// Whether it holds scores; else it is a failure with a reason.
    pub scored: bool,
    /// Its ticket, unique within the run.
    pub ticket: u64,
}

impl Committed {
    /// Whether this record wins over another one of the same dialogue.
    pub fn beats(self, other: Self) -> bool {
        let standing = |record: Self| Standing::new(record.scored, record.ticket);
        standing(self).beats(standing(other))
    }
}

/// What a commit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The dialogue had no record: this one counts.
    First,
    /// This record wins over the one that counted until now: a scored one over a failure, or an earlier
    /// ticket over a later one.
    Supersedes(Committed),
    /// This very record counts already: the call is a repetition.
    Repeated,
    /// Another record wins; this one does not count.
    Loses(Committed),
}

impl Verdict {
    /// The verdict over `new` where `standing` counts.
    pub fn over(standing: Option<Committed>, new: Committed) -> Self {
        match standing {
            None => Self::First,
            Some(standing) if standing == new => Self::Repeated,
            Some(standing) if new.beats(standing) => Self::Supersedes(standing),
            Some(standing) => Self::Loses(standing),
        }
    }

    /// Whether the record counts from now on.
    pub fn counts(self) -> bool {
        matches!(self, Self::First | Self::Supersedes(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn scored(ticket: u64) -> Committed {
        Committed { scored: true, ticket }
    }
    const fn failed(ticket: u64) -> Committed {
        Committed { scored: false, ticket }
    }

    #[test]
    fn scored_beats_failed_and_then_the_lower_ticket_wins() {
        assert!(scored(9).beats(failed(1)) && !failed(1).beats(scored(9)));
        assert!(scored(1).beats(scored(2)) && !scored(2).beats(scored(1)));
        assert!(failed(1).beats(failed(2)) && !failed(2).beats(failed(1)));
        assert!(!scored(1).beats(scored(1)));
        assert_eq!(Verdict::over(Some(failed(1)), scored(2)), Verdict::Supersedes(failed(1)));
        assert_eq!(Verdict::over(Some(scored(2)), scored(2)), Verdict::Repeated);
        assert_eq!(Verdict::over(Some(scored(2)), failed(1)), Verdict::Loses(scored(2)));
    }

    #[test]
    fn the_winner_does_not_depend_on_the_order_of_commits() {
        let records = [scored(4), failed(1), scored(3), failed(2)];
        for first in 0..records.len() {
            let rotated = records.iter().cycle().skip(first).take(records.len());
            let winner =
                rotated.fold(
                    None,
                    |standing, &new| {
                        if Verdict::over(standing, new).counts() { Some(new) } else { standing }
                    },
                );
            assert_eq!(winner, Some(scored(3)));
        }
    }
}
