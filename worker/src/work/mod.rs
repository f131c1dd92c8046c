//! The work loop: handles all events of a worker, one at a time.
//!
//! The state machines decide and the loop carries out: [`crate::slots`] for leases, [`crate::servers`] for servers,
//! [`crate::breaker`] for models that cannot be asked. [`lanes`] prepares and starts the dialogues of a run,
//! [`records`] handles their results, [`poll`] talks to the coordinator,
//! [`leaving`] sees whether the worker ends by itself, [`ending`] shuts down.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{
    ModelCalls, ModelLimit, NameTaken, NotAsked, Parking, Retries, Until, WorkExchange, WorkerPhase,
    WorkerStatus,
};
use models::{CallStage, FailingCall, Progress};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;

mod ending;
mod lanes;
mod leaving;
mod poll;
mod records;

use crate::breaker::Breaker;
use crate::config::WorkerConfig;
use crate::discovery::{Discovery, Endpoints};
use crate::keeper::RenewalReply;
use crate::ledger::SharedLedger;
use crate::metrics;
use crate::outbox::{Acknowledged, Outbox, Outgoing};
use crate::runs::HeldRuns;
use crate::servers::{News, ServerKey, Servers};
use crate::slots::{LaneKey, Tag};
use crate::unrecorded::Unrecorded;
use crate::until_done::{UntilDone, WorkerEnding};
use ending::DrainPhase;
use lanes::{Loaded, ModelLane, Prepared, RunLoading};
use leaving::WorkerDoing;
use poll::{Poll, ReportAnswer};
use records::{EndedDialogue, Unjudged};
use service_kit::{Stop, StopReceiver};

/// Interval of time-driven housekeeping.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(1);

/// Number of runs kept prepared. More are kept only while leases of them are held.
const RUNS_KEPT_MAX: usize = 4;

/// Number of models in each list of the status. If there are more, people see only the first ones.
const MODELS_TOLD_MAX: usize = 64;

/// Failed calls of a first question from which the status tells of them: one alone says little.
const FAILED_CALLS_TOLD: u32 = 3;

/// Characters of a reason in the status.
const REASON_CHARS_MAX: usize = 160;

/// What the loop listens to, besides its own tasks.
pub(crate) struct LoopInputs {
    pub(crate) stop: StopReceiver,
    pub(crate) acknowledged: mpsc::Receiver<Vec<Acknowledged>>,
    pub(crate) renewals: mpsc::Receiver<RenewalReply>,
    pub(crate) news: mpsc::Receiver<News>,
}

enum Event {
    Stop(Stop),
    Dialogue(Result<(Id, EndedDialogue), JoinError>),
    Acknowledged(Vec<Acknowledged>),
    Answer(ReportAnswer),
    Renewal(Box<RenewalReply>),
    News(News),
    Loaded(Result<Loaded, JoinError>),
    Prepared(Result<Prepared, JoinError>),
    Time,
}

/// A dialogue in flight.
struct Running {
    server: ServerKey,
    task: AbortHandle,
    began: Instant,
    progress: Progress,
}

impl Running {
    /// Whether no server has accepted its call: it failed, or waits for its rate budget.
    fn is_unaccepted(&self) -> bool {
        self.progress.failing().is_some() || self.progress.latest().is_none()
    }

    /// Whether its server answers it, or has answered its latest call.
    fn is_answered(&self) -> bool {
        matches!(self.progress.latest(), Some((_, CallStage::Answered)))
    }
}

