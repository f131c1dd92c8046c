//! Lanes: prepares and starts the dialogues of one model of one run.
//!
//! A lane begins when its run is loaded and a lease of its model is held, and ends when the run is loaded again or evicted. The
//! loop of `Work` settles all lanes after what may change them, such as news of a server, and then begins dialogues. No method
//! here waits: loading a run and connecting to a server are tasks, whose results come back through `loaded` and `prepared`.
//! Where a task fails, `trip` opens the breaker of the lane, which gives the units back and asks for none for a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::exchange::{ANY_MODEL, Serves};
use domain::{Ask, Attempt, Connector, DialogueKey, ModelSpec, RecordId, RunId, machine};
use models::Progress;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;
use tracing::Instrument;

use super::{RUNS_KEPT_MAX, Running, Work};
use crate::breaker::Breaker;
use crate::connect::{Connect, ConnectError, Connected, FoundServer};
use crate::dialogue::{DialogueContext, DialogueJob, run_dialogue};
use crate::outbox::Outgoing;
use crate::rate::WithinBudget;
use crate::runs::{RunContext, RunError};
use crate::servers::ServerKey;
use crate::slots::{LaneKey, NextDialogue, Slots};
use crate::warm::{NextStart, ServerRoom, WAITING_SEEN_MAX, WaitingCase, Warmth};

/// A run, ready or in preparation.
pub(super) enum RunLoading {
    Loading {
        task: AbortHandle,
        /// The run's context before it is loaded again. Keeping it keeps the evaluation processes.
        _before: Option<Arc<RunContext>>,
    },
    Ready {
        context: Arc<RunContext>,
        /// The highest generation of a lease when the run's description was requested. Extending a run raises its
        /// generation, so a lease of a higher one may need a newer description.
        generation: u64,
        /// Time when a lease of it was last held.
        used: Instant,
    },
}

pub(super) type Loaded = (RunId, u64, Result<RunContext, RunError>);

/// One model of one run.
pub(super) struct ModelLane {
    pub(super) run: Arc<RunContext>,
    pub(super) spec: ModelSpec,
    /// The offer that its units match.
    pub(super) serves: Serves,
    /// Its current servers.
    pub(super) servers: Vec<ServerKey>,
    /// The dialogue context per server; `None` while it is being prepared.
    pub(super) contexts: BTreeMap<ServerKey, Option<Arc<DialogueContext>>>,
    pub(super) in_flight: u32,
    /// Which of its dialogues starts next, and where.
    warmth: Warmth,
}

impl ModelLane {
    /// Whether all cases that wait are known to one of its servers: the next server that is through with its cases
    /// would have to read one that another server has read.
    pub(super) fn lacks_cases(&self, key: &LaneKey, slots: &Slots) -> bool {
        let mut waiting = slots.waiting(key).take(WAITING_SEEN_MAX);
        self.servers.len() > 1
            && waiting.all(|waiting| {
                self.run.case(waiting.task, waiting.next).is_some_and(|case| !self.warmth.is_new(case))
            })
    }
}

/// The result of preparing a lane for a server.
pub(super) struct Prepared {
    lane: LaneKey,
    server: ServerKey,
    outcome: Result<Connected, ConnectError>,
    /// What is unusual about the list of models of a configured address.
    remark: Option<String>,
}

impl Work {
    /// Updates all lanes to the current runs and servers.
    pub(super) fn settle_lanes(&mut self, now: Instant) {
        let held = self.ledger.lock().slots.held_lanes();
        for key in held {
            if self.breakers.get(&key).is_some_and(|breaker| breaker.is_open(now)) {
                self.ledger.lock().slots.give_back_lane(&key);
                continue;
            }
            let generation = self.ledger.lock().slots.generation(&key).unwrap_or_default();
            let Some(run) = self.context(&key.run, generation, now) else { continue };
            if !self.lanes.contains_key(&key) {
                let Some(spec) = run.model(&key.model).cloned() else {
                    self.trip(&key, format!("run {} has no model {}", key.run, key.model), true, now);
                    continue;
                };
                let serves = self.offered_as(&spec, now);
                let (servers, contexts) = (Vec::new(), BTreeMap::new());
                let warmth = Warmth::default();
                self.lanes.insert(
                    key.clone(),
                    ModelLane { run, spec, serves, servers, contexts, in_flight: 0, warmth },
                );
            }
            self.settle_lane(&key, now);
        }
    }

