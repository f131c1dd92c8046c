//! How the room of a worker is divided among the benchmarks that want it.
//!
//! Submitters get equal shares, and the benchmarks of a submitter shares by their priority: none waits for another one to end,
//! and one that is alone takes everything. What each was given is counted from the queue, which all coordinators share; see
//! `turns` for what is remembered besides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use benchmarks::names::benchmark_of;
use domain::exchange::{Offer, Report, Serves};
use domain::{Priority, RunId};

use crate::fleet::matching::models_of;
use crate::fleet::snapshot::{RunBacklog, Snapshot};
use crate::fleet::turns::{Party, Turns};

/// Weight of all benchmarks of a submitter together.
const SUBMITTER_WEIGHT: u32 = 1_000_000;

/// Maximum number of offers whose turns are remembered. Only who serves other models all the time reaches it; turns then begin anew.
const OFFERS_MAX: usize = 10_000;

/// Whose turn it is, for every kind of offer, and who submitted what.
#[derive(Default)]
pub(crate) struct FairShares {
    turns: Mutex<HashMap<Serves, Turns<RunId>>>,
    submitters: Mutex<BTreeMap<RunId, String>>,
}

/// A benchmark with work for an offer.
struct Claimant<'s> {
    benchmark: RunId,
    submitter: String,
    priority: Priority,
    /// Units handed out so far, of the models in question.
    given: u64,
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
    /// Dialogues.
    pub room: u64,
}

impl FairShares {
    /// Divides the room of an offer.
    pub(crate) fn divide<'s>(
        &self,
        snapshot: &'s Snapshot,
        offer: &Offer,
        room: u64,
        report: &Report,
    ) -> Vec<Share<'s>> {
        let mut claimants = self.claimants(snapshot, offer, report);
        if let [only] = &mut claimants[..] {
            return vec![Share { runs: std::mem::take(&mut only.runs), room }];
        }
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= OFFERS_MAX && !all.contains_key(&offer.serves) {
            all.clear();
        }
        let rooms = by_turns(all.entry(offer.serves.clone()).or_default(), &mut claimants, room);
        let shares = claimants.into_iter().zip(rooms);
        shares.map(|(claimant, room)| Share { runs: claimant.runs, room }).collect()
    }

    fn claimants<'s>(&self, snapshot: &'s Snapshot, offer: &Offer, report: &Report) -> Vec<Claimant<'s>> {
        let submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut claimants: Vec<Claimant<'s>> = Vec::new();
        for of_run in &snapshot.runs {
            let models = models_of(offer, &of_run.run.models, report.status.reach.as_ref(), 0);
            let (mut given, mut waiting, mut unit) = (0, 0, 1);
            for model in models.into_iter().map(|model| &of_run.models[model]) {
                given += model.given();
                waiting += model.waiting();
                unit = unit.max(model.dialogues_per_unit());
            }
            let benchmark = benchmark_of(of_run.run.id());
            let priority = of_run.run.priority();
            match claimants.iter_mut().find(|claimant| claimant.benchmark == benchmark) {
                Some(claimant) => {
                    claimant.given += given;
                    claimant.waiting += waiting;
                    claimant.unit = claimant.unit.max(unit);
                    claimant.priority = claimant.priority.max(priority);
                    claimant.runs.push(of_run);
                }
                None => {
                    let submitter = submitters.get(&benchmark).cloned().unwrap_or_default();
                    let runs = vec![of_run];
                    claimants.push(Claimant { benchmark, submitter, priority, given, waiting, unit, runs });
                }
            }
        }
        claimants.retain(|claimant| claimant.waiting > 0);
        claimants
    }

    /// The benchmarks of these runs whose submitters are not known yet.
    pub(crate) fn unknown(&self, runs: impl IntoIterator<Item = RunId>) -> Vec<RunId> {
        let runs = runs.into_iter().map(|run| benchmark_of(&run));
        let mut submitters = self.submitters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live: Vec<RunId> = runs.collect();
        live.sort();
        live.dedup();
        submitters.retain(|known, _| live.binary_search(known).is_ok());
        live.retain(|benchmark| !submitters.contains_key(benchmark));
        live
    }

    /// Notes who submitted a benchmark.
    pub(crate) fn learn(&self, benchmark: RunId, submitter: String) {
        self.submitters.lock().unwrap_or_else(PoisonError::into_inner).insert(benchmark, submitter);
    }
}

/// Gives the room away unit by unit; how many dialogues each gets.
fn by_turns(turns: &mut Turns<RunId>, claimants: &mut [Claimant<'_>], room: u64) -> Vec<u64> {
    let (mut rooms, mut left) = (vec![0; claimants.len()], room);
    while left > 0 {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for claimant in claimants.iter().filter(|claimant| claimant.waiting > 0) {
            *sums.entry(&claimant.submitter).or_default() += u64::from(claimant.priority.get());
        }
        let open: Vec<usize> = (0..claimants.len()).filter(|at| claimants[*at].waiting > 0).collect();
        let party = |at: &usize| {
            let claimant = &claimants[*at];
            let weight = u64::from(SUBMITTER_WEIGHT) * u64::from(claimant.priority.get())
                / sums.get(&*claimant.submitter).copied().unwrap_or(1).max(1);
            Party {
                key: claimant.benchmark.clone(),
                weight: u32::try_from(weight).unwrap_or(SUBMITTER_WEIGHT).max(1),
                given: claimant.given,
            }
        };
        let parties: Vec<Party<RunId>> = open.iter().map(party).collect();
        let Some(next) = turns.next(&parties) else { break };
        let (claimant, part) = (&mut claimants[open[next]], &mut rooms[open[next]]);
        claimant.given += 1;
        claimant.waiting -= 1;
        let dialogues = claimant.unit.min(left);
        *part += dialogues;
        left -= dialogues;
    }
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(name: &str, submitter: &str, priority: u32, waiting: u64) -> Claimant<'static> {
        Claimant {
            benchmark: RunId::new(name),
            submitter: submitter.to_owned(),
            priority: Priority::new(priority).unwrap(),
            given: 0,
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
}
