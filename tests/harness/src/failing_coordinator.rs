//! A small coordinator with a queue of its own, in this process, whose failures are switched on and off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::exchange::{
    Delivery, Departure, Grant, LeaseEnd, LeaseId, NameTaken, Orders, Outlook, Parking, RateBudget, Receipt,
    Registered, Registration, Reply, Report, RunMaterial, Serves, TaskUse, WorkExchange,
};
use domain::{ErrorCode, InstanceId, Iteration, ModelSpec, RunId, ServiceError, WorkerId};
use packs::Pack;
use tokio::sync::watch;

/// A task of the built-in pack that asks once and needs no graph.
pub const TASK: &str = "RdfConnectionExplainStatic-turtle";

pub const RUN: &str = "run";

#[derive(Clone, Debug, PartialEq, Eq)]
enum UnitState {
    Queued,
    Leased(WorkerId),
    Finished,
}

#[derive(Clone, Debug)]
struct Unit {
    model: String,
    iterations: Vec<Iteration>,
    attempt: u32,
    state: UnitState,
}

/// What the coordinator knows and was told.
#[derive(Clone, Debug, Default)]
pub struct FailingState {
    units: Vec<Unit>,
    models: Vec<ModelSpec>,
    protected: bool,
    /// Every call fails.
    pub away: bool,
    /// Deliveries fail.
    pub full: bool,
    /// How long it takes to store records.
    pub storing_takes: Duration,
    /// Every worker is to end.
    pub drain: bool,
    /// Records received, in order.
    pub stored: Vec<Delivery>,
    pub refuse: bool,
    /// Records refused.
    pub refused: usize,
    /// Another process has the name of every worker, except of those that follow it.
    pub taken: Option<NameTaken>,
    pub finished: Vec<LeaseId>,
    pub released: Vec<LeaseId>,
    pub parked: Vec<Parking>,
    pub registered: Vec<WorkerId>,
    pub deregistered: Vec<WorkerId>,
    /// Why the last one ended.
    pub why: Option<Departure>,
    /// What is said to workers that hold nothing; `None` as coordinators before said.
    pub outlook: Option<Outlook>,
    /// Answers that said an outlook.
    pub told: u32,
    /// Every record is one of a run that is unknown.
    pub unknown_run: bool,
    /// Calls that failed, deliveries among them.
    pub failed_calls: u32,
    pub failed_deliveries: u32,
    pub permits: u32,
    pub last_report: Option<Report>,
    /// The hash of the run's pack and its file, instead of the built-in one.
    pub pack: Option<(String, Arc<[u8]>)>,
    lose: Vec<u64>,
}

impl FailingState {
    /// Records by dialogue.
    pub fn by_key(&self) -> BTreeMap<Iteration, usize> {
        let mut counts = BTreeMap::new();
        self.stored.iter().for_each(|delivery| *counts.entry(delivery.key.iteration).or_default() += 1);
        counts
    }

    /// Whether all units are done.
    pub fn complete(&self) -> bool {
        self.units.iter().all(|unit| unit.state == UnitState::Finished)
    }

    fn is_stored(&self, model: &str, iteration: Iteration) -> bool {
        self.stored
            .iter()
            .any(|stored| stored.key.model.as_str() == model && stored.key.iteration == iteration)
    }
}

/// The coordinator; it may be shared by several workers.
#[derive(Clone)]
pub struct FailingCoordinator {
    state: Arc<Mutex<FailingState>>,
    changed: Arc<watch::Sender<()>>,
}

