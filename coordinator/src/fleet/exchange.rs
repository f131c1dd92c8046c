//! Answers the reports of workers.
//!
//! A report contains everything that a worker holds, so nothing is remembered between reports: a restarted coordinator, or
//! another one, continues with the next report.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::exchange::{
    ANY_MODEL, Departure, LeaseEnd, LeaseId, NameTaken, NotAsked, Offer, Orders, Outlook, RateBudget,
    Registered, Registration, Report, Serves, WorkerStatus,
};
use domain::{ErrorCode, InstanceId, ModelLabel, RunId, WorkerId};
use queue::limits::{FENCES_PER_CALL_MAX, MODELS_PER_CALL_MAX, PREDECESSORS_MAX, WORKER_INFO_BYTES_MAX};
use queue::{Claim, Fence, Heartbeat, Lease, RateLimit, RateReply, Reap, Renewal, RunState, UnitId};
use tokio::time::Instant;

use crate::errors::{Result, internal, invalid, not_found};
use crate::fleet::Fleet;
use crate::fleet::matching::{models_of, names};
use crate::fleet::snapshot::Snapshot;
use crate::options::WAIT_MAX;
use crate::records::run::Run;

/// Parked models of a worker's status that is too long otherwise.
const NOT_ASKED_KEPT: usize = 2;

/// Maximum time for which one report parks a model for all workers. Workers ask for a quarter of an hour at most.
const PARKING_MAX: Duration = Duration::from_secs(3600);

/// The part of a report about one run.
#[derive(Default)]
struct Concern {
    held: Vec<Fence>,
    ended: HashMap<Fence, LeaseEnd>,
    /// Models for which the worker may hold leases without knowing.
    models: BTreeSet<ModelLabel>,
}

impl Fleet {
    /// Registers a worker for an identity; the empty one if nobody is known by name.
    pub(crate) async fn register(&self, identity: &str, registration: Registration) -> Result<Registered> {
        let Registration { worker, instance, mut predecessors, kgfleet, host } = registration;
        predecessors.truncate(PREDECESSORS_MAX);
        let claim = Claim { instance, predecessors, identity: identity.to_owned() };
        let status = WorkerStatus { kgfleet, host, ..WorkerStatus::default() };
        let registered = Registered {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            report_every: self.options.report_every(),
            taken: match self.heartbeat(&worker, &claim, status).await? {
                Heartbeat::Registered(_) => None,
                Heartbeat::Taken(by) => Some(holder_of_name(by)),
            },
        };
        match &registered.taken {
            Some(by) => tracing::warn!(%worker, %by, "refused a worker"),
            None => {
                self.reap_predecessor(&worker).await?;
                tracing::info!(%worker, "registered");
            }
        }
        Ok(registered)
    }

    /// Answers the report of a worker of this identity.
    pub(crate) async fn exchange(&self, identity: &str, mut report: Report) -> Result<Orders> {
        let until = Instant::now() + report.wait.min(WAIT_MAX);
        let claim = Claim::of(report.instance.clone(), identity);
        let drain = match self.heartbeat(&report.worker, &claim, report.status.clone()).await? {
            Heartbeat::Registered(orders) => orders.drain,
            // Its leases belong to another process or will be handed out again; its records are accepted all the same.
            Heartbeat::Taken(by) => {
                let by = holder_of_name(by);
                tracing::warn!(worker = %report.worker, %by, "told a worker that another one has its name");
                return Ok(Orders { superseded: Some(by), lost: report.held, ..Orders::default() });
            }
        };
        let mut orders = Orders { drain, ..Orders::default() };
        let mut holds_suspect = false;
        self.park_models(&report).await?;
        let snapshot = self.backlog().await?;
        orders.noted = true;
        for (id, concern) in concerns(&report, &snapshot) {
            let settled = match self.loaded.known(&id).await {
                Ok(run) => self.settle(&run, concern, &report, &mut orders).await,
                // The run was removed.
                Err(error) if error.code == ErrorCode::NotFound => {
                    lose_all(&id, &concern.held, &mut orders);
                    continue;
                }
                Err(error) => Err(error),
            };
            // After a transient error, the worker must repeat its report; for a run that cannot be loaded, nothing can be
            // processed.
            orders.noted &= !settled.as_ref().is_err_and(|error| error.code.is_transient());
            holds_suspect |= self.health.apart(&id, settled)?.unwrap_or(false);
        }
        let own = report.status.not_asked.len();
        report.status.not_asked.extend(self.left_to_others(&report).await?);
        let has_room = report.offers.iter().any(|offer| offer.room > 0);
        let wants_work = has_room && !report.draining && !drain;
        let mut seen = self.signal.count();
        while wants_work && orders.grants.is_empty() && orders.lost.is_empty() {
            if !holds_suspect {
                // Runs come while it waits.
                report.status.not_asked.truncate(own);
                report.status.not_asked.extend(self.left_to_others(&report).await?);
                self.grant(&report, &mut orders).await?;
            }
            let now = Instant::now();
            if !orders.grants.is_empty() || now >= until || self.closing.load(Ordering::Relaxed) {
                break;
            }
            let pause = self.options.backlog_for.max(Duration::from_millis(20)).min(until - now);
            // Wait for a change in this process, or as long as one elsewhere may go unnoticed.
            let _ = tokio::time::timeout(pause, self.signal.after(seen)).await;
            seen = self.signal.count();
        }
        if report.until.is_some() {
            let holds = !report.held.is_empty() || !orders.grants.is_empty();
            orders.outlook = Some(if holds { Outlook::Work } else { self.outlook_for(&report).await });
        }
        Ok(orders)
    }

