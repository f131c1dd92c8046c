//! A coordinator that remembers its calls and gives the answers set by the test, and a server for it.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::any::Any;
use std::fmt::Debug;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::control::{
    BenchmarkCommand, BenchmarkView, CellView, Control, DeadLetterView, ExportItem, Feed, HistoryEntry,
    ModelView, Pace, RunPhase, StrikeView, Submission, WorkerView,
};
use domain::exchange::{
    Delivery, Grant, LeaseId, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report,
    RunMaterial, TaskUse, WorkExchange, WorkerStatus,
};
use domain::{
    Connector, DialogueKey, FailureCause, InstanceId, Mean, ModelSpec, RunId, Sampling, ServiceError,
    WorkerId,
};
use futures::{StreamExt as _, stream};
use proto::server::{Identities, Security, ServeError, ServerTls, Services, serve};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// A call as [`Fake`] remembers it.
pub fn call(name: &str, arguments: &dyn Debug) -> String {
    format!("{name} {arguments:?}")
}

#[derive(Default)]
pub struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    heard: Vec<String>,
    next: Option<Result<Box<dyn Any + Send>, ServiceError>>,
    endless: Option<BenchmarkView>,
    stored: Vec<Delivery>,
    batches: Vec<Vec<u32>>,
    refused: Option<u32>,
    gate: Option<Arc<Gate>>,
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Sets the answer to the next call.
    pub fn will_return<T: Send + 'static>(&self, value: T) {
        self.state().next = Some(Ok(Box::new(value)));
    }

    /// Sets the error of the next call.
    pub fn will_fail(&self, error: &ServiceError) {
        self.state().next = Some(Err(error.clone()));
    }

    /// Watchers get this view, and then wait for more.
    pub fn will_show_and_wait(&self, view: BenchmarkView) {
        self.state().endless = Some(view);
    }

    /// The calls since this was last asked.
    pub fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.state().heard)
    }

    pub fn take_stored(&self) -> Vec<Delivery> {
        std::mem::take(&mut self.state().stored)
    }

    /// The iterations of each batch.
    pub fn take_batches(&self) -> Vec<Vec<u32>> {
        std::mem::take(&mut self.state().batches)
    }

    /// Records of this iteration are refused.
    pub fn refuse_iteration(&self, iteration: u32) {
        self.state().refused = Some(iteration);
    }

    /// From now on deliveries wait at this gate.
    pub fn hold_deliveries(&self) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        self.state().gate = Some(Arc::clone(&gate));
        gate
    }

    fn reply<T: 'static>(&self, heard: String) -> Result<T, ServiceError> {
        let mut state = self.state();
        state.heard.push(heard);
        let next = state.next.take().expect("the test says what the next call is answered with");
        next.map(|value| *value.downcast().expect("the test's answer has the type of the call"))
    }

    fn feeding<T: Send + 'static>(&self, heard: String) -> Feed<'_, T> {
        let items: Result<Vec<Result<T, ServiceError>>, _> = self.reply(heard);
        Box::pin(stream::iter(items.unwrap_or_else(|error| vec![Err(error)])))
    }
}

#[tonic::async_trait]
impl WorkExchange for Fake {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.reply(call("register", &registration))
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        self.reply(call("exchange", &report))
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        let gate = {
            let mut state = self.state();
            if let Some(Err(error)) = state.next.take() {
                return Err(error);
            }
            state.gate.clone()
        };
        if let Some(gate) = gate {
            gate.pass().await;
        }
        let mut state = self.state();
        let receipt = |delivery: &Delivery| match state.refused {
            Some(refused) if refused == delivery.key.iteration => {
                Receipt::Refused { reason: "not planned".to_owned() }
            }
            _ => Receipt::Stored,
        };
        let receipts = deliveries.iter().map(receipt).collect();
        state.batches.push(deliveries.iter().map(|delivery| delivery.key.iteration).collect());
        state.stored.extend(deliveries);
        Ok(receipts)
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        self.reply(call("run_material", run))
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        self.reply(call("pack", &hash))
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        self.reply(call("take_rate", &(budget, permits)))
    }

    async fn deregister(&self, worker: &WorkerId, _: &InstanceId) -> Reply<()> {
        self.reply(call("deregister", worker))
    }
}