impl FailingCoordinator {
    /// A run of these models.
    pub fn new(models: Vec<ModelSpec>) -> Self {
        let state = FailingState { models, ..FailingState::default() };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(watch::channel(()).0) }
    }

    /// Queues a unit; its number.
    pub fn unit(&self, model: &str, iterations: impl IntoIterator<Item = Iteration>) -> u64 {
        self.change(|state| {
            state.units.push(Unit {
                model: model.to_owned(),
                iterations: iterations.into_iter().collect(),
                attempt: 0,
                state: UnitState::Queued,
            });
            state.units.len() as u64 - 1
        })
    }

    /// The run's texts may lie on a disk only encrypted.
    pub fn protect(&self) {
        self.change(|state| state.protected = true);
    }

    /// Changes what is so; everybody who waits looks again.
    pub fn change<T>(&self, change: impl FnOnce(&mut FailingState) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.send_replace(());
        changed
    }

    /// Takes a unit away from its worker.
    pub fn lose(&self, unit: u64) {
        self.change(|state| state.lose.push(unit));
    }

    /// What is so.
    pub fn state(&self) -> FailingState {
        self.state.lock().unwrap().clone()
    }

    /// Waits until something is so.
    pub async fn until(&self, what: &str, is_so: impl Fn(&FailingState) -> bool) -> FailingState {
        let mut changed = self.changed.subscribe();
        let wait = async {
            loop {
                changed.borrow_and_update();
                let state = self.state();
                if is_so(&state) {
                    return state;
                }
                changed.changed().await.unwrap();
            }
        };
        // Not a bound on speed: a test that hangs is to say where.
        let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
        waited.unwrap_or_else(|_| {
            let mut state = self.state();
            state.stored.iter_mut().for_each(|stored| stored.json = "".into());
            panic!("{what} did not happen: {state:?}")
        })
    }

    /// Waits for a report that says so.
    pub async fn reports(&self, what: &str, says: impl Fn(&Report) -> bool) -> FailingState {
        self.until(what, |state| state.last_report.as_ref().is_some_and(&says)).await
    }

    fn reach(&self) -> Result<(), ServiceError> {
        let away = self.state.lock().unwrap().away;
        if away {
            self.change(|state| state.failed_calls += 1);
            return Err(ServiceError::new(ErrorCode::Unavailable, "away"));
        }
        Ok(())
    }

    /// The orders with what is left, for workers that want to know.
    fn with_outlook(&self, report: &Report, mut orders: Orders) -> Orders {
        if report.until.is_some() {
            let holds = !report.held.is_empty() || !orders.grants.is_empty();
            orders.outlook = if holds { Some(Outlook::Work) } else { self.state().outlook };
            self.change(|state| state.told += u32::from(orders.outlook.is_some()));
        }
        orders
    }

    fn answer(&self, report: &Report) -> Orders {
        let mut orders = Orders { noted: true, ..Orders::default() };
        self.change(|state| {
            if let Some(by) = state.taken.clone() {
                orders = Orders { superseded: Some(by), lost: report.held.clone(), ..Orders::default() };
                return;
            }
            state.last_report = Some(report.clone());
            for lease in &report.held {
                let held = &state.units[lease.unit as usize];
                let ours =
                    held.state == UnitState::Leased(report.worker.clone()) && held.attempt == lease.attempt;
                if !ours || state.lose.contains(&lease.unit) {
                    orders.lost.push(lease.clone());
                }
            }
            state.lose.clear();
            for lease in &orders.lost {
                let unit = &mut state.units[lease.unit as usize];
                // One that was given back waits: a report from before that must not end it.
                if unit.attempt == lease.attempt && unit.state != UnitState::Queued {
                    // Somebody else has it.
                    unit.state = UnitState::Finished;
                }
            }
            let ended =
                |how| report.ended.iter().filter(move |(_, end)| **end == how).map(|(lease, _)| lease);
            for lease in ended(LeaseEnd::Finished) {
                let unit = &state.units[lease.unit as usize];
                let complete = unit.iterations.iter().all(|i| state.is_stored(&unit.model, *i));
                assert!(complete, "{lease:?} is told to be finished and has gaps");
                state.units[lease.unit as usize].state = UnitState::Finished;
                state.finished.push(lease.clone());
            }
            for lease in ended(LeaseEnd::Released) {
                let unit = &mut state.units[lease.unit as usize];
                if unit.attempt == lease.attempt {
                    unit.state = UnitState::Queued;
                }
                state.released.push(lease.clone());
            }
            state.parked.extend(report.parked.iter().cloned());
            orders.drain = state.drain;
            if report.draining || state.drain {
                return;
            }
            for offer in &report.offers {
                let mut room = offer.room;
                for index in 0..state.units.len() {
                    let unit = state.units[index].clone();
                    let Some(spec) = state.models.iter().find(|model| model.label.as_str() == unit.model)
                    else {
                        continue;
                    };
                    let parked = state.parked.iter().any(|parking| parking.model == spec.label);
                    let served = match &offer.serves {
                        Serves::Model(name) => spec.requested() == name,
                        Serves::Connector(connector) => spec.connector == *connector,
                    };
                    let lease = LeaseId {
                        run: RUN.into(),
                        generation: 1,
                        model: spec.label.clone(),
                        unit: index as u64,
                        attempt: unit.attempt + u32::from(unit.state == UnitState::Queued),
                    };
                    let unreported = unit.state == UnitState::Leased(report.worker.clone())
                        && !report.held.contains(&lease)
                        && !report.ended.contains_key(&lease);
                    let fresh = unit.state == UnitState::Queued && room > 0 && !parked;
                    if !served || !(unreported || fresh) {
                        continue;
                    }
                    let iterations: Vec<_> = unit
                        .iterations
                        .iter()
                        .copied()
                        .filter(|i| !state.is_stored(&unit.model, *i))
                        .collect();
                    if iterations.is_empty() {
                        state.units[index].state = UnitState::Finished;
                        continue;
                    }
                    room = room.saturating_sub(iterations.len() as u32);
                    state.units[index].state = UnitState::Leased(report.worker.clone());
                    state.units[index].attempt = lease.attempt;
                    let lease_for = Duration::from_millis(600);
                    orders.grants.push(Grant {
                        lease,
                        task: TASK.into(),
                        iterations,
                        lease_for,
                        retry: None,
                    });
                }
            }
        });
        orders
    }
}

