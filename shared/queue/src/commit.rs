//! Which record of a dialogue counts.
//!
//! The winner is a pure function of the set of records, defined by [`Standing`]. It does not depend on the order in
//! which coordinators commit them, so the queue and every reader of the record log agree. A record that arrived after
//! its run had finished is committed only if no other one counts.

use domain::{DialogueKey, Standing};

/// A durable record to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub key: DialogueKey,
    /// The record's outcome and ticket.
    pub record: Committed,
}

/// What the queue stores of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Committed {
    /// Whether it has scores; otherwise it is a failure.
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

/// The effect of committing one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitEffect {
    /// The dialogue had no record: this one counts.
    First,
    /// This record replaces the previous winner: a scored one replaces a failure, or an earlier ticket a later one.
    Supersedes(Committed),
    /// This record counts already: the call is a repetition.
    Repeated,
    /// Another record wins; this one does not count.
    Loses(Committed),
}

impl CommitEffect {
    /// The effect of committing `new` while `standing` counts.
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
        assert_eq!(CommitEffect::over(Some(failed(1)), scored(2)), CommitEffect::Supersedes(failed(1)));
        assert_eq!(CommitEffect::over(Some(scored(2)), scored(2)), CommitEffect::Repeated);
        assert_eq!(CommitEffect::over(Some(scored(2)), failed(1)), CommitEffect::Loses(scored(2)));
    }

    #[test]
    fn the_winner_does_not_depend_on_the_order_of_commits() {
        let records = [scored(4), failed(1), scored(3), failed(2)];
        for first in 0..records.len() {
            let rotated = records.iter().cycle().skip(first).take(records.len());
            let winner = rotated.fold(None, |standing, &new| {
                if CommitEffect::over(standing, new).counts() { Some(new) } else { standing }
            });
            assert_eq!(winner, Some(scored(3)));
        }
    }
}