pub(crate) struct Work {
    config: WorkerConfig,
    exchange: Arc<dyn WorkExchange>,
    ledger: SharedLedger,
    outbox: Outbox,
    discovery: Discovery,
    servers: Servers,
    runs: Arc<HeldRuns>,
    contexts: BTreeMap<domain::RunId, RunLoading>,
    lanes: BTreeMap<LaneKey, ModelLane>,
    /// The lane that started a dialogue last. The next dialogue is of another lane, if possible.
    last_begun: Option<LaneKey>,
    breakers: BTreeMap<LaneKey, Breaker<Outgoing>>,
    unjudged: Unjudged,
    unrecorded: Unrecorded,
    loading: JoinSet<Loaded>,
    preparing: JoinSet<Prepared>,
    dialogues: JoinSet<EndedDialogue>,
    running: BTreeMap<Tag, Running>,
    tags: HashMap<Id, Tag>,
    poll: Poll,
    phase: DrainPhase,
    doing: WorkerDoing,
    /// Set if it ends by itself when nothing is left.
    until: Option<UntilDone>,
    /// Why it ends by itself, once it does.
    leaving: Option<WorkerEnding>,
    /// Whether it was told to end while it waited for receipts.
    is_cut_short: bool,
    superseded: Option<NameTaken>,
    /// Whether lanes must be updated: leases, servers or runs changed.
    unsettled: bool,
    /// Why models are not asked for a while, by their lanes.
    parked: BTreeMap<LaneKey, String>,
    ended: u64,
    next_housekeeping: Instant,
}

impl Work {
    pub(crate) fn new(
        config: WorkerConfig,
        exchange: Arc<dyn WorkExchange>,
        ledger: SharedLedger,
        outbox: Outbox,
        discovery: Discovery,
        runs: Arc<HeldRuns>,
    ) -> Self {
        let expected = config.expected_models.clone();
        let servers = Servers::new(&config.worker, expected, config.concurrency, config.server_key.clone());
        let servers = match &config.endpoints {
            Endpoints::Listed(addresses) => servers.at(addresses),
            Endpoints::File(_) | Endpoints::Own(_) => servers,
        };
        let now = Instant::now();
        let until = config.until_done.map(|rules| UntilDone::new(rules, now));
        let expects = || Until { expects: config.expected_models.clone() };
        ledger.lock().until = until.is_some().then(expects);
        Self {
            config,
            exchange,
            ledger,
            outbox,
            discovery,
            servers,
            runs,
            contexts: BTreeMap::new(),
            lanes: BTreeMap::new(),
            last_begun: None,
            breakers: BTreeMap::new(),
            unjudged: Unjudged::default(),
            unrecorded: Unrecorded::default(),
            loading: JoinSet::new(),
            preparing: JoinSet::new(),
            dialogues: JoinSet::new(),
            running: BTreeMap::new(),
            tags: HashMap::new(),
            poll: Poll::default(),
            phase: DrainPhase::Working,
            doing: WorkerDoing::loading(now),
            until,
            leaving: None,
            is_cut_short: false,
            superseded: None,
            unsettled: false,
            parked: BTreeMap::new(),
            ended: 0,
            next_housekeeping: now,
        }
    }

    /// Runs until a shutdown is complete: everything is delivered or given back. Returns the number of dialogues.
    pub(crate) async fn run(&mut self, inputs: &mut LoopInputs) -> u64 {
        let stop = *inputs.stop.borrow_and_update();
        self.stop(stop, Instant::now());
        loop {
            let now = Instant::now();
            let next = self.advance(now);
            if self.phase == DrainPhase::Over {
                return self.ended;
            }
            let event = self.next_event(inputs, next).await;
            if !matches!(event, Event::Time) {
                self.poll.stir();
            }
            match event {
                Event::Stop(stop) => self.stop(stop, Instant::now()),
                Event::Dialogue(ended) => self.dialogue_ended(ended, Instant::now()),
                Event::Acknowledged(records) => self.acknowledged(records, Instant::now()),
                Event::Answer(answer) => self.answered(answer, Instant::now()),
                Event::Renewal(renewal) => {
                    let RenewalReply { report, asked, orders } = *renewal;
                    let now = Instant::now();
                    self.told(orders.outlook, asked, now);
                    self.take_orders(&report, orders, now);
                }
                Event::News(news) => {
                    // Loads move limits and no lanes, and come often.
                    self.unsettled |= !matches!(news, News::Load { .. });
                    if let News::Version { endpoint, .. } = &news {
                        self.connect_again(endpoint);
                    }
                    self.servers.apply(news, Instant::now());
                }
                Event::Loaded(loaded) => self.loaded(loaded, Instant::now()),
                Event::Prepared(prepared) => self.prepared(prepared, Instant::now()),
                Event::Time => {}
            }
        }
    }

