//! The leases of a worker, and the progress of their dialogues.
//!
//! A plain state machine without IO. Every granted dialogue ends in exactly one of three ways: its record was
//! acknowledged, it was given back with its lease, or its lease was lost. `check` in the tests verifies this.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{Grant, LeaseEnd, LeaseId};
use domain::{Iteration, ModelLabel, RunId, TaskLabel};

/// Number of leases remembered after their end. A report that was in flight when a lease ended may bring its grant
/// again, which must not restart it. Grants come again within one lease duration, in which no worker ends this many
/// leases.
const CLOSED_KEPT_MAX: usize = 16_384;

/// One model of one run: dialogues are queued per lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    pub run: RunId,
    pub model: ModelLabel,
}

impl LaneKey {
    /// The lane of a lease.
    pub fn of(lease: &LeaseId) -> Self {
        Self { run: lease.run.clone(), model: lease.model.clone() }
    }

    /// Whether a lease is of this lane.
    pub fn has(&self, lease: &LeaseId) -> bool {
        self.run == lease.run && self.model == lease.model
    }
}

/// One dialogue of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    pub lease: Arc<LeaseId>,
    pub iteration: Iteration,
}

/// A dialogue to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextDialogue {
    pub tag: Tag,
    pub task: TaskLabel,
    /// Number of the retry that it belongs to.
    pub retry: Option<u64>,
}

/// A lease with dialogues to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingLease<'s> {
    pub task: &'s TaskLabel,
    /// The dialogue that is next.
    pub next: Iteration,
    /// Dialogues that have not started, with that one.
    pub left: usize,
}

/// Result of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    New,
    /// It is or was held already; nothing changed.
    Known,
}

/// Dialogues of a lane by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCount {
    /// Not started.
    pub pending: u32,
    /// In flight.
    pub running: u32,
}

/// Counts of dialogues by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    pub granted: u64,
    /// Their records were acknowledged.
    pub delivered: u64,
    /// Given back with their lease.
    pub released: u64,
    /// Their lease was lost; existing records are delivered all the same.
    pub lost: u64,
}

#[derive(Debug)]
struct Lease {
    task: TaskLabel,
    retry: Option<u64>,
    lease_for: Duration,
    pending: VecDeque<Iteration>,
    running: BTreeSet<Iteration>,
    /// Ended with a record that is not yet acknowledged.
    undelivered: BTreeSet<Iteration>,
    /// Dialogues that are given back with the lease; if there are any, the lease cannot be finished.
    given_back: u64,
}

impl Lease {
    /// Dialogues that have not ended.
    fn open(&self) -> u64 {
        (self.pending.len() + self.running.len() + self.undelivered.len()) as u64
    }
}

impl LaneCount {
    fn of<'l>(leases: impl Iterator<Item = &'l Lease>) -> Self {
        leases.fold(Self::default(), |sum, lease| Self {
            pending: sum.pending + lease.pending.len() as u32,
            running: sum.running + lease.running.len() as u32,
        })
    }
}

/// The leases of a worker.
#[derive(Debug, Default)]
pub struct Slots {
    leases: BTreeMap<Arc<LeaseId>, Lease>,
    /// Leases with dialogues to start, oldest first.
    queues: BTreeMap<LaneKey, VecDeque<Arc<LeaseId>>>,
    /// Ended leases, until a reply confirms them.
    ended: BTreeMap<Arc<LeaseId>, LeaseEnd>,
    closed: BTreeSet<Arc<LeaseId>>,
    closed_order: VecDeque<Arc<LeaseId>>,
    tally: SlotCounts,
}

impl Slots {
    /// Takes a grant. A lease that is held changes nothing. One that has ended here is told once more: the grant may have been
    /// under way when it ended, but a coordinator that was behind may also have called it lost, and then nobody would work on
    /// its unit for as long as this worker lives.
    pub fn grant(&mut self, grant: Grant) -> Granted {
        if self.leases.contains_key(&grant.lease) || grant.iterations.is_empty() {
            return Granted::Known;
        }
        if let Some(id) = self.closed.get(&grant.lease) {
            self.ended.entry(Arc::clone(id)).or_insert(LeaseEnd::Released);
            return Granted::Known;
        }
        let id = Arc::new(grant.lease);
        let lane = LaneKey::of(&id);
        // An iteration listed twice is one dialogue.
        let mut seen = BTreeSet::new();
        let pending: VecDeque<_> = grant.iterations.into_iter().filter(|i| seen.insert(*i)).collect();
        self.tally.granted += pending.len() as u64;
        self.queues.entry(lane).or_default().push_back(Arc::clone(&id));
        let lease = Lease {
            retry: grant.retry,
            task: grant.task,
            lease_for: grant.lease_for,
            pending,
            running: BTreeSet::new(),
            undelivered: BTreeSet::new(),
            given_back: 0,
        };
        self.leases.insert(id, lease);
        Granted::New
    }

