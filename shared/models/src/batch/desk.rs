//! Carries out what the state of the batches of one model of one run says, one step after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::ids::BatchName;
use domain::{RetryAdvice, machine};
use tokio::sync::{Mutex as TurnMutex, Notify, OnceCell, oneshot};
use tokio::time::Instant;

use super::api::{
    self, BatchApi, BatchEnding, BatchRemains, BatchSight, BatchedReply, BatchedRequest, EndedBatch,
    NotCreated,
};
use super::ledger::{BatchLedger, BatchNote, BatchScope};
use super::state::{BatchRules, DeskState, DeskStep};
use crate::error::CallError;

/// Pause of a desk that has nothing to do. It is woken when there is something.
const IDLE: Duration = Duration::from_secs(24 * 3600);

/// The batches of one model of one run. They go on as long as somebody holds it; once the run is over, it holds itself
/// until they are cleared away.
#[derive(Debug)]
pub(super) struct BatchDesk {
    /// How the provider is asked. A model that is connected anew may have another key.
    api: Mutex<Arc<dyn BatchApi>>,
    ledger: BatchLedger,
    scope: BatchScope,
    state: Mutex<DeskState>,
    /// Set once the batches of earlier processes are known, and somebody carries out the steps.
    begun: OnceCell<()>,
    /// Held by whoever carries out a step.
    turn: TurnMutex<()>,
    wake: Arc<Notify>,
}

impl Drop for BatchDesk {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl BatchDesk {
    pub(super) fn new(
        api: Arc<dyn BatchApi>,
        ledger: BatchLedger,
        scope: BatchScope,
        rules: BatchRules,
    ) -> Self {
        let state = DeskState::new(scope.clone(), rules, api.bounds());
        Self {
            api: Mutex::new(api),
            ledger,
            scope,
            state: Mutex::new(state),
            begun: OnceCell::new(),
            turn: TurnMutex::new(()),
            wake: Arc::new(Notify::new()),
        }
    }

    /// Asks the provider in this way from now on.
    pub(super) fn ask_by(&self, api: Arc<dyn BatchApi>) {
        *self.api.lock().unwrap_or_else(PoisonError::into_inner) = api;
    }

