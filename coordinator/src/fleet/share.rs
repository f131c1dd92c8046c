//! How the room of a worker is divided among the benchmarks that want it.
//!
//! Submitters get equal shares, and the benchmarks of a submitter shares by their priority: none waits for another one to end,
//! and one that is alone takes everything. Each coordinator divides what it hands out itself, so what all of them hand out is
//! divided alike. See `turns` for the order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use benchmarks::names::benchmark_of;
use domain::exchange::{Offer, Report, Serves};
use domain::{Priority, RunId};

use crate::fleet::matching::grantable;
use crate::fleet::snapshot::{RunBacklog, Snapshot};
use crate::fleet::turns::{Party, Turns};

/// Weight of all benchmarks of a submitter together.
const SUBMITTER_WEIGHT: u32 = 1_000_000;

/// Maximum number of offers whose turns are remembered. It is reached only if workers serve other models all the time; all turns
/// then begin anew.
const OFFERS_MAX: usize = 10_000;

/// Maximum number of turns in one answer. A worker asks for some hundred dialogues; what is left is given without turns.
const TURNS_PER_OFFER_MAX: usize = 10_000;

/// Whose turn it is, for every kind of offer, and who submitted what.
#[derive(Default)]
pub(crate) struct FairShares {
    turns: Mutex<HashMap<Serves, Turns<RunId>>>,
    /// Empty for those whose submitter was looked for and not found.
    submitters: Mutex<BTreeMap<RunId, String>>,
}

/// A benchmark with work for an offer.
struct Claimant<'s> {
    benchmark: RunId,
    submitter: String,
    priority: Priority,
    /// Units that wait.
    waiting: u64,
    /// Dialogues of a unit.
    unit: u64,
    /// Its runs, older ones first.
    runs: Vec<&'s RunBacklog>,
}

/// A part of the room.
pub(crate) struct Share<'s> {
    /// Runs of one benchmark, older ones first.
    pub runs: Vec<&'s RunBacklog>,
    /// Dialogues, for which the benchmark was charged.
    pub room: u64,
    party: Party<RunId>,
}

impl FairShares {
    /// Divides the room of an offer. Where several want it, each is charged for its part, used or not.
    pub(crate) fn divide<'s>(
        &self,
        snapshot: &'s Snapshot,
        offer: &Offer,
        room: u64,
        report: &Report,
    ) -> Vec<Share<'s>> {
        if room == 0 {
            return Vec::new();
        }
        let mut claimants = self.claimants(snapshot, offer, report);
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= OFFERS_MAX && !all.contains_key(&offer.serves) {
            all.clear();
        }
        let parties = parties_of(&claimants);
        let rooms = by_turns(all.entry(offer.serves.clone()).or_default(), &mut claimants, room);
        let shares = claimants.into_iter().zip(parties).zip(rooms);
        shares.map(|((claimant, party), room)| Share { runs: claimant.runs, room, party }).collect()
    }

    /// Charges a benchmark for what it got beyond its part.
    pub(crate) fn charge_beyond(&self, offer: &Offer, share: &Share<'_>, granted: u64) {
        let beyond = granted.saturating_sub(share.room);
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = all.get_mut(&offer.serves)
            && beyond > 0
        {
            turns.charge(&share.party, beyond);
        }
    }

    /// The benchmarks that have units for this offer.
    fn claimants<'s>(&self, snapshot: &'s Snapshot, offer: &Offer, report: &Report) -> Vec<Claimant<'s>> {
        let submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut claimants: Vec<Claimant<'s>> = Vec::new();
        for of_run in &snapshot.runs {
            let models = grantable(offer, of_run.run.id(), &of_run.run.models, &report.status, 0);
            let models = models.into_iter().map(|model| &of_run.models[model]);
            let (mut waiting, mut unit) = (0, 1);
            for model in models.filter(|model| model.waiting() > 0) {
                waiting += model.waiting();
                unit = unit.max(model.dialogues_per_unit());
            }
            if waiting == 0 {
                continue;
            }
            let benchmark = benchmark_of(of_run.run.id());
            let priority = of_run.run.priority();
            match claimants.iter_mut().find(|claimant| claimant.benchmark == benchmark) {
                Some(claimant) => {
                    claimant.waiting += waiting;
                    claimant.unit = claimant.unit.max(unit);
                    claimant.priority = priority; // An extension may have changed it.
                    claimant.runs.push(of_run);
                }
                None => {
                    let submitter = submitters.get(&benchmark).cloned().unwrap_or_default();
                    let runs = vec![of_run];
                    claimants.push(Claimant { benchmark, submitter, priority, waiting, unit, runs });
                }
            }
        }
        claimants
    }

    /// The benchmarks of these live runs whose submitters were not looked for; with `again`, also those that were not found.
    pub(crate) fn unknown(&self, runs: impl IntoIterator<Item = RunId>, again: bool) -> Vec<RunId> {
        let runs = runs.into_iter().map(|run| benchmark_of(&run));
        let mut submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live: Vec<RunId> = runs.collect();
        live.sort();
        live.dedup();
        submitters.retain(|known, _| live.binary_search(known).is_ok());
        live.retain(|benchmark| submitters.get(benchmark).is_none_or(|found| again && found.is_empty()));
        live
    }

    /// Who submitted a benchmark that goes on; empty if that is not known.
    pub(crate) fn submitter_of(&self, benchmark: &RunId) -> String {
        let submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        submitters.get(benchmark).cloned().unwrap_or_default()
    }

    /// Notes who submitted a benchmark; empty if nobody knows. Whoever submits it again does not take it over.
    pub(crate) fn learn(&self, benchmark: RunId, submitter: String) {
        let mut submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        let known = submitters.entry(benchmark).or_default();
        if known.is_empty() {
            *known = submitter;
        }
    }
}

