//! Grants units to workers: leases them from the queue and leaves out dialogues that have a record. `share` decides how much of
//! a worker's room each benchmark gets, and the queue which unit is next. The room that a worker offers bounds what it is
//! granted, and `SEARCH_MAX` how long one call looks for it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::exchange::{Grant, Offer, Orders, Report};
use domain::{FailureCause, Iteration, WorkerId};
use queue::limits::{FENCES_PER_CALL_MAX, MODELS_PER_CALL_MAX, UNITS_PER_LEASE_MAX};
use queue::{Fence, Lease, LeaseRequest};
use tokio::time::Instant;

use crate::errors::Result;
use crate::fleet::Fleet;
use crate::fleet::exchange::lease_id;
use crate::fleet::matching::grantable;
use crate::fleet::snapshot::{RunBacklog, Snapshot};
use crate::plan::numbering::Slot;
use crate::queue::queued_unit::QueuedUnit;
use crate::records::run::Run;

/// Maximum time spent on searching for units with pending dialogues. After a queue was rebuilt, completed units may come
/// first.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// The state of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Nothing,
    Scored,
    Failed(FailureCause),
    /// It failed, and a retry is pending.
    ToAskAgain,
}

/// A leased unit with the states of its dialogues.
struct Leased {
    lease: Lease,
    /// Index of the task in the plan; `None` if the plan has no such unit.
    task: Option<usize>,
    /// The number of the retry, if it is one.
    asked: Option<u64>,
    dialogues: Vec<(Iteration, Known)>,
}

impl Fleet {
    /// Finds work for the room that a worker offers: a fair share of it for each benchmark, and within one for older runs
    /// first. A suspect goes to a worker that holds nothing, if there is no other work or if it has waited too long.
    pub(crate) async fn grant(&self, report: &Report, orders: &mut Orders) -> Result<()> {
        let snapshot = self.backlog().await?;
        let begun = Instant::now();
        let turn = turn_of(&report.worker);
        let holds_nothing = report.held.is_empty();
        let overdue = self.overdue(report, &snapshot);
        if !overdue.is_empty() {
            // A reserved worker gets nothing until it holds nothing.
            return match holds_nothing {
                true => self.grant_suspect(report, &overdue, orders).await,
                false => Ok(()),
            };
        }
        let mut rooms: Vec<u64> = report.offers.iter().map(|offer| u64::from(offer.room)).collect();
        for (offer, room) in report.offers.iter().zip(&mut rooms) {
            let shares = self.shares.divide(&snapshot, offer, *room, report);
            let mut granted = vec![0; shares.len()];
            // What others have taken meanwhile, or what was asked already, leaves room: whoever has more work gets it.
            let rest = shares.iter().map(|_| u64::MAX);
            let parts: Vec<u64> = shares.iter().map(|share| share.room).chain(rest).collect();
            let again = shares.iter().zip(0..);
            for ((share, at), part) in again.clone().chain(again).zip(parts) {
                let mut part = part.min(*room);
                for of_run in &share.runs {
                    while part > 0 && begun.elapsed() < SEARCH_MAX {
                        let Some(ask) = claim(of_run, offer, part, report, turn) else { break };
                        let units = self.grant_units(&of_run.run, &ask, orders).await;
                        let Some(Some(dialogues)) = self.health.apart(of_run.run.id(), units)? else { break };
                        *room = room.saturating_sub(dialogues);
                        part = part.saturating_sub(dialogues);
                        granted[at] += dialogues;
                    }
                }
            }
            for (share, granted) in shares.iter().zip(granted) {
                self.shares.charge_beyond(offer, share, granted);
            }
        }
        if holds_nothing && orders.grants.is_empty() {
            let all: Vec<Served<'_>> =
                snapshot.runs.iter().flat_map(|of_run| served(of_run, report)).collect();
            self.grant_suspect(report, &all, orders).await?;
        }
        Ok(())
    }