    /// Does everything possible now; returns when there may be more to do without an event.
    fn advance(&mut self, now: Instant) -> Instant {
        if now >= self.next_housekeeping {
            self.keep_house(now);
            self.next_housekeeping = now + HOUSEKEEPING_EVERY;
        }
        if self.unsettled {
            self.unsettled = false;
            self.settle_lanes(now);
        }
        self.review_doubts(now);
        self.note_first_answers();
        self.begin_dialogues(now);
        self.look_at_servers();
        self.release_held_back(false, now);
        self.advance_leaving(now);
        let ending = self.advance_ending(now);
        let poll = self.advance_poll(now);
        [ending, poll].into_iter().flatten().fold(self.next_housekeeping, Instant::min)
    }

    async fn next_event(&mut self, inputs: &mut LoopInputs, wake_at: Instant) -> Event {
        tokio::select! {
            // In this order every event has its turn: ends of dialogues may come without a pause, and nothing else can. Their
            // records are acknowledged after them, reports and renewals are paced by time, and what time alone brings is seen
            // to before each event.
            biased;
            stop = stopped(&mut inputs.stop) => Event::Stop(stop),
            Some(renewal) = inputs.renewals.recv() => Event::Renewal(Box::new(renewal)),
            answer = self.poll.answer() => Event::Answer(answer),
            Some(records) = inputs.acknowledged.recv() => Event::Acknowledged(records),
            Some(news) = inputs.news.recv() => Event::News(news),
            Some(loaded) = self.loading.join_next() => Event::Loaded(loaded),
            Some(prepared) = self.preparing.join_next() => Event::Prepared(prepared),
            Some(ended) = self.dialogues.join_next_with_id() => Event::Dialogue(ended),
            () = tokio::time::sleep_until(wake_at) => Event::Time,
        }
    }

    /// Has the loads read that limits need.
    fn look_at_servers(&mut self) {
        for (address, look) in self.servers.take_looks() {
            self.discovery.look(&address, look);
        }
    }

    /// Time-driven housekeeping.
    fn keep_house(&mut self, now: Instant) {
        // Servers are given up and breakers close by the clock.
        self.unsettled = true;
        self.poll.stir();
        self.servers.look_at_hosted();
        metrics::servers(&self.servers.sights());
        metrics::doing(self.doing.phase, self.doing.time(now), self.doing.loaded_in, self.config.gpus);
        {
            let mut ledger = self.ledger.lock();
            ledger.slots.forget_idle_lanes();
            let (leases, pending) = (ledger.slots.held().count(), ledger.slots.total().pending);
            metrics::holdings(leases, pending, self.outbox.unacknowledged());
        }
        self.evict_runs();
        // A report that waits for work has an old one; renewals bring this.
        let status = self.status(now);
        self.ledger.lock().status = status;
        let held = self.ledger.lock().slots.held_lanes();
        self.breakers.retain(|lane, breaker| held.contains(lane) || breaker.is_worth_keeping(now));
        self.parked.retain(|lane, _| self.breakers.get(lane).is_some_and(|breaker| breaker.is_open(now)));
    }