    /// A starting worker holds nothing. Leases under its name belong to a process that died, perhaps because of them. They
    /// count as strikes: otherwise a unit that kills its worker would be handed to it again for ever.
    async fn reap_predecessor(&self, worker: &WorkerId) -> Result<()> {
        for run in self.loaded.live() {
            let reaped = self.queue.reap(&run, &Reap::Worker(worker.clone())).await;
            self.health.apart(run.id(), reaped)?;
        }
        Ok(())
    }

    /// Keeps the worker registered, unless another process has its name.
    async fn heartbeat(
        &self,
        worker: &WorkerId,
        claim: &Claim,
        mut status: WorkerStatus,
    ) -> Result<Heartbeat> {
        let mut info = serde_json::to_vec(&status).map_err(internal)?;
        if info.len() > WORKER_INFO_BYTES_MAX && status.not_asked.len() > NOT_ASKED_KEPT {
            // What a worker may contact decides about work, so this goes first.
            status.not_asked.truncate(NOT_ASKED_KEPT);
            info = serde_json::to_vec(&status).map_err(internal)?;
        }
        if info.len() > WORKER_INFO_BYTES_MAX {
            status.calls = Vec::new();
            // Names are for people; work is assigned by offers.
            status.serves.truncate(16);
            status.expects.truncate(16);
            status.trouble = status.trouble.map(|trouble| trouble.chars().take(500).collect());
            (status.reach, status.lacks, status.sandbox) = (None, Vec::new(), Vec::new());
            info = serde_json::to_vec(&status).map_err(internal)?;
        }
        self.health.note_queue(self.queue.raw().heartbeat(worker, claim, &info, self.registered_for()).await)
    }

    /// Where servers of a worker tell no names, it does not ask the models that others serve by name: these.
    async fn left_to_others(&self, report: &Report) -> Result<Vec<NotAsked>> {
        let tells_none = |offer: &Offer| matches!(&offer.serves, Serves::Model(name) if name == ANY_MODEL);
        if !report.offers.iter().any(tells_none) {
            return Ok(Vec::new());
        }
        let (snapshot, workers) = (self.backlog().await?, self.workers().await?);
        let mut left = Vec::new();
        for run in snapshot.runs.iter().map(|of_run| &of_run.run) {
            let others = run.models.iter().filter(|spec| workers.name(spec) && !names(&report.status, spec));
            left.extend(others.map(|spec| NotAsked {
                run: run.id().clone(),
                model: spec.label.clone(),
                ..NotAsked::default()
            }));
        }
        Ok(left)
    }

    async fn park_models(&self, report: &Report) -> Result<()> {
        for parking in &report.parked {
            let known = self.loaded.known(&parking.run).await;
            let Some(run) = self.health.apart(&parking.run, known)? else { continue };
            if run.phase().is_over() {
                continue;
            }
            let parked_for = parking.parked_for;
            let parked_for = parked_for.clamp(Duration::from_millis(1), PARKING_MAX);
            let parked = self
                .queue
                .call(&run, |queue, at| async move {
                    queue.park(&at, &parking.model, parked_for, &parking.reason).await
                })
                .await;
            if self.health.apart(run.id(), parked)?.is_none() {
                continue;
            }
            tracing::warn!(run = %run.id(), model = %parking.model, reason = parking.reason, "parked");
            self.signal.touch();
        }
        Ok(())
    }

