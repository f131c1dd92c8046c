//! Whose turn it is: fair shares of what is handed out bit by bit, by weight (stride scheduling, Waldspurger and Weihl 1995).
//!
//! Each party has a virtual time that advances by what it was given, divided by its weight; the party whose time is least is
//! next. What a party was given is counted by whoever calls, from numbers that all coordinators share; only since when a party
//! takes part is remembered here. One that comes, or comes back, begins at the time of those who are there: waiting for nothing
//! earns nothing, and nobody has to wait until a newcomer has caught up.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Virtual time that one unit takes at weight 1.
const UNIT: u128 = 1 << 32;

/// Somebody who wants something now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Party<K> {
    pub key: K,
    /// At least 1.
    pub weight: u32,
    /// Units given to it so far, by anybody. Never less than before, but for a party that begins anew.
    pub given: u64,
}

/// Since when a party takes part.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// What it had been given when it came.
    given: u64,
    /// Its virtual time then.
    at: u128,
    weight: u32,
}

impl Standing {
    fn time(&self, given: u64) -> u128 {
        let since = u128::from(given.saturating_sub(self.given));
        self.at + since * UNIT / u128::from(self.weight)
    }
}

/// The order of turns among parties that come and go.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    present: BTreeMap<K, Standing>,
    /// The least virtual time of those who were there last.
    now: u128,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { present: BTreeMap::new(), now: 0 }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// The index of the party whose turn it is; `None` without parties. Those that are not named have left. Of several whose
    /// time is the same, the one of the greatest weight is next, and of these the first.
    pub(crate) fn next(&mut self, parties: &[Party<K>]) -> Option<usize> {
        let known = std::mem::take(&mut self.present);
        let stayed = parties.iter().filter_map(|party| Some(known.get(&party.key)?.time(party.given)));
        self.now = self.now.max(stayed.min().unwrap_or(self.now));
        let standing = |party: &Party<K>| {
            let (given, weight) = (party.given, party.weight.max(1));
            match known.get(&party.key) {
                // What was counted once does not change with the weight, nor with a count that begins anew.
                Some(known) if known.weight == weight && given >= known.given => *known,
                Some(known) => Standing { given, at: known.time(given).max(self.now), weight },
                None => Standing { given, at: self.now, weight },
            }
        };
        let standings: Vec<Standing> = parties.iter().map(standing).collect();
        let named = parties.iter().zip(&standings);
        self.present = named.map(|(party, standing)| (party.key.clone(), *standing)).collect();
        let turn = |(at, (party, standing)): &(usize, (&Party<K>, &Standing))| {
            (standing.time(party.given), Reverse(standing.weight), *at)
        };
        parties.iter().zip(&standings).enumerate().min_by_key(turn).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parties(weights: &[u32], given: &[u64]) -> Vec<Party<usize>> {
        let both = weights.iter().zip(given).enumerate();
        both.map(|(key, (weight, given))| Party { key, weight: *weight, given: *given }).collect()
    }

    #[test]
    fn the_greatest_weight_is_served_first_and_the_others_too() {
        let (mut turns, weights, mut given) = (Turns::default(), [1, 10], [0; 2]);
        let order: Vec<usize> = (0..22)
            .map(|_| {
                let next = turns.next(&parties(&weights, &given)).unwrap();
                given[next] += 1;
                next
            })
            .collect();
        assert_eq!(order[..2], [1, 0]);
        assert_eq!(given, [2, 20]);
        assert_eq!(turns.next(&[]), None);
    }

    #[test]
    fn one_that_comes_later_neither_waits_nor_makes_the_others_wait() {
        let mut turns = Turns::default();
        // The first one was alone for a thousand units.
        let mut given = [0, 0];
        for _ in 0..1_000 {
            turns.next(&parties(&[10], &given[..1]));
            given[0] += 1;
        }
        let mut taken = [0, 0];
        for _ in 0..10 {
            let next = turns.next(&parties(&[10, 10], &given)).unwrap();
            given[next] += 1;
            taken[next] += 1;
        }
        assert_eq!(taken, [5, 5]);
        // Nor does one that was away for long make up for it.
        for _ in 0..1_000 {
            turns.next(&parties(&[10], &given[..1]));
            given[0] += 1;
        }
        let next: Vec<usize> = (0..4)
            .map(|_| {
                let next = turns.next(&parties(&[10, 10], &given)).unwrap();
                given[next] += 1;
                next
            })
            .collect();
        assert_eq!(next.iter().filter(|next| **next == 1).count(), 2, "{next:?}");
    }

    proptest! {
        #[test]
        fn equal_weights_differ_by_at_most_one_unit(weight in 1_u32..100, count in 1_usize..8, rounds in 1_usize..200) {
            let (mut turns, weights) = (Turns::default(), vec![weight; count]);
            let mut given = vec![0_u64; count];
            for _ in 0..rounds {
                let next = turns.next(&parties(&weights, &given)).unwrap();
                given[next] += 1;
                let (least, most) = (given.iter().min().unwrap(), given.iter().max().unwrap());
                prop_assert!(most - least <= 1, "{given:?}");
            }
        }

        #[test]
        fn nobody_waits_for_longer_than_the_weights_say(weights in prop::collection::vec(1_u32..=100, 2..6), rounds in 1_usize..600) {
            let mut turns = Turns::default();
            let mut given = vec![0_u64; weights.len()];
            let mut waited = vec![0_u64; weights.len()];
            for _ in 0..rounds {
                let next = turns.next(&parties(&weights, &given)).unwrap();
                given[next] += 1;
                for (party, waited) in waited.iter_mut().enumerate() {
                    *waited = if party == next { 0 } else { *waited + 1 };
                    let others = weights.iter().enumerate().filter(|(other, _)| *other != party);
                    let bound: u64 = others.map(|(_, other)| u64::from(other.div_ceil(weights[party])) + 1).sum();
                    prop_assert!(*waited <= bound, "{party} of {weights:?} waits for {waited} units");
                }
            }
        }

        #[test]
        fn shares_are_those_of_the_weights(weights in prop::collection::vec(1_u32..=100, 2..6)) {
            let mut turns = Turns::default();
            let mut given = vec![0_u64; weights.len()];
            let sum: u32 = weights.iter().sum();
            for _ in 0..3 * sum {
                let next = turns.next(&parties(&weights, &given)).unwrap();
                given[next] += 1;
            }
            for (given, weight) in given.iter().zip(&weights) {
                prop_assert!(given.abs_diff(3 * u64::from(*weight)) <= weights.len() as u64, "{weights:?}: {given}");
            }
        }
    }
}
