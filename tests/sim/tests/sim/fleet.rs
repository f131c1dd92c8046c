//! The processes of a simulation: coordinators over one queue and one sink, workers, and the network between them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coordinator::access::Access;
use coordinator::{Adopt, Coordinator, CoordinatorOptions};
use domain::exchange::{
    Delivery, Departure, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial,
    WorkExchange,
};
use domain::{Connector, ErrorCode, InstanceId, RunId, ServiceError, WorkerId};
use queue::QueueStore;
use queue::testing::SimulatedRedis;
use results::Sink;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worker::{EvaluationMode, ExchangeFactory, Worker, WorkerConfig};

use crate::book::Book;
use crate::model::Models;
use crate::stores::{Omitted, QueueInTurn, SinkInTurn, ToRedis};
use crate::world::{Process, World, WorldClock};

/// Coordinators of a fleet, one of which leads.
pub const COORDINATORS: usize = 2;

/// Workers of a fleet.
pub const WORKERS: usize = 3;

/// How long a lease lasts without a report.
pub const LEASE_FOR: Duration = Duration::from_secs(6);

/// Dialogues that a worker holds at once.
const CONCURRENCY: u32 = 3;

/// One message in so many is lost while times are rough: half of them on their way, half of the answers.
const LOST_ONCE_IN: u64 = 150;

/// How long a coordinator stands still, give or take a half: about as long as another one waits before it leads.
const HELD_FOR_MS: u64 = 7_000;

/// How long a process that finds itself followed goes on with other things, at most, before it has ended.
const ENDS_WITHIN_MS: u64 = 1_500;

/// How long a place of a coordinator stays empty at most.
const STARTS_WITHIN_MS: u64 = 3_000;

/// A coordinator that runs.
#[derive(Clone)]
pub struct Live {
    pub process: Arc<Process>,
    pub access: Arc<Access>,
    coordinator: Arc<Coordinator>,
    pub queue: Arc<QueueInTurn>,
}

impl Live {
    /// What a call comes to; `None` where the coordinator dies before.
    pub async fn call<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.process.death() => None,
            answer = call => Some(answer),
        }
    }

    /// Whether it leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.queue.leads().is_ok()
    }
}

/// Everything that runs, and what it runs on.
pub struct FleetInTurn {
    pub world: Arc<World>,
    pub book: Arc<Book>,
    pub redis: Arc<SimulatedRedis>,
    pub sink: Sink,
    pub omits: Option<Omitted>,
    /// Whether the rules of queues are checked after each of their calls.
    is_checked: bool,
    places: Mutex<[Option<Live>; COORDINATORS]>,
    workers: Mutex<Vec<(Arc<Process>, JoinHandle<()>)>>,
    started: Mutex<u64>,
}

impl FleetInTurn {
    pub fn new(world: Arc<World>, data: &Path, omits: Option<Omitted>) -> Arc<Self> {
        Arc::new(Self {
            // In a quarter of the seeds, because that takes time.
            is_checked: world.once_in(4),
            world,
            book: Arc::default(),
            redis: SimulatedRedis::new(omits.and_then(Omitted::of_redis)),
            sink: Sink::new(data),
            omits,
            places: Mutex::default(),
            workers: Mutex::default(),
            started: Mutex::default(),
        })
    }

    fn next_name(&self, kind: &str, place: usize) -> String {
        let mut started = self.started.lock().unwrap();
        *started += 1;
        format!("{kind}{place}")
    }

    /// Sees that a coordinator runs in a place: whenever it has ended, another one starts a while later.
    pub async fn keep_coordinator(self: Arc<Self>, place: usize) {
        loop {
            let live = self.start_coordinator(place).await;
            live.process.death().await;
            self.places.lock().unwrap()[place] = None;
            tokio::time::sleep(Duration::from_millis(self.world.below(STARTS_WITHIN_MS))).await;
        }
    }

