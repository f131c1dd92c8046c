//! Which record of a dialogue counts.
//!
//! Delivery is at least once, so a dialogue may have several records. The first scored one in ticket order counts, else
//! the first failed one. So a scored record supersedes a failed one, never the other way round, and a later scored
//! record changes nothing. A record that arrived after its run had finished counts only if there is no other. The rule
//! depends on the records alone, so all readers agree, in whatever order they read.
//!
//! `commit.lua` of the Redis queue has a copy of this rule, which is tested against it.

/// Ranks the records of one dialogue: the smallest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Standing {
    late: bool,
    failed: bool,
    ticket: u64,
}

impl Standing {
    /// The rank of a record by whether it has scores, and its ticket.
    pub fn new(scored: bool, ticket: u64) -> Self {
        Self { late: false, failed: !scored, ticket }
    }

    /// Marks whether the record arrived after its run had finished.
    #[must_use]
    pub fn late(self, late: bool) -> Self {
        Self { late, ..self }
    }

    /// Whether the record has scores.
    pub fn is_scored(self) -> bool {
        !self.failed
    }

    /// Whether it arrived after its run had finished.
    pub fn is_late(self) -> bool {
        self.late
    }

    pub fn ticket(self) -> u64 {
        self.ticket
    }

    /// Whether this record counts instead of the other one.
    pub fn beats(self, other: Self) -> bool {
        self < other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scored_beats_failed_then_the_lower_ticket_wins_and_late_ones_lose() {
        let scored = |ticket| Standing::new(true, ticket);
        let failed = |ticket| Standing::new(false, ticket);
        assert!(scored(9).beats(failed(1)) && !failed(1).beats(scored(9)));
        assert!(scored(1).beats(scored(2)) && !scored(2).beats(scored(1)) && !scored(1).beats(scored(1)));
        assert!(failed(1).beats(failed(2)) && !failed(2).beats(failed(1)));
        assert!(failed(9).beats(scored(1).late(true)) && scored(2).late(true).beats(failed(1).late(true)));
    }
}