#[async_trait::async_trait]
impl WorkExchange for FailingCoordinator {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.reach()?;
        let taken = self.change(|state| {
            state.taken = state.taken.take().filter(|by| !registration.predecessors.contains(&by.instance));
            if state.taken.is_none() {
                state.registered.push(registration.worker);
            }
            state.taken.clone()
        });
        let report_every = Duration::from_millis(200);
        Ok(Registered { kgfleet: "test".to_owned(), report_every, taken })
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        let mut changed = self.changed.subscribe();
        let deadline = tokio::time::Instant::now() + report.wait;
        loop {
            changed.borrow_and_update();
            self.reach()?;
            let orders = self.answer(&report);
            // Answering is a change of its own.
            changed.borrow_and_update();
            let told = report.ended.len() + report.parked.len() > 0;
            let ready = told
                || orders.drain
                || orders.superseded.is_some()
                || !orders.grants.is_empty()
                || !orders.lost.is_empty();
            if ready || tokio::time::timeout_at(deadline, changed.changed()).await.is_err() {
                return Ok(self.with_outlook(&report, orders));
            }
        }
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        self.reach().inspect_err(|_| self.change(|state| state.failed_deliveries += 1))?;
        let storing_takes = self.state().storing_takes;
        let (this, storing) = (self.clone(), deliveries.clone());
        let stored = async move {
            tokio::time::sleep(storing_takes).await;
            this.change(|state| state.stored.extend(storing));
        };
        if !storing_takes.is_zero() {
            // Goes on where the caller has given up, as a coordinator does.
            tokio::spawn(stored).await.unwrap();
            return Ok(deliveries.iter().map(|_| Receipt::Stored).collect());
        }
        self.change(|state| {
            if state.full {
                state.failed_deliveries += 1;
                return Err(ServiceError::new(ErrorCode::Full, "the disk is full"));
            }
            if state.unknown_run {
                let later = || Receipt::Later { reason: "no such run".to_owned() };
                return Ok(deliveries.iter().map(|_| later()).collect());
            }
            if state.refuse {
                state.refused += deliveries.len();
                let refused = || Receipt::Refused { reason: "no such dialogue".to_owned() };
                return Ok(deliveries.iter().map(|_| refused()).collect());
            }
            let receipts = deliveries.iter().map(|_| Receipt::Stored).collect();
            state.stored.extend(deliveries);
            Ok(receipts)
        })
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        self.reach()?;
        let state = self.state();
        Ok(RunMaterial {
            about: None,
            run: run.clone(),
            seed: 7,
            pack_hash: match state.pack {
                Some((hash, _)) => hash,
                None => Pack::shared_builtin().unwrap().hash().as_str().to_owned(),
            },
            tasks: vec![TaskUse { label: TASK.into(), pack_label: TASK.into() }],
            models: state.models,
            protected: state.protected,
        })
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        match self.state().pack {
            Some((known, sealed)) if known == hash => Ok(sealed),
            _ => Err(ServiceError::new(ErrorCode::NotFound, format!("no pack {hash}"))),
        }
    }

    async fn take_rate(&self, _budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        self.reach()?;
        self.change(|state| state.permits += permits);
        Ok(None)
    }

    async fn deregister(&self, worker: &WorkerId, _: &InstanceId, why: Option<Departure>) -> Reply<()> {
        self.reach()?;
        self.change(|state| {
            state.deregistered.push(worker.clone());
            state.why = why;
        });
        Ok(())
    }
}