    /// Reconciles the leases that the worker reports with those in the queue. Returns whether it holds a suspect.
    async fn settle(
        &self,
        run: &Arc<Run>,
        concern: Concern,
        report: &Report,
        orders: &mut Orders,
    ) -> Result<bool> {
        let id = |fence: &Fence| lease_id(run.id(), fence);
        if run.phase().is_over() && run.at().is_none() {
            lose_all(run.id(), &concern.held, orders);
            return Ok(false);
        }
        let renewal = self.renew(run, &report.worker, &concern.models, &concern.held).await?;
        let mut given_back: Vec<Fence> = Vec::new();
        if matches!(renewal.state, RunState::Cancelled | RunState::Finished) {
            lose_all(run.id(), &concern.held, orders);
            given_back.extend(concern.held);
            given_back.extend(renewal.unreported.into_iter().map(|lease| lease.fence));
            self.release(run, &given_back).await?;
            return Ok(false);
        }
        orders.lost.extend(renewal.lost.iter().map(id));
        let is_capped = self.benchmarks.caps.reached(run).is_some();
        // A lease that the worker did not report as held has ended, or its grant was lost on the way.
        let mut holds_suspect = renewal.holds_suspect;
        let (mut finished, mut granted) = (Vec::new(), Vec::new());
        for lease in renewal.unreported {
            let suspect = lease.suspect;
            let end = concern.ended.get(&lease.fence);
            if end == Some(&LeaseEnd::Finished) {
                finished.push(lease);
            } else if end == Some(&LeaseEnd::Released)
                || report.draining
                || orders.drain
                || is_capped
                || renewal.state == RunState::Paused
            {
                given_back.push(lease.fence);
            } else {
                granted.push(lease);
                continue;
            }
            holds_suspect &= !suspect;
        }
        let gaps = self.finish_complete(run, finished).await?;
        for fence in &gaps {
            tracing::warn!(run = %run.id(), unit = %fence.unit, worker = %report.worker, "reported as finished without all its records");
        }
        given_back.extend(gaps);
        self.release(run, &given_back).await?;
        self.hand_out(run, granted, orders).await?;
        Ok(holds_suspect)
    }

    /// Renews the leases of a worker on these models and finds leases that it did not report. Makes as many calls as the
    /// queue's bounds require.
    async fn renew(
        &self,
        run: &Arc<Run>,
        worker: &WorkerId,
        models: &BTreeSet<ModelLabel>,
        held: &[Fence],
    ) -> Result<Renewal> {
        let mut whole = Renewal::default();
        let models: Vec<ModelLabel> = models.iter().cloned().collect();
        let known: HashSet<&Fence> = held.iter().collect();
        for models in models.chunks(MODELS_PER_CALL_MAX) {
            let of_models: Vec<Fence> =
                held.iter().filter(|fence| models.contains(&fence.model)).cloned().collect();
            let none: &[Fence] = &[];
            let calls = of_models.chunks(FENCES_PER_CALL_MAX).chain(of_models.is_empty().then_some(none));
            for held in calls {
                let renewal = self
                    .queue
                    .call(run, |queue, at| async move { queue.renew(&at, worker, models, held).await })
                    .await?;
                whole.state = renewal.state;
                whole.holds_suspect = renewal.holds_suspect;
                whole.lost.extend(renewal.lost);
                whole.unreported.extend(
                    renewal.unreported.into_iter().filter(|lease: &Lease| !known.contains(&lease.fence)),
                );
            }
        }
        let mut seen = HashSet::new();
        whole.unreported.retain(|lease| seen.insert(lease.fence.clone()));
        Ok(whole)
    }

    /// Returns units to the queue.
    pub(crate) async fn release(&self, run: &Arc<Run>, fences: &[Fence]) -> Result<()> {
        for fences in fences.chunks(FENCES_PER_CALL_MAX) {
            self.queue.call(run, |queue, at| async move { queue.release(&at, fences).await }).await?;
            self.signal.touch();
        }
        Ok(())
    }

