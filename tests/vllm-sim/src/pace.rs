//! The engine in real time: a task per engine that sleeps until its next event and wakes the requests concerned.
//! Time is tokio's, so a paused runtime turns it into virtual time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::latency::{CustomProfile, Engine, EngineEvent, EngineFinished, EngineJob, EngineLoad, JobId};
use crate::metrics::{EndReason, SimModelMetrics};

/// A running engine.
pub(crate) struct Pacer {
    shared: Arc<Shared>,
    caches_prefixes: bool,
}

struct Shared {
    epoch: Instant,
    state: Mutex<State>,
    /// Notified when a request is submitted or cancelled, which may bring the next event forward.
    changed: Notify,
    /// Notified when a request is submitted.
    asked: Notify,
    metrics: Arc<SimModelMetrics>,
}

struct State {
    engine: Engine,
    /// The requests under way, each with its end once it is there, and notified of its first token and its end.
    waiters: HashMap<JobId, (Arc<Notify>, Option<EngineFinished>)>,
}

/// Shortest sleep of a stream between two looks at the engine: tokio's timer has this resolution, and shorter ones would spin.
const STREAM_TICK: Duration = Duration::from_millis(1);

impl Pacer {
    /// Starts the engine's task, which ends when `stop` is cancelled. The engine decodes other numbers of requests at once
    /// so long after its first request each.
    pub(crate) fn start(
        settings: CustomProfile,
        changes: Vec<(Duration, u32)>,
        metrics: Arc<SimModelMetrics>,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let state = State { engine: Engine::new(settings), waiters: HashMap::new() };
        let shared = Arc::new(Shared {
            epoch: Instant::now(),
            state: Mutex::new(state),
            changed: Notify::new(),
            asked: Notify::new(),
            metrics,
        });
        if !changes.is_empty() {
            let (changing, stop) = (shared.clone(), stop.clone());
            tasks.spawn(async move { stop.run_until_cancelled(changing.resize(changes)).await });
        }
        let driver = shared.clone();
        tasks.spawn(async move { stop.run_until_cancelled(driver.drive()).await });
        Self { shared, caches_prefixes: settings.caches_prefixes() }
    }

    /// See [`CustomProfile::caches_prefixes`].
    pub(crate) fn caches_prefixes(&self) -> bool {
        self.caches_prefixes
    }

    /// Hands a request to the engine.
    pub(crate) fn submit(&self, job: EngineJob) -> Ticket {
        let shared = &self.shared;
        let woken = Arc::<Notify>::default();
        let mut state = shared.state();
        let now = shared.epoch.elapsed();
        // Events that were due before must find the waiters as they were before.
        state.advance(now);
        let id = state.engine.submit(now, job);
        state.waiters.insert(id, (woken.clone(), None));
        drop(state);
        shared.changed.notify_one();
        shared.asked.notify_one();
        Ticket { id, shared: shared.clone(), woken }
    }

    /// The engine's gauges as of now.
    pub(crate) fn load(&self) -> EngineLoad {
        let mut state = self.shared.state();
        state.advance(self.shared.epoch.elapsed());
        state.engine.load()
    }

    /// Tokens generated as of now.
    pub(crate) fn generated(&self) -> u64 {
        let mut state = self.shared.state();
        state.advance(self.shared.epoch.elapsed());
        state.engine.generated()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the engine in a state it can go on from, and tests want to see the first panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn resize(&self, changes: Vec<(Duration, u32)>) {
        self.asked.notified().await;
        let began = Instant::now();
        for (at, max_num_seqs) in changes {
            tokio::time::sleep_until(began + at).await;
            {
                let (mut state, now) = (self.state(), self.epoch.elapsed());
                // Events that were due before must find the engine as it was before.
                state.advance(now);
                state.engine.resize(now, max_num_seqs);
            }
            self.changed.notify_one();
        }
    }

    async fn drive(&self) {
        loop {
            let next = {
                let mut state = self.state();
                state.advance(self.epoch.elapsed());
                state.engine.next_event()
            };
            match next {
                Some(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.epoch + at) => {}
                        () = self.changed.notified() => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }
}

impl State {
    fn advance(&mut self, now: Duration) {
        self.engine.advance(now);
        for event in self.engine.take_events() {
            let (EngineEvent::FirstToken(id) | EngineEvent::Finished(id, _)) = event;
            let Some((woken, end)) = self.waiters.get_mut(&id) else { continue };
            if let EngineEvent::Finished(_, finished) = event {
                *end = Some(finished);
            }
            woken.notify_one();
        }
    }
}

/// A request in the engine. Dropping it before the end cancels the request, as vLLM does when its client goes away.
pub(crate) struct Ticket {
    id: JobId,
    shared: Arc<Shared>,
    woken: Arc<Notify>,
}

impl Ticket {
    /// Waits for the last token.
    pub(crate) async fn finished(&self) -> EngineFinished {
        loop {
            if let Some((_, Some(finished))) = self.shared.state().waiters.get(&self.id) {
                return *finished;
            }
            self.woken.notified().await;
        }
    }

    /// Waits until the request has made more than `known` tokens and returns how many there are, or `u32::MAX` when
    /// it has ended.
    pub(crate) async fn tokens_beyond(&self, known: u32) -> u32 {
        loop {
            let progress = {
                let mut state = self.shared.state();
                let now = self.shared.epoch.elapsed();
                state.advance(now);
                if state.waiters.get(&self.id).is_some_and(|(_, end)| end.is_some()) {
                    return u32::MAX;
                }
                state.engine.progress(self.id).map(|(tokens, next)| (tokens, next.max(now + STREAM_TICK)))
            };
            match progress {
                Some((tokens, _)) if tokens > known => return tokens,
                Some((tokens, next)) if tokens > 0 => {
                    tokio::select! {
                        () = tokio::time::sleep_until(self.shared.epoch + next) => {}
                        () = self.woken.notified() => {}
                    }
                }
                // Waiting or in prefill.
                _ => self.woken.notified().await,
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some((_, None)) = state.waiters.remove(&self.id) {
            let now = self.shared.epoch.elapsed();
            state.engine.cancel(now, self.id);
            drop(state);
            self.shared.metrics.ended(EndReason::Abort);
            self.shared.changed.notify_one();
        }
    }
}
