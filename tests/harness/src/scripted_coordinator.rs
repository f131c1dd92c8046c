//! A coordinator that remembers its calls and gives the answers set by the test, and a server for it that can die. It keeps no
//! queue: what it answers to workers follows from nothing. One that hands out units is in
//! [`failing_coordinator`](crate::failing_coordinator).

use std::any::Any;
use std::fmt::Debug;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
    WorkerView,
};
use domain::exchange::{
    Delivery, Departure, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial,
    WorkExchange,
};
use domain::pools::{PoolStates, ServerUsage};
use domain::{FailureCause, InstanceId, RunId, ServiceError, WorkerId};
use futures::{StreamExt as _, stream};
use proto::server::{BesideCalls, Identities, Security, ServerTls, Services, serve};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// A call as [`ScriptedCoordinator`] remembers it.
pub fn call(name: &str, arguments: &dyn Debug) -> String {
    format!("{name} {arguments:?}")
}

/// The coordinator. A call for which the test has set no answer fails the test, but for deliveries, which are stored.
#[derive(Default)]
pub struct ScriptedCoordinator(Mutex<Script>);

#[derive(Default)]
struct Script {
    heard: Vec<String>,
    next: Option<Result<Box<dyn Any + Send>, ServiceError>>,
    endless: Option<BenchmarkView>,
    stored: Vec<Delivery>,
    batches: Vec<Vec<u32>>,
    refused: Option<u32>,
    gate: Option<Arc<DeliveryGate>>,
}

impl ScriptedCoordinator {
    fn state(&self) -> MutexGuard<'_, Script> {
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
    pub fn hold_deliveries(&self) -> Arc<DeliveryGate> {
        let gate = Arc::new(DeliveryGate::default());
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

#[async_trait::async_trait]
impl WorkExchange for ScriptedCoordinator {
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

    async fn deregister(&self, worker: &WorkerId, _: &InstanceId, why: Option<Departure>) -> Reply<()> {
        self.reply(call("deregister", &(worker, why)))
    }
}

#[async_trait::async_trait]
impl Control for ScriptedCoordinator {
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

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        self.reply(call("needs", &models))
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        self.reply(call("note_pools", &states))
    }

    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()> {
        self.reply(call("note_server_usage", &ended))
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        self.reply("server_usage".to_owned())
    }
}

/// Holds deliveries until the test lets them through.
pub struct DeliveryGate {
    entered: watch::Sender<usize>,
    tickets: Semaphore,
}

impl Default for DeliveryGate {
    fn default() -> Self {
        Self { entered: watch::Sender::new(0), tickets: Semaphore::new(0) }
    }
}

impl DeliveryGate {
    async fn pass(&self) {
        self.entered.send_modify(|entered| *entered += 1);
        self.tickets.acquire().await.unwrap().forget();
    }

    /// Waits until so many deliveries have come.
    pub async fn entered(&self, count: usize) {
        self.entered.subscribe().wait_for(|entered| *entered >= count).await.unwrap();
    }

    pub fn open(&self) {
        self.tickets.add_permits(1 << 20);
    }
}

/// A server on a runtime of its own, so that it can die as a process does.
pub struct ScriptedServer {
    address: String,
    /// Keeps the port while a server dies and another one begins.
    port: Option<TcpListener>,
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    pub fn start(fake: &Arc<ScriptedCoordinator>) -> Self {
        Self::start_on(fake, TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn start_on(fake: &Arc<ScriptedCoordinator>, port: TcpListener) -> Self {
        Self::start_as(fake, port, Security::none())
    }

    pub fn start_with_tls(fake: &Arc<ScriptedCoordinator>, tls: ServerTls) -> Self {
        Self::start_with(fake, Security::tls(&tls, Identities::anyone()).unwrap())
    }

    pub fn start_with(fake: &Arc<ScriptedCoordinator>, security: Security) -> Self {
        Self::start_as(fake, TcpListener::bind("127.0.0.1:0").unwrap(), security)
    }

    fn start_as(fake: &Arc<ScriptedCoordinator>, port: TcpListener, security: Security) -> Self {
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
            serve(listener, services, security, BesideCalls::default(), async {
                stopped.await.unwrap_or_default();
            })
            .await;
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
        self.serving.take().unwrap().await.unwrap();
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