    /// Starts the coordinator of a place as its process does: it serves once queue and sink are known to belong together.
    async fn start_coordinator(&self, place: usize) -> Live {
        let process = Process::new(self.next_name("c", place));
        let clock = Arc::new(WorldClock(Arc::clone(&self.world)));
        let line = Arc::new(ToRedis { world: Arc::clone(&self.world), process: Arc::clone(&process) });
        let store = self.redis.store(&format!("c{place}"), line, clock, self.is_checked);
        let of_process = (Arc::clone(&self.world), Arc::clone(&process));
        let queue = Arc::new(QueueInTurn { world: of_process.0, process: of_process.1, queue: store });
        tokio::spawn(end_if_followed(Arc::clone(&queue)));
        let in_turn =
            SinkInTurn { world: Arc::clone(&self.world), process: Arc::clone(&process), omits: self.omits };
        let sink = self.sink.clone().with(Arc::new(in_turn));
        let (lease_for, backlog_for) = (LEASE_FOR, Duration::from_secs(1));
        let options = CoordinatorOptions { lease_for, backlog_for, ..CoordinatorOptions::fleet() };
        let coordinator = Coordinator::start(options, Arc::clone(&queue) as Arc<dyn QueueStore>, sink);
        let live = Live { process, access: coordinator.unnamed(), coordinator, queue };
        loop {
            match live.call(live.coordinator.bind(Adopt::NOTHING)).await {
                Some(Ok(())) => break,
                Some(Err(error)) if error.code.is_transient() => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Some(Err(error)) => {
                    self.book.broken(format!("{} is refused its own queue: {error}", live.process.name()));
                    std::future::pending::<()>().await;
                }
                None => return live,
            }
        }
        self.places.lock().unwrap()[place] = Some(live.clone());
        live
    }

    /// The coordinators that run, in an order that chance decides.
    fn coordinators(&self) -> Vec<Live> {
        let places = self.places.lock().unwrap();
        let mut live: Vec<Live> =
            places.iter().flatten().filter(|live| !live.process.is_dead()).cloned().collect();
        if self.world.once_in(2) {
            live.reverse();
        }
        live
    }

    /// The coordinator that answers: one that knows that it does not lead refuses every call, and the other one is asked.
    pub fn answering(&self) -> Option<Live> {
        self.coordinators().into_iter().find(Live::leads)
    }