    /// The status for people.
    fn status(&self, now: Instant) -> WorkerStatus {
        let mut status = WorkerStatus {
            serves: {
                let connectors = self.config.connectors.iter().map(|one| one.as_str().to_owned());
                self.servers.models(now).into_iter().chain(connectors).collect()
            },
            in_flight: self.running.len() as u32,
            limit: self.servers.limits().map(|(_, limit, _)| limit).sum(),
            limits: limits_by_model(&self.servers),
            calls: self.calls(),
            dialogues: self.ended,
            unacknowledged: self.outbox.unacknowledged(),
            parked_records: self.outbox.stranded(),
            not_asked: self.not_asked(),
            phase: Some(self.doing.phase),
            phase_s: self.doing.time(now).as_secs(),
            loaded_s: self.doing.loaded_in.map(|time| time.as_secs()),
            ..self.config.first_status()
        };
        let parked = self.parked.first_key_value().map(|(LaneKey { run, model }, reason)| {
            format!("model {model} of run {run} is not asked: {reason}")
        });
        // A server that loads is no trouble for a worker that gives it a time.
        let awaited = self.until.is_some() && self.doing.phase == WorkerPhase::Loading;
        let servers = if awaited { self.servers.own_trouble() } else { self.servers.trouble() };
        let waiting = self.waiting_first().pop_first().map(|(LaneKey { model, .. }, why)| {
            format!("the first question of model {model} is not answered: {why}")
        });
        let troubles = [self.outbox.trouble(), self.poll.trouble.clone(), servers, parked, waiting];
        status.trouble = troubles.into_iter().flatten().next();
        status
    }

    /// The models that are not asked further, and why.
    fn not_asked(&self) -> Vec<NotAsked> {
        let told = |(LaneKey { run, model }, reason): (&LaneKey, &str), waits| {
            let reason = reason.chars().take(REASON_CHARS_MAX).collect();
            NotAsked { run: run.clone(), model: model.clone(), reason, waits }
        };
        let parked = self.parked.iter().map(|(lane, reason)| told((lane, reason), false));
        let waiting = self.waiting_first().into_iter().filter(|(lane, _)| !self.parked.contains_key(lane));
        let waiting = waiting.map(|(lane, why)| told((&lane, &why), true));
        parked.chain(waiting).take(MODELS_TOLD_MAX).collect()
    }

    /// The models whose first questions are under way at all their servers, and what these have met so far.
    fn waiting_first(&self) -> BTreeMap<LaneKey, String> {
        if !self.servers.are_first_asked() {
            return BTreeMap::new();
        }
        let firsts = self.running.iter().filter(|(_, running)| self.servers.is_first(&running.server));
        let waiting = firsts.filter_map(|(tag, running)| {
            let failing =
                running.progress.failing().filter(|failing| failing.attempts >= FAILED_CALLS_TOLD)?;
            let lane = LaneKey::of(&tag.lease);
            let servers = &self.lanes.get(&lane)?.servers;
            let why = self.servers.with_remark(&running.server, &failing.to_string());
            servers.iter().all(|server| self.servers.is_first(server)).then_some((lane, why))
        });
        waiting.collect()
    }

    /// Takes note of first questions that are answered while their dialogues go on.
    fn note_first_answers(&mut self) {
        if !self.servers.are_first_asked() {
            return;
        }
        let answered = self
            .running
            .values()
            .filter(|running| self.servers.is_first(&running.server) && running.progress.was_answered());
        let answered: Vec<ServerKey> = answered.map(|running| running.server.clone()).collect();
        answered.iter().for_each(|server| self.servers.answered(server));
    }

    /// What is under way of each model of each run.
    fn calls(&self) -> Vec<ModelCalls> {
        let mut found = BTreeMap::<LaneKey, ModelCalls>::new();
        for (tag, running) in &self.running {
            let lane = LaneKey::of(&tag.lease);
            let told = found.entry(lane).or_insert_with_key(|LaneKey { run, model }| ModelCalls {
                run: run.clone(),
                model: model.clone(),
                ..ModelCalls::default()
            });
            match (running.progress.failing(), running.progress.latest()) {
                (Some(FailingCall { why, since, attempts, .. }), _) => {
                    told.calls.add_retries(Retries { why, calls: 1, since, attempt: attempts + 1 });
                }
                (None, None) => told.calls.waiting += 1,
                (None, Some(_)) => told.calls.in_flight += 1,
            }
        }
        let told = found.into_values().map(|mut told| {
            told.calls.keep_most_frequent();
            told
        });
        told.take(MODELS_TOLD_MAX).collect()
    }

