//! Whose turn it is: fair shares of what is handed out bit by bit, by weight (stride scheduling, Waldspurger and Weihl 1995).
//!
//! Each party has a virtual time, which advances by what it gets, divided by its weight; the party whose time is least is next.
//! One that comes, or comes back, begins at the least time of those who are there. So a party gets nothing for the time in which
//! it wanted nothing, and the others need not wait until it has caught up with them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Virtual time of one dialogue at weight 1.
const DIALOGUE: u128 = 1 << 32;

/// Somebody who wants something now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Party<K> {
    pub key: K,
    /// At least 1.
    pub weight: u32,
}

/// The order of turns among parties that come and go.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    /// The virtual times of those who were there last, and of those who are ahead of them.
    times: BTreeMap<K, u128>,
    /// The least virtual time of those who were there last. It never goes back.
    now: u128,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { times: BTreeMap::new(), now: 0 }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// The index of the party whose turn it is; `None` without parties. Those that are not named have left. Of several whose
    /// time is the same, the one of the greatest weight is next, and of these the first.
    pub(crate) fn next(&mut self, parties: &[Party<K>]) -> Option<usize> {
        let stayed = parties.iter().filter_map(|party| self.times.get(&party.key)).min();
        self.now = self.now.max(stayed.copied().unwrap_or_default());
        let now = self.now;
        // Whoever has left and is not ahead would begin at this time when it comes back: nothing is to be remembered.
        self.times.retain(|key, time| *time > now || parties.iter().any(|party| party.key == *key));
        for party in parties {
            self.times.entry(party.key.clone()).or_insert(now);
        }
        let turn = |(at, party): &(usize, &Party<K>)| (self.times[&party.key], Reverse(party.weight), *at);
        parties.iter().enumerate().min_by_key(turn).map(|(at, _)| at)
    }

    /// Counts what a party got, or what its turn was worth if it left it.
    pub(crate) fn charge(&mut self, party: &Party<K>, dialogues: u64) {
        let time = self.times.entry(party.key.clone()).or_insert(self.now);
        *time += u128::from(dialogues) * DIALOGUE / u128::from(party.weight.max(1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Largest unit of these tests, in dialogues.
    const UNIT: u64 = 10;

    fn parties(weights: &[u32]) -> Vec<Party<usize>> {
        weights.iter().enumerate().map(|(key, weight)| Party { key, weight: *weight }).collect()
    }

    /// Gives `dialogues` to whose turn it is, and says who that was.
    fn give(turns: &mut Turns<usize>, to: &[Party<usize>], dialogues: u64) -> usize {
        let party = &to[turns.next(to).unwrap()];
        turns.charge(party, dialogues);
        party.key
    }

    #[test]
    fn the_greatest_weight_is_served_first_and_the_others_too() {
        let (mut turns, both) = (Turns::default(), parties(&[1, 10]));
        let order: Vec<usize> = (0..22).map(|_| give(&mut turns, &both, 1)).collect();
        assert_eq!(order[..2], [1, 0]);
        assert_eq!(order.iter().filter(|party| **party == 0).count(), 2);
        assert_eq!(turns.next(&[]), None);
    }

    #[test]
    fn one_that_comes_later_neither_waits_nor_makes_the_others_wait() {
        let (mut turns, both) = (Turns::default(), parties(&[10, 10]));
        for _ in 0..2 {
            // The first one is alone for a thousand dialogues. Before the second time, the other one was there and left.
            for _ in 0..1_000 {
                give(&mut turns, &both[..1], 1);
            }
            let taken: Vec<usize> = (0..10).map(|_| give(&mut turns, &both, 1)).collect();
            assert_eq!(taken.iter().filter(|party| **party == 1).count(), 5, "{taken:?}");
        }
        assert_eq!(turns.times.len(), 2);
    }

    #[test]
    fn leaving_for_a_moment_does_not_undo_what_one_got() {
        let (mut turns, both) = (Turns::default(), parties(&[1, 1]));
        turns.next(&both);
        turns.charge(&both[0], 100);
        give(&mut turns, &both[1..], 1);
        let next: Vec<usize> = (0..100).map(|_| give(&mut turns, &both, 1)).collect();
        assert_eq!(next.iter().filter(|party| **party == 1).count(), 99, "the first one had 100 at once");
    }

    prop_compose! {
        /// Weights, and for each turn who is there and how many dialogues the unit has.
        fn turns_of_a_day()(weights in prop::collection::vec(1_u32..=100, 2..6))
            (day in prop::collection::vec((prop::collection::vec(any::<bool>(), weights.len()), 1..=UNIT), 1..400),
             weights in Just(weights)) -> (Vec<u32>, Vec<(Vec<bool>, u64)>) {
            (weights, day)
        }
    }

    proptest! {
        #[test]
        fn who_stays_is_served_within_a_bound_whoever_comes_and_goes((weights, day) in turns_of_a_day()) {
            let (mut turns, all) = (Turns::default(), parties(&weights));
            // Party 0 stays.
            let own = u64::from(weights[0]);
            let bound: u64 = weights[1..].iter().map(|other| (UNIT * u64::from(*other)).div_ceil(own) + UNIT).sum();
            let mut waited = 0;
            for (there, unit) in day {
                let there: Vec<Party<usize>> =
                    all.iter().filter(|party| party.key == 0 || there[party.key]).cloned().collect();
                waited = if give(&mut turns, &there, unit) == 0 { 0 } else { waited + unit };
                prop_assert!(waited <= bound, "others of {weights:?} got {waited} dialogues");
            }
        }

        #[test]
        fn shares_are_those_of_the_weights((weights, day) in turns_of_a_day()) {
            let (mut turns, all) = (Turns::default(), parties(&weights));
            let mut given = vec![0_u64; weights.len()];
            for (_, unit) in day {
                given[give(&mut turns, &all, unit)] += unit;
            }
            let by_weight = given.iter().zip(&weights).map(|(given, weight)| (*given as f64, f64::from(*weight)));
            let by_weight: Vec<(f64, f64)> = by_weight.collect();
            for (one, (given, weight)) in by_weight.iter().enumerate() {
                for (other_given, other_weight) in &by_weight[one + 1..] {
                    let apart = (given / weight - other_given / other_weight).abs();
                    let unit = UNIT as f64;
                    prop_assert!(apart <= unit / weight + unit / other_weight + 1e-6, "{weights:?}: {given:?}");
                }
            }
        }
    }
}