    /// The leases of a lane with dialogues to start, oldest first.
    pub fn waiting(&self, lane: &LaneKey) -> impl Iterator<Item = WaitingLease<'_>> {
        let ids = self.queues.get(lane).into_iter().flatten();
        ids.filter_map(move |id| {
            let Lease { task, pending, .. } = self.leases.get(id)?;
            Some(WaitingLease { task, next: *pending.front()?, left: pending.len() })
        })
    }

    /// Starts the next dialogue of the lease at this place among the [waiting](Self::waiting) ones of a lane.
    pub fn begin(&mut self, lane: &LaneKey, place: usize) -> Option<NextDialogue> {
        let queue = self.queues.get_mut(lane)?;
        let id = Arc::clone(queue.get(place)?);
        let lease = self.leases.get_mut(&id)?;
        let iteration = lease.pending.pop_front()?;
        if lease.pending.is_empty() {
            queue.remove(place);
        }
        lease.running.insert(iteration);
        Some(NextDialogue { tag: Tag { lease: id, iteration }, task: lease.task.clone(), retry: lease.retry })
    }

    /// Whether a dialogue is in flight.
    pub fn is_running(&self, tag: &Tag) -> bool {
        self.leases.get(&tag.lease).is_some_and(|lease| lease.running.contains(&tag.iteration))
    }

    /// Records the end of a dialogue with a record. False if its lease is not held any more.
    pub fn ended(&mut self, tag: &Tag) -> bool {
        let Some(lease) = self.leases.get_mut(&tag.lease) else { return false };
        if lease.running.remove(&tag.iteration) {
            lease.undelivered.insert(tag.iteration);
        }
        true
    }

    /// The record of a dialogue was acknowledged: it is done.
    pub fn acknowledged(&mut self, tag: &Tag) {
        let Some(lease) = self.leases.get_mut(&tag.lease) else { return };
        if lease.undelivered.remove(&tag.iteration) {
            self.tally.delivered += 1;
        }
        self.close_if_done(&tag.lease);
    }

    /// A dialogue ended without a record, or with one that is dropped: it goes back with its lease, together with the
    /// dialogues of the lease that have not started, for a worker that may do better. Returns whether the lease was still held.
    pub fn dropped(&mut self, tag: &Tag) -> bool {
        let Some(lease) = self.leases.get_mut(&tag.lease) else { return false };
        if lease.running.remove(&tag.iteration) || lease.undelivered.remove(&tag.iteration) {
            lease.given_back += 1;
        }
        self.give_back(&Arc::clone(&tag.lease));
        true
    }

    /// Gives back everything of a lane that has not started; leases with running dialogues are given back when these
    /// have ended.
    pub fn give_back_lane(&mut self, lane: &LaneKey) {
        let held: Vec<_> = self.leases_of(lane).collect();
        held.iter().for_each(|lease| self.give_back(lease));
    }

    /// The same for all lanes, when a worker stops.
    pub fn give_back_all(&mut self) {
        let held: Vec<_> = self.leases.keys().cloned().collect();
        held.iter().for_each(|lease| self.give_back(lease));
    }

    fn give_back(&mut self, id: &Arc<LeaseId>) {
        let Some(lease) = self.leases.get_mut(id) else { return };
        let dropped = lease.pending.len();
        if dropped > 0 {
            lease.pending.clear();
            lease.given_back += dropped as u64;
            self.unqueue(id);
        }
        self.close_if_done(id);
    }

    /// Dialogues of a lease that were not asked to their end.
    pub fn unasked(&self, id: &LeaseId) -> usize {
        self.leases.get(id).map_or(0, |lease| lease.pending.len() + lease.running.len())
    }

    /// Removes lost leases; returns their running dialogues, which must be stopped.
    pub fn lost(&mut self, id: &LeaseId) -> Vec<Tag> {
        let Some((id, lease)) = self.leases.remove_entry(id) else { return Vec::new() };
        // Dialogues given back to a lost lease are lost, too.
        self.tally.lost += lease.open() + lease.given_back;
        self.unqueue(&id);
        self.remember(&id);
        lease.running.iter().map(|&iteration| Tag { lease: Arc::clone(&id), iteration }).collect()
    }

    /// Gives back every remaining lease, whatever its state, when a worker cannot wait any longer.
    pub fn release_all(&mut self) {
        let held: Vec<_> = self.leases.keys().cloned().collect();
        for id in held {
            let Some(lease) = self.leases.remove(&id) else { continue };
            self.tally.released += lease.open() + lease.given_back;
            self.remember(&id);
            self.ended.insert(id, LeaseEnd::Released);
        }
        self.queues.clear();
    }

    /// Removes ended leases that a reply has confirmed.
    pub fn noted<'l>(&mut self, ended: impl IntoIterator<Item = &'l LeaseId>) {
        for lease in ended {
            self.ended.remove(lease);
        }
    }

    /// Active leases, in order.
    pub fn held(&self) -> impl Iterator<Item = &LeaseId> {
        self.leases.keys().map(AsRef::as_ref)
    }

    /// Leases that ended and were not confirmed yet.
    pub fn ended_leases(&self) -> impl ExactSizeIterator<Item = (&LeaseId, LeaseEnd)> {
        self.ended.iter().map(|(lease, end)| (lease.as_ref(), *end))
    }

    /// Lanes with dialogues to start.
    pub fn waiting_lanes(&self) -> Vec<LaneKey> {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(lane, _)| lane.clone()).collect()
    }

    /// Lanes with an active lease.
    pub fn held_lanes(&self) -> BTreeSet<LaneKey> {
        self.leases.keys().map(|id| LaneKey::of(id)).collect()
    }

    /// The highest generation of a lane's active leases.
    pub fn generation(&self, lane: &LaneKey) -> Option<u64> {
        self.leases.keys().filter(|id| lane.has(id)).map(|id| id.generation).max()
    }

    /// How many dialogues of a lane are pending and running.
    pub fn count(&self, lane: &LaneKey) -> LaneCount {
        LaneCount::of(self.leases.iter().filter(|(id, _)| lane.has(id)).map(|(_, lease)| lease))
    }

    /// The same over all lanes.
    pub fn total(&self) -> LaneCount {
        LaneCount::of(self.leases.values())
    }

    /// Whether no lease is held.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Whether every ended lease was confirmed.
    pub fn is_told(&self) -> bool {
        self.ended.is_empty()
    }

    /// The shortest active lease.
    pub fn shortest_lease(&self) -> Option<Duration> {
        self.leases.values().map(|lease| lease.lease_for).min()
    }

    /// Counts of ended dialogues.
    pub fn tally(&self) -> SlotCounts {
        self.tally
    }

    /// Removes finished lanes; a worker may see many runs.
    pub fn forget_idle_lanes(&mut self) {
        self.queues.retain(|_, queue| !queue.is_empty());
    }

    fn leases_of<'a>(&'a self, lane: &'a LaneKey) -> impl Iterator<Item = Arc<LeaseId>> + 'a {
        self.leases.keys().filter(|id| lane.has(id)).cloned()
    }

    fn unqueue(&mut self, id: &Arc<LeaseId>) {
        if let Some(queue) = self.queues.get_mut(&LaneKey::of(id)) {
            queue.retain(|queued| queued != id);
        }
    }

    fn close_if_done(&mut self, id: &Arc<LeaseId>) {
        if self.leases.get(id).is_none_or(|lease| lease.open() > 0) {
            return;
        }
        let Some(lease) = self.leases.remove(id) else { return };
        self.remember(id);
        if lease.given_back == 0 {
            self.ended.insert(Arc::clone(id), LeaseEnd::Finished);
        } else {
            self.tally.released += lease.given_back;
            self.ended.insert(Arc::clone(id), LeaseEnd::Released);
        }
    }

    fn remember(&mut self, id: &Arc<LeaseId>) {
        if self.closed.insert(Arc::clone(id)) {
            self.closed_order.push_back(Arc::clone(id));
        }
        if self.closed_order.len() > CLOSED_KEPT_MAX
            && let Some(oldest) = self.closed_order.pop_front()
        {
            self.closed.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