    /// Stops the running dialogues of a lane, and gives back those that have not started. Answers that have begun are
    /// awaited: they would be paid for twice.
    fn stop_lane(&self, lane: &LaneKey) {
        self.stop_those(|tag, running| lane.has(&tag.lease) && !running.is_answered());
        self.ledger.lock().slots.give_back_lane(lane);
    }

    /// Stops these dialogues that are in flight, which go back with their leases; how many.
    fn stop_those(&self, stops: impl Fn(&Tag, &Running) -> bool) -> usize {
        let mut ledger = self.ledger.lock();
        let stopped = self.running.iter().filter(|(tag, running)| stops(tag, running));
        let tags: Vec<&Tag> =
            stopped.map(|(tag, _)| tag).filter(|tag| ledger.slots.is_running(tag)).collect();
        for tag in &tags {
            self.abort(tag);
            ledger.slots.dropped(tag);
        }
        tags.len()
    }

    /// Ends the task of a dialogue whose lease is settled.
    fn abort(&self, tag: &Tag) {
        if let Some(running) = self.running.get(tag) {
            running.task.abort();
        }
    }

    /// Opens the breaker of a lane for a reason outside its dialogues. `everywhere` says whether other workers are affected, too.
    fn trip(&mut self, lane: &LaneKey, reason: String, everywhere: bool, now: Instant) {
        let (forgotten, parked_for) = self.breakers.entry(lane.clone()).or_default().trip(now);
        metrics::parked(lane.model.as_str(), None);
        self.park(lane, forgotten, parked_for, reason, everywhere);
    }

    /// Handles an open breaker. `everywhere` says whether other workers are affected, too.
    fn park(
        &mut self,
        lane: &LaneKey,
        forgotten: Vec<Outgoing>,
        parked_for: Duration,
        reason: String,
        everywhere: bool,
    ) {
        let LaneKey { run, model } = lane.clone();
        tracing::warn!(%run, %model, seconds = parked_for.as_secs(), reason, "the model is not asked for a while");
        self.parked.insert(lane.clone(), reason.clone());
        forgotten.iter().for_each(|held_back| self.drop_record(held_back));
        self.stop_lane(lane);
        if let Some(lane) = self.lanes.get(lane) {
            self.servers.begin_again(&lane.servers);
        }
        if everywhere {
            self.ledger.lock().park(Parking { run, model, parked_for, reason });
        }
    }

    /// Unacknowledged records.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.outbox.unacknowledged()
    }

    /// Stops the parts.
    pub(crate) async fn close(self) {
        let Self { outbox, mut dialogues, .. } = self;
        dialogues.shutdown().await;
        outbox.close().await;
    }
}

/// What the status says of limits. A model may have several servers.
fn limits_by_model(servers: &Servers) -> Vec<ModelLimit> {
    let mut limits = BTreeMap::<&str, ModelLimit>::new();
    for (key, limit, reason) in servers.limits() {
        let told = limits.entry(key.model()).or_default();
        told.limit += limit;
        if !told.reasons.iter().any(|known| known == reason.as_str()) {
            told.reasons.push(reason.as_str().to_owned());
        }
    }
    let told = |(model, limit): (&str, ModelLimit)| ModelLimit { model: model.to_owned(), ..limit };
    limits.into_iter().take(MODELS_TOLD_MAX).map(told).collect()
}

/// The next shutdown request.
async fn stopped(stop: &mut StopReceiver) -> Stop {
    match stop.changed().await {
        Ok(()) => *stop.borrow_and_update(),
        Err(_) => std::future::pending().await, // Nobody is left who could ask.
    }
}