    /// Returns the units of a worker that has ended, so that nobody waits for its leases to expire. If another process has its
    /// name by now, it holds nothing.
    pub(crate) async fn deregister(
        &self,
        worker: &WorkerId,
        instance: &InstanceId,
        why: Option<Departure>,
    ) -> Result<()> {
        if !self.health.note_queue(self.queue.raw().deregister(worker, instance).await)? {
            return Ok(());
        }
        self.lost_workers().signed_off(worker, instance);
        for run in self.loaded.live() {
            let models = run.models.iter().map(|spec| spec.label.clone()).collect();
            let renewal = self.renew(&run, worker, &models, &[]).await;
            let Some(renewal) = self.health.apart(run.id(), renewal)? else { continue };
            let left: Vec<Fence> = renewal.unreported.into_iter().map(|lease| lease.fence).collect();
            let released = self.release(&run, &left).await;
            self.health.apart(run.id(), released)?;
        }
        let why = why.map_or("", Departure::as_str);
        tracing::info!(%worker, why, "deregistered");
        Ok(())
    }

    /// Asks a worker to end what it has and to take nothing more.
    pub(crate) async fn drain(&self, worker: &WorkerId) -> Result<()> {
        if self.health.note_queue(self.queue.raw().drain_worker(worker).await)? {
            return Ok(());
        }
        Err(not_found(format!("no worker `{worker}` is registered")))
    }

    /// Takes permits of a budget that all workers share.
    pub(crate) async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Result<Option<Duration>> {
        if permits == 0 {
            return Err(invalid("at least one permit must be asked for"));
        }
        // Allow bursts of six seconds' worth: no minute exceeds its share by much.
        let burst = (budget.per_minute / 10).max(permits);
        let rate = RateLimit { per_minute: budget.per_minute, burst };
        let reply = self.health.note_queue(self.queue.raw().take_rate(&budget.name, rate, permits).await)?;
        Ok(match reply {
            RateReply::Granted => None,
            RateReply::Wait { ms } => Some(Duration::from_millis(ms)),
        })
    }
}

/// Takes the leases of a run that is over away from a worker.
fn lose_all(run: &RunId, held: &[Fence], orders: &mut Orders) {
    orders.lost.extend(held.iter().map(|fence| lease_id(run, fence)));
}

/// Splits a report by run, adding runs of which the worker may hold leases without knowing.
fn concerns(report: &Report, snapshot: &Snapshot) -> BTreeMap<RunId, Concern> {
    let mut concerns: BTreeMap<RunId, Concern> = BTreeMap::new();
    for of_run in &snapshot.runs {
        let models = &of_run.run.models;
        let reach = report.status.reach.as_ref();
        let matched = report.offers.iter().flat_map(|offer| models_of(offer, models, reach, 0));
        // A worker whose servers are silent may hold leases of what they serve.
        let expected = expected(report);
        let matched = matched.chain(expected.iter().flat_map(|offer| models_of(offer, models, reach, 0)));
        let matched: BTreeSet<ModelLabel> = matched.map(|model| models[model].label.clone()).collect();
        if !matched.is_empty() {
            concerns.entry(of_run.run.id().clone()).or_default().models = matched;
        }
    }
    let held = report.held.iter().map(|lease| (lease, None));
    for (lease, end) in held.chain(report.ended.iter().map(|(lease, end)| (lease, Some(*end)))) {
        let concern = concerns.entry(lease.run.clone()).or_default();
        concern.models.insert(lease.model.clone());
        match end {
            None => concern.held.push(fence(lease)),
            Some(end) => drop(concern.ended.insert(fence(lease), end)),
        }
    }
    concerns
}

/// What the servers of a worker serve, or will serve, according to it.
pub(crate) fn expected(report: &Report) -> Vec<Offer> {
    let expects = report.until.iter().flat_map(|until| &until.expects);
    expects.map(|name| Offer { serves: Serves::Model(name.clone()), room: 0 }).collect()
}

/// The holder of a name, for the worker that wanted it.
fn holder_of_name(taken: queue::WorkerNameTaken) -> NameTaken {
    let status: WorkerStatus = serde_json::from_slice(&taken.info).unwrap_or_default();
    NameTaken {
        instance: taken.instance,
        host: status.host,
        silent_for: Duration::from_millis(taken.silent_ms),
        free_in: Duration::from_millis(taken.free_in_ms),
    }
}

fn fence(lease: &LeaseId) -> Fence {
    let LeaseId { generation, model, unit, attempt, .. } = lease;
    Fence { generation: *generation, model: model.clone(), unit: UnitId(*unit), attempt: *attempt }
}

pub(crate) fn lease_id(run: &RunId, fence: &Fence) -> LeaseId {
    LeaseId {
        run: run.clone(),
        generation: fence.generation,
        model: fence.model.clone(),
        unit: fence.unit.0,
        attempt: fence.attempt,
    }
}