    pub(super) fn api(&self) -> Arc<dyn BatchApi> {
        Arc::clone(&self.api.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a question; where its answer will be told.
    pub(super) async fn ask(self: &Arc<Self>, request: BatchedRequest) -> oneshot::Receiver<BatchedReply> {
        self.begun.get_or_init(|| self.begin()).await;
        let told = self.state().ask(request, Instant::now());
        self.wake.notify_one();
        told
    }

    async fn begin(self: &Arc<Self>) {
        let notes = self.ledger.read(&self.scope).await;
        let now = Instant::now();
        {
            let mut state = self.state();
            notes.into_iter().for_each(|note| state.know(note, now));
        }
        tokio::spawn(carry_out(Arc::downgrade(self), Arc::clone(&self.wake)));
    }

    /// The run is over: its batches are cancelled, and what they leave at the provider is deleted.
    pub(super) fn over(self: &Arc<Self>) {
        let is_first = self.state().over(Instant::now());
        self.wake.notify_one();
        if is_first {
            tokio::spawn(clear_away(Arc::clone(self)));
        }
    }

    /// Waits until a batch that is being created has its id, and does what is due about those that are over. Returns
    /// when more of that will be.
    pub(super) async fn settle(&self) -> Option<Instant> {
        let _turn = self.turn.lock().await;
        loop {
            let step = self.state().needless(Instant::now());
            let Some(step) = step else { return self.state().needless_at() };
            self.take(step).await;
        }
    }

    /// Does what is due; when there will be more.
    async fn advance(&self) -> Instant {
        let _turn = self.turn.lock().await;
        loop {
            let step = self.state().next(Instant::now(), machine::now());
            match step {
                DeskStep::Wait(until) => return until.unwrap_or_else(|| Instant::now() + IDLE),
                step => self.take(step).await,
            }
        }
    }

    async fn take(&self, step: DeskStep) {
        match step {
            DeskStep::Create(note, requests) => self.create(note, &requests).await,
            DeskStep::Find(name) => self.find(&name).await,
            DeskStep::Look { name, id } => self.look(&name, &id).await,
            DeskStep::Cancel { name, id } => self.cancel(&name, &id).await,
            DeskStep::Discard { name, id } => self.discard(&name, &id).await,
            DeskStep::Forget(name) => self.forget(&name).await,
            DeskStep::GiveUp(name) => self.give_up(&name),
            DeskStep::Wait(_) => {}
        }
    }

    async fn create(&self, note: BatchNote, requests: &[BatchedRequest]) {
        let BatchNote { name, .. } = &note;
        self.ledger.write(&note).await;
        let created = self.api().create(name, requests).await;
        match created {
            Ok(id) => {
                tracing::info!(batch = %name, id = %id, questions = requests.len(), "asked in a batch");
                let known = self.state().created(name, id, Instant::now());
                self.remember(known).await;
            }
            Err(not_created) => {
                let NotCreated { error, may_exist } = &not_created;
                tracing::warn!(batch = %name, %error, may_exist, "a batch was not created");
                if !may_exist {
                    self.ledger.remove(name).await;
                }
                self.state().not_created(name, &not_created, Instant::now());
            }
        }
    }

    async fn find(&self, name: &BatchName) {
        let found = match self.api().find(name).await {
            Ok(found) => found,
            Err(error) if error.retry == RetryAdvice::No => None,
            Err(error) => return tracing::warn!(batch = %name, %error, "a batch cannot be looked for"),
        };
        if found.is_none() {
            tracing::warn!(batch = %name, "a batch that was cut off is not found; its questions are asked again");
            self.ledger.remove(name).await;
        }
        let known = self.state().found(name, found, Instant::now());
        self.remember(known).await;
    }

    async fn look(&self, name: &BatchName, id: &str) {
        let api = self.api();
        match api.look(id).await {
            Ok(BatchSight::UnderWay) => {}
            Ok(BatchSight::Ended(ended)) => {
                if let Err(error) = self.read(&*api, name, ended).await {
                    self.unseen(name, &error).await;
                }
            }
            Err(error) => self.unseen(name, &error).await,
        }
    }

    /// Tells the answers of a batch to those who wait.
    async fn read(&self, api: &dyn BatchApi, name: &BatchName, ended: EndedBatch) -> Result<(), CallError> {
        let EndedBatch { results, otherwise } = ended;
        let wanted = self.state().wanted(name);
        let mut replies = HashMap::new();
        for place in &results {
            replies.extend(api.read(place, &wanted).await?);
        }
        tracing::info!(batch = %name, wanted = wanted.len(), found = replies.len(), "a batch has ended");
        let mut state = self.state();
        state.answered(name, replies);
        state.ended(name, wanted, &otherwise, Instant::now());
        Ok(())
    }

    /// A batch could not be looked at or read. It is tried again, unless that cannot help.
    async fn unseen(&self, name: &BatchName, error: &CallError) {
        tracing::warn!(batch = %name, %error, "a batch cannot be looked at");
        if error.status == Some(404) {
            self.ledger.remove(name).await;
            self.state().unknown(name, Instant::now());
        } else if error.retry == RetryAdvice::No {
            self.state().refused(name, error);
        }
    }

    async fn cancel(&self, name: &BatchName, id: &str) {
        let has_ended = match api::end(&*self.api(), id).await {
            Ok(BatchEnding::Cancelled) => {
                tracing::info!(batch = %name, id, "cancelled a batch: its run is over");
                false
            }
            Ok(BatchEnding::Refused(_)) => true,
            Ok(BatchEnding::Gone) => return self.forget(name).await,
            Err(error) => return tracing::warn!(batch = %name, id, %error, "a batch cannot be cancelled"),
        };
        self.state().ending(name, has_ended, Instant::now());
    }

    async fn discard(&self, name: &BatchName, id: &str) {
        match self.api().discard(id).await {
            Ok(BatchRemains::UnderWay) => {}
            Ok(BatchRemains::Deleted) => {
                tracing::info!(batch = %name, id, "deleted what a batch has left: its run is over");
                self.forget(name).await;
            }
            Err(error) if error.status == Some(404) => self.forget(name).await,
            Err(error) => {
                tracing::warn!(batch = %name, id, %error, "what a batch has left is not deleted");
                if error.retry == RetryAdvice::No {
                    self.give_up(name);
                }
            }
        }
    }

    /// Does nothing more about a batch. Its document stays for whoever removes the run.
    fn give_up(&self, name: &BatchName) {
        tracing::warn!(batch = %name, "a batch, or what it has left, stays at its provider");
        self.state().forget(name);
    }

    async fn forget(&self, name: &BatchName) {
        self.ledger.remove(name).await;
        self.state().forget(name);
    }

    async fn remember(&self, note: Option<BatchNote>) {
        if let Some(note) = note {
            self.ledger.write(&note).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out the steps about what is over, until nothing of it is left.
async fn clear_away(desk: Arc<BatchDesk>) {
    if !desk.begun.initialized() {
        // Nothing was asked here, but maybe by an earlier process.
        desk.begun.get_or_init(|| desk.begin()).await;
        desk.state().over(Instant::now());
    }
    while let Some(due) = desk.settle().await {
        tokio::time::sleep_until(due).await;
    }
}

/// Carries out steps until nobody holds the desk.
async fn carry_out(desk: Weak<BatchDesk>, wake: Arc<Notify>) {
    loop {
        let until = match desk.upgrade() {
            Some(desk) => desk.advance().await,
            None => return,
        };
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }
}