    /// The models for whose overdue suspects this worker is reserved.
    fn overdue<'s>(&self, report: &Report, snapshot: &'s Snapshot) -> Vec<Served<'s>> {
        let mut reservations = self.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let of_runs = snapshot.runs.iter().flat_map(|of_run| served(of_run, report));
        of_runs
            .filter(|(of_run, model)| {
                let label = &of_run.run.models[*model].label;
                reservations.keeps_free(
                    of_run.run.id(),
                    label,
                    &report.worker,
                    now,
                    self.options.suspect_wait,
                )
            })
            .collect()
    }

    /// Grants one suspect of these models to a worker that holds nothing.
    async fn grant_suspect(&self, report: &Report, of: &[Served<'_>], orders: &mut Orders) -> Result<()> {
        let begun = Instant::now();
        for (of_run, model) in of {
            // A suspect without pending dialogues ends at once.
            while orders.grants.is_empty()
                && begun.elapsed() < SEARCH_MAX
                && of_run.models[*model].claim_suspect()
            {
                let models = vec![of_run.run.models[*model].label.clone()];
                let ask = LeaseRequest { worker: report.worker.clone(), models, max_units: 1, alone: true };
                let leases = self.lease(&of_run.run, &ask).await?;
                self.hand_out(&of_run.run, leases, orders).await?;
            }
        }
        Ok(())
    }

    /// Leases units of a run and grants them. Returns the number of dialogues; `None` if there is no unit.
    async fn grant_units(
        &self,
        run: &Arc<Run>,
        ask: &LeaseRequest,
        orders: &mut Orders,
    ) -> Result<Option<u64>> {
        let leases = self.lease(run, ask).await?;
        if leases.is_empty() {
            return Ok(None);
        }
        let before = orders.grants.len();
        self.hand_out(run, leases, orders).await?;
        let granted: usize = orders.grants[before..].iter().map(|grant| grant.iterations.len()).sum();
        Ok(Some(granted as u64))
    }

    /// Leases units of a run; none once its cap is reached, which records may have done since the snapshot.
    async fn lease(&self, run: &Arc<Run>, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        if self.benchmarks.caps.reached(run).is_some() {
            return Ok(Vec::new());
        }
        self.queue.call(run, |queue, at| async move { queue.lease(&at, ask).await }).await
    }

    /// Grants leased units; those without pending dialogues end at once.
    pub(crate) async fn hand_out(
        &self,
        run: &Arc<Run>,
        leases: Vec<Lease>,
        orders: &mut Orders,
    ) -> Result<()> {
        let mut done = Vec::new();
        for unit in Self::examine(run, leases)? {
            let iterations = unit.to_ask(self.options.max_strikes);
            match unit.task {
                Some(task) if !iterations.is_empty() => orders.grants.push(Grant {
                    lease: lease_id(run.id(), &unit.lease.fence),
                    task: run.plan.tasks[task].label.clone(),
                    iterations,
                    lease_for: self.options.lease_for,
                    retry: unit.asked,
                }),
                _ => done.push(unit.lease.fence),
            }
        }
        self.finish(run, &done).await
    }

    /// Ends units whose dialogues all have a record; returns the others.
    pub(crate) async fn finish_complete(&self, run: &Arc<Run>, leases: Vec<Lease>) -> Result<Vec<Fence>> {
        let (mut complete, mut gaps) = (Vec::new(), Vec::new());
        for unit in Self::examine(run, leases)? {
            let open = |known: Known| matches!(known, Known::Nothing | Known::ToAskAgain);
            let all = !unit.dialogues.iter().any(|(_, known)| open(*known));
            if all { complete.push(unit.lease.fence) } else { gaps.push(unit.lease.fence) }
        }
        self.finish(run, &complete).await?;
        Ok(gaps)
    }

    async fn finish(&self, run: &Arc<Run>, fences: &[Fence]) -> Result<()> {
        for fences in fences.chunks(FENCES_PER_CALL_MAX) {
            self.queue.call(run, |queue, at| async move { queue.finish(&at, fences).await }).await?;
        }
        Ok(())
    }

    /// The states of the dialogues of these units.
    fn examine(run: &Run, leases: Vec<Lease>) -> Result<Vec<Leased>> {
        let examine = |lease: Lease| {
            let payload = QueuedUnit::read(&lease.payload)?;
            let model = run.layout.model(&lease.fence.model);
            let slot = |iteration| run.layout.slot(model?, payload.task, iteration);
            let planned = payload.iterations.iter();
            let planned = planned.filter_map(|iteration| Some((*iteration, slot(*iteration)?)));
            let dialogues: Vec<(Iteration, Known)> = run.asked(|table, retries| {
                let is_pending =
                    |slot| payload.asked.is_some_and(|asked| retries.is_pending(slot, asked, table));
                let known = |slot: Slot| match table.get(slot).map(|entry| entry.outcome) {
                    None => Known::Nothing,
                    Some(Ok(_)) => Known::Scored,
                    Some(Err(_)) if is_pending(slot) => Known::ToAskAgain,
                    Some(Err(cause)) => Known::Failed(cause),
                };
                planned.map(|(iteration, slot)| (iteration, known(slot))).collect()
            });
            let task = (!dialogues.is_empty()).then_some(payload.task);
            Ok(Leased { lease, task, asked: payload.asked, dialogues })
        };
        leases.into_iter().map(examine).collect()
    }
}