    /// The coordinator that leads, once one does.
    pub async fn leading(&self) -> Live {
        loop {
            let mut leading = self.coordinators().into_iter().filter(Live::leads);
            if let (Some(live), None) = (leading.next(), leading.next()) {
                return live;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Kills the coordinator of a place, if one runs.
    pub fn kill_coordinator(&self, place: usize) {
        if let Some(live) = self.places.lock().unwrap()[place].take() {
            live.process.kill();
        }
    }

    /// Kills who leads, if anybody does.
    pub fn kill_leader(&self) {
        if let Some(leader) = self.answering() {
            leader.process.kill();
        }
    }

    /// Who leads stands still for a while, in which perhaps another one begins to lead. The first one does not know.
    pub fn stall_leader(&self) {
        if let Some(leader) = self.answering() {
            leader.process.hold(Duration::from_millis(HELD_FOR_MS / 2 + self.world.below(HELD_FOR_MS)));
        }
    }

    /// Starts a worker under a name of its own.
    pub fn start_worker(self: &Arc<Self>) {
        let number = {
            let mut started = self.started.lock().unwrap();
            *started += 1;
            *started as usize
        };
        let process = Process::new(format!("w{number}"));
        let name = WorkerId::new(process.name());
        let config = WorkerConfig {
            connectors: vec![Connector::Simulated],
            concurrency: Some(CONCURRENCY),
            evaluators: NonZeroUsize::MIN,
            connect: Arc::new(Models(Arc::clone(&self.world))),
            ..WorkerConfig::new(name, EvaluationMode::InProcess)
        };
        let (fleet, of_line) = (Arc::clone(self), Arc::clone(&process));
        let connect: ExchangeFactory = Arc::new(move || {
            let line = Line { fleet: Arc::clone(&fleet), process: Arc::clone(&of_line) };
            Arc::new(line) as Arc<dyn WorkExchange>
        });
        let (stop, stopped) = watch::channel(service_kit::Stop::No);
        let book = Arc::clone(&self.book);
        let task = tokio::spawn(async move {
            let ended = Worker::run(config, connect, stopped).await;
            drop(stop);
            book.broken(format!("a worker ended by itself: {ended:?}"));
        });
        self.workers.lock().unwrap().push((process, task));
    }

    /// Kills a worker, if one runs.
    pub fn kill_worker(&self) {
        let mut workers = self.workers.lock().unwrap();
        if workers.is_empty() {
            return;
        }
        let chosen = self.world.below(workers.len() as u64) as usize;
        let (process, task) = workers.remove(chosen);
        process.kill();
        task.abort();
    }
}

/// Ends a process a moment after it was followed.
async fn end_if_followed(queue: Arc<QueueInTurn>) {
    queue.queue.until_followed().await;
    tokio::time::sleep(Duration::from_millis(queue.world.below(ENDS_WITHIN_MS))).await;
    queue.process.kill();
}

/// The line of a worker: each call goes to the coordinator that leads, and may be lost.
struct Line {
    fleet: Arc<FleetInTurn>,
    process: Arc<Process>,
}

impl Line {
    async fn call<T, F>(&self, name: &str, call: impl FnOnce(Arc<Access>) -> F) -> Reply<T>
    where
        F: Future<Output = Reply<T>>,
    {
        let world = &self.fleet.world;
        let lost = |what: &str| Err(ServiceError::new(ErrorCode::Unavailable, what));
        let fate = world.below(2 * LOST_ONCE_IN);
        let is_rough = world.rough.load(Ordering::Relaxed);
        world.before(&self.process, name, "").await;
        if is_rough && fate == 0 {
            return lost("the call was lost");
        }
        let Some(live) = self.fleet.answering() else { return lost("no coordinator answers") };
        let Some(answer) = live.call(call(Arc::clone(&live.access))).await else {
            return lost("the coordinator is gone");
        };
        world.after(&self.process).await;
        if is_rough && fate == 1 { lost("the answer was lost") } else { answer }
    }
}

#[async_trait::async_trait]
impl WorkExchange for Line {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.call("register", |access| async move { access.register(registration).await }).await
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        let (book, world) = (&self.fleet.book, &self.fleet.world);
        let (begun, asked, held) = (world.event(), world.elapsed(), report.held.clone());
        book.gives_back(&self.process, &report.ended);
        let orders = self.call("exchange", |access| async move { access.exchange(report).await }).await;
        if let Ok(orders) = &orders {
            book.granted(begun, &orders.grants);
            book.holds(&self.process, (asked, world.elapsed()), &held, orders);
        }
        orders
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        let (book, world) = (Arc::clone(&self.fleet.book), Arc::clone(&self.fleet.world));
        self.call("deliver", |access| async move {
            let receipts = access.deliver(deliveries.clone()).await;
            if let Ok(receipts) = &receipts {
                book.acknowledged(world.event(), &deliveries, receipts);
            }
            receipts
        })
        .await
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        let run = run.clone();
        self.call("run_material", |access| async move { access.run_material(&run).await }).await
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        let hash = hash.to_owned();
        self.call("pack", |access| async move { access.pack(&hash).await }).await
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        let budget = budget.clone();
        self.call("take_rate", |access| async move { access.take_rate(&budget, permits).await }).await
    }

    async fn deregister(
        &self,
        worker: &WorkerId,
        instance: &InstanceId,
        why: Option<Departure>,
    ) -> Reply<()> {
        let (worker, instance) = (worker.clone(), instance.clone());
        let call = |access: Arc<Access>| async move { access.deregister(&worker, &instance, why).await };
        self.call("deregister", call).await
    }
}