    fn settle_lane(&mut self, key: &LaneKey, now: Instant) {
        let Some(spec) = self.lanes.get(key).map(|lane| lane.spec.clone()) else { return };
        let servers = self.servers_of(&spec, now);
        let serves = self.offered_as(&spec, now);
        let Some(lane) = self.lanes.get_mut(key) else { return };
        lane.serves = serves;
        if lane.servers != servers {
            lane.servers.clone_from(&servers);
            lane.warmth.keep(&servers);
            // A server that is gone, or serves another model now, will not end its dialogues: they are stopped here.
            self.stop_those(|tag, running| key.has(&tag.lease) && !servers.contains(&running.server));
        }
        if servers.is_empty() {
            let LaneKey { run, model } = key;
            tracing::warn!(%run, %model, requested = spec.requested(), "no server serves the model; units go back");
            self.ledger.lock().slots.give_back_lane(key);
        }
        for server in servers {
            let Some(lane) = self.lanes.get_mut(key) else { return };
            let ask = lane.run.ask;
            if lane.contexts.contains_key(&server) {
                continue;
            }
            lane.contexts.insert(server.clone(), None);
            self.servers.open(&server, spec.concurrency);
            let found = self.servers.found(&server);
            let connect = Arc::clone(&self.config.connect);
            self.preparing.spawn(prepare(connect, ask, key.clone(), spec.clone(), server, found));
        }
    }

    /// The servers of a model: the discovered ones that serve it, otherwise the one in its configuration.
    fn servers_of(&self, spec: &ModelSpec, now: Instant) -> Vec<ServerKey> {
        let by_name = matches!(spec.connector, Connector::OpenaiCompatible | Connector::Simulated);
        if by_name {
            let found = self.servers.of_model(spec.requested(), now);
            // A server that tells no names is not asked in place of the one that a configuration names.
            let is_named = spec.endpoint.is_none() || !self.servers.is_unlisted(spec.requested());
            if !found.is_empty() && is_named {
                return found;
            }
        }
        let offered = self.config.connectors.contains(&spec.connector);
        let reachable = spec.connector != Connector::OpenaiCompatible || spec.endpoint.is_some();
        // A coordinator grants only what this worker's reach permits. Units of other models are given back.
        let permitted = self.config.keys.as_ref().is_none_or(|keys| keys.reach().permits(spec, None).is_ok());
        if offered && reachable && permitted { vec![ServerKey::hosted(spec)] } else { Vec::new() }
    }

    fn offered_as(&self, spec: &ModelSpec, now: Instant) -> Serves {
        match self.servers_of(spec, now).first() {
            Some(ServerKey::Hosted { connector, .. }) => Serves::Connector(*connector),
            Some(ServerKey::Found { .. }) if self.servers.is_unlisted(spec.requested()) => {
                Serves::Model(ANY_MODEL.to_owned())
            }
            Some(ServerKey::Found { model, .. }) => Serves::Model(model.clone()),
            None => Serves::Model(spec.requested().to_owned()),
        }
    }

    /// The context of a run for leases of a generation; starts preparing it if there is none.
    fn context(&mut self, run: &RunId, generation: u64, now: Instant) -> Option<Arc<RunContext>> {
        let before = match self.contexts.get_mut(run) {
            Some(RunLoading::Ready { context, generation: known, used }) if *known >= generation => {
                *used = now;
                return Some(Arc::clone(context));
            }
            Some(RunLoading::Ready { context, .. }) => Some(Arc::clone(context)),
            Some(RunLoading::Loading { .. }) => return None,
            None => None,
        };
        if before.is_some() {
            // Its earlier dialogues have lost their leases.
            self.lanes.retain(|lane, _| lane.run != *run);
        }
        let (runs, id) = (Arc::clone(&self.runs), run.clone());
        let task = self.loading.spawn(async move { (id.clone(), generation, runs.load(id).await) });
        self.contexts.insert(run.clone(), RunLoading::Loading { task, _before: before });
        None
    }