#[tonic::async_trait]
impl Control for Fake {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        self.reply(call("submit", &submission))
    }

    async fn extend(&self, run: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        self.reply(call("extend", &(run, submission)))
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        self.reply("list".to_owned())
    }

    async fn view(&self, run: &RunId) -> Reply<BenchmarkView> {
        self.reply(call("view", run))
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, BenchmarkView> {
        let endless = self.state().endless.clone();
        match endless {
            Some(view) => Box::pin(stream::iter([Ok(view)]).chain(stream::pending())),
            None => self.feeding(call("watch", run)),
        }
    }

    async fn command(&self, run: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        self.reply(call("command", &(run, command)))
    }

    async fn retry(&self, run: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        self.reply(call("retry", &(run, causes)))
    }

    async fn remove(&self, run: &RunId, force: bool) -> Reply<()> {
        self.reply(call("remove", &(run, force)))
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        self.feeding(call("records", run))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.reply("workers".to_owned())
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.reply(call("drain_worker", worker))
    }

    async fn dead_letters(&self, run: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        self.reply(call("dead_letters", &(run, unit)))
    }

    async fn requeue(&self, run: &RunId, units: &[u64]) -> Reply<u64> {
        self.reply(call("requeue", &(run, units)))
    }

    async fn check(&self) -> Reply<Vec<String>> {
        self.reply("check".to_owned())
    }
}

/// Holds deliveries until the test lets them through.
pub struct Gate {
    entered: watch::Sender<usize>,
    passed: watch::Sender<usize>,
    tickets: Semaphore,
    inside: Mutex<(usize, usize)>,
}

impl Default for Gate {
    fn default() -> Self {
        let (entered, passed) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { entered, passed, tickets: Semaphore::new(0), inside: Mutex::default() }
    }
}

impl Gate {
    async fn pass(&self) {
        {
            let mut inside = self.inside.lock().unwrap();
            inside.0 += 1;
            inside.1 = inside.1.max(inside.0);
        }
        self.entered.send_modify(|entered| *entered += 1);
        self.tickets.acquire().await.unwrap().forget();
        self.inside.lock().unwrap().0 -= 1;
        self.passed.send_modify(|passed| *passed += 1);
    }

    /// Waits until so many deliveries have gone through.
    pub async fn passed(&self, count: usize) {
        self.passed.subscribe().wait_for(|passed| *passed >= count).await.unwrap();
    }

    /// Waits until so many deliveries have come.
    pub async fn entered(&self, count: usize) {
        self.entered.subscribe().wait_for(|entered| *entered >= count).await.unwrap();
    }

    /// The most that waited at the same time.
    pub fn most_at_once(&self) -> usize {
        self.inside.lock().unwrap().1
    }

    pub fn open_one(&self) {
        self.tickets.add_permits(1);
    }

    pub fn open(&self) {
        self.tickets.add_permits(1 << 20);
    }
}