/// The claimants with their weights: a submitter's is divided among those of its benchmarks that have units waiting.
fn parties_of(claimants: &[Claimant<'_>]) -> Vec<Party<RunId>> {
    let priority = |claimant: &Claimant<'_>| u64::from(claimant.priority.get());
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for claimant in claimants.iter().filter(|claimant| claimant.waiting > 0) {
        *sums.entry(&claimant.submitter).or_default() += priority(claimant);
    }
    let party = |claimant: &Claimant<'_>| {
        let sum = sums.get(&*claimant.submitter).copied().unwrap_or(1).max(1);
        let weight = u64::from(SUBMITTER_WEIGHT) * priority(claimant) / sum;
        let weight = u32::try_from(weight).unwrap_or(SUBMITTER_WEIGHT).max(1);
        Party { key: claimant.benchmark.clone(), weight }
    };
    claimants.iter().map(party).collect()
}

/// Gives the room away unit by unit, and charges for it; how many dialogues each gets.
fn by_turns(turns: &mut Turns<RunId>, claimants: &mut [Claimant<'_>], room: u64) -> Vec<u64> {
    let (mut rooms, mut left) = (vec![0; claimants.len()], room);
    let mut wanting = wanting(claimants);
    for _ in 0..TURNS_PER_OFFER_MAX {
        if left == 0 {
            break;
        }
        let Some(next) = turns.next(&wanting.1) else { break };
        let at = wanting.0[next];
        let dialogues = claimants[at].unit.min(left);
        turns.charge(&wanting.1[next], dialogues);
        rooms[at] += dialogues;
        left -= dialogues;
        claimants[at].waiting -= 1;
        if claimants[at].waiting == 0 {
            wanting = self::wanting(claimants);
        }
    }
    rooms
}

/// The claimants that have units waiting, by index and as parties.
fn wanting(claimants: &[Claimant<'_>]) -> (Vec<usize>, Vec<Party<RunId>>) {
    let all = parties_of(claimants).into_iter().enumerate();
    all.filter(|(at, _)| claimants[*at].waiting > 0).unzip()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claimant(name: &str, submitter: &str, priority: u32, waiting: u64) -> Claimant<'static> {
        Claimant {
            benchmark: RunId::new(name),
            submitter: submitter.to_owned(),
            priority: Priority::new(priority).unwrap(),
            waiting,
            unit: 10,
            runs: Vec::new(),
        }
    }

    #[test]
    fn submitters_share_alike_and_their_benchmarks_by_priority() {
        let mut turns = Turns::default();
        let mut all = [
            claimant("a", "alice", 10, 900),
            claimant("b", "alice", 20, 900),
            claimant("c", "bob", 100, 900),
        ];
        assert_eq!(by_turns(&mut turns, &mut all, 600), [100, 200, 300]);
        // What one does not want, the others get.
        let mut all = [claimant("a", "alice", 10, 2), claimant("c", "bob", 10, 900)];
        assert_eq!(by_turns(&mut Turns::default(), &mut all, 600), [20, 580]);
        assert_eq!(by_turns(&mut Turns::default(), &mut all[..1], 600), [0]);
    }

    #[test]
    fn room_for_one_dialogue_goes_to_each_in_turn() {
        let mut turns = Turns::default();
        let mut all = [claimant("long", "alice", 10, 900), claimant("short", "alice", 10, 4)];
        let given: Vec<Vec<u64>> = (0..4).map(|_| by_turns(&mut turns, &mut all, 1)).collect();
        assert_eq!(given, [[1, 0], [0, 1], [1, 0], [0, 1]]);
    }

    /// Largest unit of the property below, in dialogues.
    const UNIT_MAX: u64 = 10;

    /// Benchmarks that never run out, of up to three submitters: submitter, priority and dialogues of a unit.
    fn competing(all: Vec<(usize, u32, u64)>) -> Vec<Claimant<'static>> {
        let claimants = all.into_iter().enumerate().map(|(at, (submitter, priority, unit))| {
            let submitter = ["alice", "bob", "carol"][submitter];
            Claimant { unit, ..claimant(&at.to_string(), submitter, priority, u64::MAX) }
        });
        claimants.collect()
    }

    proptest! {
        #[test]
        fn every_benchmark_with_units_is_served_within_a_bound_and_submitters_get_the_same(
            all in prop::collection::vec((0..3_usize, 1..=100_u32, 1..=UNIT_MAX), 1..7),
            rooms in prop::collection::vec(1..=40_u64, 200),
        ) {
            let mut all = competing(all);
            let (mut turns, parties) = (Turns::default(), parties_of(&all));
            let mut given = vec![0; all.len()];
            let mut waited = vec![0; all.len()];
            for room in rooms {
                for (at, part) in by_turns(&mut turns, &mut all, room).into_iter().enumerate() {
                    given[at] += part;
                    waited[at] = if part > 0 { 0 } else { waited[at] + room };
                    let own = u64::from(parties[at].weight);
                    let others = parties.iter().filter(|other| other.key != parties[at].key);
                    let beside = |other: &Party<RunId>| (UNIT_MAX * u64::from(other.weight)).div_ceil(own) + UNIT_MAX;
                    let bound: u64 = others.map(beside).sum();
                    prop_assert!(waited[at] <= bound, "{at} of {parties:?} waits for {} dialogues", waited[at]);
                }
            }
            let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for (claimant, given) in all.iter().zip(&given) {
                let sum = sums.entry(&claimant.submitter).or_default();
                *sum = (sum.0 + given, sum.1 + 2 * UNIT_MAX);
            }
            for (one, slack) in sums.values() {
                for (other, other_slack) in sums.values() {
                    prop_assert!(one.abs_diff(*other) <= slack + other_slack, "{sums:?}");
                }
            }
        }
    }

    #[test]
    fn submitters_are_looked_for_once_and_forgotten_with_their_runs() {
        let (shares, runs) = (FairShares::default(), ["a", "b", "c"].map(RunId::new));
        assert_eq!(shares.unknown(runs.clone(), false), runs);
        shares.learn(RunId::new("a"), "alice".to_owned());
        shares.learn(RunId::new("a"), "bob".to_owned());
        assert_eq!(shares.submitters.lock().unwrap()[&RunId::new("a")], "alice");
        shares.learn(RunId::new("b"), String::new());
        assert_eq!(shares.unknown(runs.clone(), false), [RunId::new("c")]);
        assert_eq!(shares.unknown(runs[..2].to_vec(), true), [RunId::new("b")]);
        assert!(shares.unknown([], true).is_empty());
        assert_eq!(shares.unknown(runs.clone(), false), runs);
    }
}