    pub(super) fn loaded(&mut self, loaded: Result<Loaded, JoinError>, now: Instant) {
        self.unsettled = true;
        match loaded {
            Ok((run, generation, Ok(context))) => {
                let context = Arc::new(context);
                self.contexts.insert(run, RunLoading::Ready { context, generation, used: now });
            }
            Ok((run, _, Err(error))) => {
                self.contexts.remove(&run);
                let held = self.ledger.lock().slots.held_lanes();
                for lane in held.into_iter().filter(|lane| lane.run == run) {
                    self.trip(&lane, format!("run {run}: {error}"), !error.is_own(), now);
                }
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                // A panic does not say which run it was, so all runs that are still loading are loaded again.
                tracing::error!(%error, "making a run ready ended by a panic");
                self.contexts.retain(|_, state| matches!(state, RunLoading::Ready { .. }));
            }
        }
    }

    pub(super) fn prepared(&mut self, prepared: Result<Prepared, JoinError>, now: Instant) {
        let Prepared { lane: key, server, outcome, remark } = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return tracing::error!(%error, "connecting to a model ended by a panic"),
        };
        if let Some(remark) = &remark {
            let model = key.model.as_str();
            tracing::warn!(
                model,
                remark,
                "the first question will show whether the server answers for the model"
            );
        }
        self.servers.remarked(&server, remark);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        match outcome {
            Ok(connected) => {
                let made_at =
                    self.config.made_at.clone().map(|made_at| self.servers.made_at(&server, made_at));
                let label: Arc<str> = self.servers.label(&server).into();
                let model =
                    WithinBudget::wrap(connected.model, &lane.spec, Arc::clone(&label), &self.exchange);
                let context = DialogueContext {
                    model,
                    server: label,
                    made_at,
                    script: connected.script,
                    run: Arc::clone(&lane.run),
                    spec: lane.spec.clone(),
                    retry: self.config.retry.clone(),
                };
                if let Some(address) = self.servers.load_to_follow(&server) {
                    self.discovery.follow_load(address);
                }
                lane.contexts.insert(server, Some(Arc::new(context)));
            }
            Err(error) => {
                // It is tried again at the model's next grant.
                lane.contexts.remove(&server);
                self.trip(&key, error.to_string(), true, now);
            }
        }
    }

    /// Has all lanes connect again to a server that may have been loaded anew: later records say so.
    pub(super) fn connect_again(&mut self, address: &str) {
        if self.config.made_at.is_none() {
            return;
        }
        let is_there =
            |server: &ServerKey| matches!(server, ServerKey::Found { endpoint, .. } if endpoint == address);
        for lane in self.lanes.values_mut() {
            // What is being prepared will know.
            lane.contexts.retain(|server, context| context.is_none() || !is_there(server));
        }
    }

    /// Starts as many dialogues as there is room for, one of each lane in turn.
    pub(super) fn begin_dialogues(&mut self, now: Instant) {
        if !self.outbox.has_room() {
            return;
        }
        let mut waiting = self.ledger.lock().slots.waiting_lanes();
        if let Some(last) = &self.last_begun {
            let behind = waiting.partition_point(|lane| lane <= last);
            waiting.rotate_left(behind);
        }
        while !waiting.is_empty() {
            waiting.retain(|lane| self.begin_dialogue(lane, now));
        }
    }

    /// Starts a dialogue of a lane; false if none can start.
    fn begin_dialogue(&mut self, key: &LaneKey, now: Instant) -> bool {
        if self.breakers.get(key).is_some_and(Breaker::is_in_doubt) {
            return false;
        }
        let Some(lane) = self.lanes.get_mut(key) else { return false };
        if lane
            .spec
            .concurrency
            .is_some_and(|most| self.config.concurrency.is_none() && lane.in_flight >= most)
        {
            return false;
        }
        let servers = &self.servers;
        let ready = lane.servers.iter().filter_map(|server| {
            let context = lane.contexts.get(server)?.as_ref()?;
            let free = servers.free(server);
            (free > 0).then_some((ServerRoom { server, free }, context))
        });
        let (rooms, contexts): (Vec<ServerRoom<'_>>, Vec<&Arc<DialogueContext>>) = ready.unzip();
        if rooms.is_empty() {
            return false;
        }
        let (next, at) = {
            let mut ledger = self.ledger.lock();
            let waiting = ledger.slots.waiting(key).map(|waiting| {
                let case = lane.run.case(waiting.task, waiting.next);
                WaitingCase { case, left: waiting.left }
            });
            let Some(NextStart { waiting, server }) = lane.warmth.choose(waiting, &rooms, now) else {
                return false;
            };
            (ledger.slots.begin(key, waiting), server)
        };
        let Some(NextDialogue { tag, task, retry }) = next else { return false };
        let Some(index) = lane.run.task(&task) else {
            self.ledger.lock().slots.dropped(&tag);
            self.trip(key, format!("run {} has no task {task}", key.run), true, now);
            return false;
        };
        let (server, context) = (rooms[at].server.clone(), Arc::clone(contexts[at]));
        lane.in_flight += 1;
        self.servers.begin(&server);
        let lease = &tag.lease;
        let job = DialogueJob {
            key: DialogueKey { model: key.model.clone(), task, iteration: tag.iteration },
            task: index,
            attempt: Attempt {
                id: RecordId::random(),
                generation: lease.generation,
                number: lease.attempt,
                worker: self.config.worker.clone(),
            },
            retry,
            progress: Progress::default(),
        };
        let progress = job.progress.clone();
        if let Some(case) = lane.run.case(&job.key.task, tag.iteration) {
            lane.warmth.sent(&server, case, &progress, now);
        }
        let (dialogue, spooled) = (tag.clone(), !lane.run.material.protected);
        // What is logged meanwhile carries these ids.
        let ids = tracing::info_span!("dialogue", run = %key.run, unit = lease.unit, dialogue = %job.key);
        let (unrecorded, of_lane) = (self.unrecorded.clone(), key.clone());
        let holding = async move {
            let mut record = run_dialogue(&context, job).await;
            record.failed_calls.extend(unrecorded.take(&of_lane, machine::now()));
            let outgoing = Outgoing::of(dialogue, record, spooled);
            tracing::debug!("the dialogue ended");
            outgoing
        }
        .instrument(ids);
        let task = self.dialogues.spawn(holding);
        self.tags.insert(task.id(), tag.clone());
        self.running.insert(tag, Running { server, task, began: now, progress });
        self.last_begun = Some(key.clone());
        true
    }

    /// Records that a dialogue of a lane ended.
    pub(super) fn leave_lane(&mut self, key: &LaneKey) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
        }
    }

    /// Removes runs without leases, those used longest ago first, while more than `RUNS_KEPT_MAX` runs are known, and stops
    /// loading runs without leases. A run that is kept need not be loaded again when its next lease comes.
    pub(super) fn evict_runs(&mut self) {
        let held = self.ledger.lock().slots.held_lanes();
        let is_held = |run: &RunId| held.iter().any(|lane| lane.run == *run);
        let mut idle = Vec::new();
        self.contexts.retain(|run, state| match state {
            RunLoading::Loading { task, .. } if !is_held(run) => {
                task.abort();
                false
            }
            RunLoading::Ready { used, .. } if !is_held(run) => {
                idle.push((*used, run.clone()));
                true
            }
            _ => true,
        });
        let surplus = self.contexts.len().saturating_sub(RUNS_KEPT_MAX);
        idle.sort();
        for (_, run) in idle.into_iter().take(surplus) {
            self.contexts.remove(&run);
            self.lanes.retain(|lane, _| lane.run != run);
            self.unjudged.forget(&run);
            self.unrecorded.forget(&run);
        }
    }
}

/// Connects, off the async threads, and reads the list of models of a server named in a configuration.
async fn prepare(
    connect: Arc<dyn Connect>,
    ask: Ask,
    lane: LaneKey,
    spec: ModelSpec,
    server: ServerKey,
    found: Option<FoundServer>,
) -> Prepared {
    let of = spec.clone();
    let is_found = found.is_some();
    let connected = service_kit::aside::run(move || connect.connect(ask, &of, found.as_ref())).await;
    let outcome = connected
        .unwrap_or_else(|error| Err(ConnectError::new(&spec, format!("connecting failed: {error}"))));
    let mut remark = None;
    // Discovery reads the list of a discovered server. One that nobody listens at may be starting: its calls are repeated.
    if let Ok(connected) = &outcome
        && !is_found
        && let Ok(listed) = connected.listed(&spec).await
    {
        remark = listed.remark(spec.requested());
    }
    Prepared { lane, server, outcome, remark }
}