impl Leased {
    /// The dialogues to ask. A failed dialogue is asked again only after a retry, or if its unit was a dead letter and was
    /// requeued: only then does the number of leases exceed the maximum number of strikes.
    fn to_ask(&self, max_strikes: u32) -> Vec<Iteration> {
        let requeued = self.lease.fence.attempt > max_strikes;
        let open = |known: &Known| match known {
            Known::Nothing | Known::ToAskAgain => true,
            Known::Scored => false,
            Known::Failed(cause) => requeued && *cause == FailureCause::Poisoned,
        };
        self.dialogues.iter().filter(|(_, known)| open(known)).map(|(iteration, _)| *iteration).collect()
    }
}

/// A model that a worker serves: a run and the model's index in it.
type Served<'s> = (&'s RunBacklog, usize);

/// The models of a run that a worker with room serves.
fn served<'s>(of_run: &'s RunBacklog, report: &Report) -> Vec<Served<'s>> {
    let offers = report.offers.iter().filter(|offer| offer.room > 0);
    let models = |offer| grantable(offer, of_run.run.id(), &of_run.run.models, &report.status, 0);
    offers.flat_map(models).map(|model| (of_run, model)).collect()
}

/// Claims units of the snapshot to fill the room; `None` if there are none.
fn claim(
    of_run: &RunBacklog,
    offer: &Offer,
    room: u64,
    report: &Report,
    turn: usize,
) -> Option<LeaseRequest> {
    let (mut models, mut units, mut left) = (Vec::new(), 0, room);
    for model in grantable(offer, of_run.run.id(), &of_run.run.models, &report.status, turn) {
        let backlog = &of_run.models[model];
        let wanted = left.div_ceil(backlog.dialogues_per_unit()).min(u64::from(UNITS_PER_LEASE_MAX) - units);
        let claimed = backlog.claim(wanted);
        if claimed > 0 {
            models.push(of_run.run.models[model].label.clone());
            units += claimed;
            left = left.saturating_sub(claimed * backlog.dialogues_per_unit());
        }
        if left == 0 || models.len() == MODELS_PER_CALL_MAX {
            break;
        }
    }
    (units > 0).then(|| LeaseRequest {
        worker: report.worker.clone(),
        models,
        max_units: units as u32,
        alone: false,
    })
}

/// A number that differs between workers.
fn turn_of(worker: &WorkerId) -> usize {
    let mut hasher = DefaultHasher::new();
    worker.as_str().hash(&mut hasher);
    hasher.finish() as usize
}