/// A server on a runtime of its own, so that it can die as a process does.
pub struct Node {
    address: String,
    /// Keeps the port while a server dies and another one begins.
    port: Option<TcpListener>,
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Node {
    pub fn start(fake: &Arc<Fake>) -> Self {
        Self::start_on(fake, TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn start_on(fake: &Arc<Fake>, port: TcpListener) -> Self {
        Self::start_as(fake, port, Security::none())
    }

    pub fn start_with_tls(fake: &Arc<Fake>, tls: ServerTls) -> Self {
        Self::start_with(fake, Security::tls(&tls, Identities::anyone()).unwrap())
    }

    pub fn start_with(fake: &Arc<Fake>, security: Security) -> Self {
        Self::start_as(fake, TcpListener::bind("127.0.0.1:0").unwrap(), security)
    }

    fn start_as(fake: &Arc<Fake>, port: TcpListener, security: Security) -> Self {
        let scheme = if security.tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", port.local_addr().unwrap());
        port.set_nonblocking(true).unwrap();
        let listener = port.try_clone().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let services = Services { exchange: fake.clone(), control: fake.clone() };
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            serve(listener, services, security, async { stopped.await.unwrap_or_default() }).await
        });
        Self { address, port: Some(port), runtime: Some(runtime), stop: Some(stop), serving: Some(serving) }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Dies as a killed process does; its port stays open for another one.
    pub fn die(mut self) -> TcpListener {
        self.runtime.take().unwrap().shutdown_background();
        self.port.take().unwrap()
    }

    /// Asks the server to stop.
    pub fn stop(&mut self) {
        self.port = None;
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until it has.
    pub async fn ended(&mut self) {
        self.serving.take().unwrap().await.unwrap().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub fn lease(unit: u64) -> LeaseId {
    LeaseId { run: "r".into(), generation: 1 << 40, model: "tiny".into(), unit, attempt: 1 }
}

pub fn grant(unit: u64) -> Grant {
    Grant {
        lease: lease(unit),
        task: "t".into(),
        iterations: vec![0, 4],
        lease_for: Duration::from_secs(30),
        retry: Some(7),
    }
}

pub fn delivery(iteration: u32) -> Delivery {
    let key = DialogueKey { model: "tiny".into(), task: "t".into(), iteration };
    let failure = iteration.is_multiple_of(3).then_some(FailureCause::Server);
    Delivery { run: "r".into(), key, failure, json: format!("{{\"i\":{iteration}}}").into() }
}

pub fn material() -> RunMaterial {
    let model = ModelSpec {
        sampling: Sampling { temperature: Some(0.7), ..Sampling::default() },
        skill: Some(0.1 + 0.2),
        ..ModelSpec::new("tiny", Connector::Simulated)
    };
    RunMaterial {
        run: "r".into(),
        seed: u64::MAX,
        pack_hash: "00ff".into(),
        tasks: vec![TaskUse { label: "t".into(), pack_label: "p".into() }],
        models: vec![model],
        protected: true,
        about: None,
    }
}

pub fn run_view() -> BenchmarkView {
    let model = ModelView {
        model: "tiny".into(),
        planned: 10,
        scored: 5,
        failed: 1,
        units_pending: 2,
        units_leased: 3,
        units_dead: 4,
        units_suspect: 1,
        workers: 6,
        parked: Some("quota".to_owned()),
        pace: Pace::default(),
        blocked: None,
        mean: Mean::default(),
    };
    BenchmarkView {
        run: "r".into(),
        name: "quick".to_owned(),
        phase: RunPhase::Active,
        created_at: "2026-11-21T16:00:00.000000001Z".parse().unwrap(),
        generation: 7,
        planned: 10,
        scored: 5,
        failed: 1,
        failures: vec![(FailureCause::Timeout, 1)],
        rate: 0.1 + 0.2,
        eta_s: Some(1e-300),
        trouble: Some("slow".to_owned()),
        models: vec![model],
        cells: vec![CellView {
            task: "t".into(),
            model: "tiny".into(),
            scored: 5,
            failed: 1,
            planned: 10,
            mean: None,
            missing: 2,
        }],
        tokens_per_second: 1e300,
        refusals: Vec::new(),
        notes: vec!["a note".to_owned()],
        headline: Default::default(),
        rows: Vec::new(),
        runs: Vec::new(),
        history: vec![HistoryEntry {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            who: "alice".into(),
            what: "submitted".into(),
        }],
    }
}

pub fn worker_view() -> WorkerView {
    let status = WorkerStatus { serves: vec!["tiny".to_owned()], in_flight: 3, ..WorkerStatus::default() };
    WorkerView { worker: "w".into(), status: Arc::new(status), seen_ms_ago: 12, draining: true }
}

pub fn dead_letter() -> DeadLetterView {
    let strike = StrikeView {
        worker: "w".into(),
        attempt: 3,
        cause: "lease expired".to_owned(),
        at: "2026-11-21T16:00:00Z".parse().unwrap(),
    };
    DeadLetterView {
        run: "r".into(),
        unit: 9,
        dialogues: vec![delivery(0).key],
        strikes: vec![strike],
        suspect: true,
    }
}
