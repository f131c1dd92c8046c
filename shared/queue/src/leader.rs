//! Who leads the queue: one coordinator of those at the same Redis.
//!
//! There is no election. Whoever finds nobody, or sees that the leader's beat stands still, claims the next epoch, and whoever finds a
//! higher epoch than its own has been followed. That is safe at any moment, because each round of a leader is refused by Redis once
//! the epoch is another one. [`LeaderWatch`] decides; it takes the time and does no IO.

use std::time::Duration;

/// How long the beat of a leader stands still before another coordinator claims.
pub(crate) const STILL_MAX: Duration = Duration::from_secs(5);

/// The leader that Redis names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedLeader {
    /// Rises with every claim.
    pub(crate) epoch: u64,
    /// Drawn at random by each process.
    pub(crate) id: String,
    /// Its address, for people.
    pub(crate) name: String,
    /// Counts its rounds.
    pub(crate) beat: u64,
    /// Whether it has ended by itself.
    pub(crate) has_left: bool,
}

/// Watches a leader, for a coordinator that waits.
#[derive(Debug)]
pub(crate) struct LeaderWatch {
    /// The address of the one that waits.
    name: String,
    /// What was seen last, and since when it has not changed.
    seen: Option<(NamedLeader, Duration)>,
}

impl LeaderWatch {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), seen: None }
    }

    /// Whether to claim now, by what Redis names.
    pub(crate) fn may_claim(&mut self, now: Duration, named: Option<&NamedLeader>) -> bool {
        let Some(named) = named else { return true };
        // Whoever serves at an address has its port: a process that led from there before has ended.
        if named.has_left || named.name == self.name {
            return true;
        }
        match &self.seen {
            Some((seen, since)) if seen == named => now.saturating_sub(*since) >= STILL_MAX,
            _ => {
                self.seen = Some((named.clone(), now));
                false
            }
        }
    }

    /// Redis could not be read: nobody knows whether the leader stood still meanwhile.
    pub(crate) fn unread(&mut self) {
        self.seen = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(beat: u64) -> NamedLeader {
        NamedLeader { epoch: 3, id: "a".into(), name: "one:7700".into(), beat, has_left: false }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_leader_is_followed_when_its_beat_stands_still() {
        let mut watch = LeaderWatch::new("two:7700");
        assert!(!watch.may_claim(SECOND, Some(&named(1))));
        assert!(!watch.may_claim(SECOND * 5, Some(&named(1))));
        assert!(!watch.may_claim(SECOND * 6, Some(&named(2))), "it beats");
        assert!(!watch.may_claim(SECOND * 10, Some(&named(2))));
        assert!(watch.may_claim(SECOND * 11, Some(&named(2))));
    }

    #[test]
    fn nobody_who_left_or_served_at_the_same_address_is_waited_for() {
        let mut watch = LeaderWatch::new("two:7700");
        assert!(watch.may_claim(SECOND, None));
        assert!(watch.may_claim(SECOND, Some(&NamedLeader { has_left: true, ..named(1) })));
        assert!(watch.may_claim(SECOND, Some(&NamedLeader { name: "two:7700".into(), ..named(1) })));
    }

    #[test]
    fn what_could_not_be_read_says_nothing_about_the_leader() {
        let mut watch = LeaderWatch::new("two:7700");
        assert!(!watch.may_claim(SECOND, Some(&named(1))));
        watch.unread();
        assert!(!watch.may_claim(SECOND * 60, Some(&named(1))));
        assert!(watch.may_claim(SECOND * 65, Some(&named(1))));
    }
}
