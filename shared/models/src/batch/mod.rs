//! Asks models in batches: many questions at once, answered within a day at half the price. Untried at the providers:
//! written from their public documentation, and tested against a stand-in (`tests/batches.rs`).
//!
//! Reading order: `api` says what a provider can be asked, `state` decides what is done when, `desk` does it, `ledger`
//! remembers batches for the next process, `abandon` ends those that no process works at. What providers send is in
//! `openai/batch.rs` and `anthropic/batch.rs`.

mod abandon;
pub(crate) mod api;
mod desk;
mod ledger;
mod state;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::RunId;
use futures::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::hosted::HostedConfig;
use crate::openai::OpenAiConfig;
use crate::{anthropic, openai};
pub use abandon::{AbandonedBatch, BatchFate};
pub use api::BATCH_WINDOW;
use api::{BatchApi, BatchedRequest};
use desk::BatchDesk;
use ledger::{BatchLedger, BatchNote, BatchScope};
pub use state::BatchRules;

/// How long the end of a process waits for batches that are being created or cancelled.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// Batches that are abandoned at the same time, at most.
const ABANDONED_AT_ONCE_MAX: usize = 8;

/// Version of the ids of questions. It is part of them, so that those of different versions never agree.
const ID_RULE: &str = "kgfleet batched question 1";

/// Bytes of the hash that are an id. Providers take 64 characters, which are two for each byte.
const ID_BYTES: usize = 20;

/// The batches of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    ledger: BatchLedger,
    rules: BatchRules,
    desks: Arc<Mutex<HashMap<BatchScope, Weak<BatchDesk>>>>,
}

impl Batches {
    /// They are remembered in this folder, for the next process.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { ledger: BatchLedger::in_folder(folder), ..Self::default() }
    }

    /// The same by other rules.
    pub fn by(self, rules: BatchRules) -> Self {
        Self { rules, ..self }
    }

    /// A model of OpenAI. Shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn openai(&self, config: OpenAiConfig, http: &HttpClient) -> Result<Batched, SetupError> {
        let api = Arc::new(openai::OpenAiBatches::new(config, http)?);
        Ok(Batched { batches: self.clone(), api })
    }

    /// A model of Anthropic. Shares the connections of `http`.
    ///
    /// # Errors
    /// As [`Batches::openai`].
    pub fn anthropic(&self, config: HostedConfig, http: &HttpClient) -> Result<Batched, SetupError> {
        let api = Arc::new(anthropic::AnthropicBatches::new(config, http)?);
        Ok(Batched { batches: self.clone(), api })
    }

    /// A run is cancelled, finished or removed: what was asked for it is cancelled, and what that leaves at its provider
    /// is deleted, as long as this process lives.
    pub fn over(&self, run: &RunId) {
        let of_run = self.desks().into_iter().filter(|(scope, _)| scope.run == *run);
        of_run.for_each(|(_, desk)| desk.over());
    }

    /// The runs whose batches are remembered.
    pub async fn noted(&self) -> BTreeSet<RunId> {
        self.ledger.read_all().await.into_iter().map(|note| note.scope.run).collect()
    }

    /// A run that no process works at is over or removed: its batches are cancelled, and what they leave is deleted, as
    /// these models ask. Those that are over are forgotten; all others stay remembered.
    pub async fn abandon(&self, run: &RunId, models: &[Batched]) -> Vec<AbandonedBatch> {
        let notes = self.ledger.read_all().await.into_iter().filter(|note| note.scope.run == *run);
        let calls: Vec<_> = notes.map(|note| self.abandon_one(note, models)).collect();
        stream::iter(calls).buffered(ABANDONED_AT_ONCE_MAX).collect().await
    }

    async fn abandon_one(&self, mut note: BatchNote, models: &[Batched]) -> AbandonedBatch {
        let of_scope = |model: &&Batched| scope_of(&note.scope.run, &*model.api) == note.scope;
        let apis: Vec<_> = models.iter().filter(of_scope).map(|model| Arc::clone(&model.api)).collect();
        let fate = abandon::abandon(&mut note, &apis, self.rules.ending_max).await;
        if fate.is_over() {
            self.ledger.remove(&note.name).await;
        }
        let BatchScope { connector, endpoint, model, .. } = note.scope;
        AbandonedBatch { id: note.id, connector, endpoint, model, fate }
    }

    /// Waits a little for batches that are being created or cancelled. All others go on at their providers, where the
    /// next process finds them.
    pub async fn close(&self) {
        let settle = async {
            for (_, desk) in self.desks() {
                desk.settle().await;
            }
        };
        if tokio::time::timeout(CLOSE_TIME_MAX, settle).await.is_err() {
            tracing::warn!("the end does not wait for batches that are being created or cancelled");
        }
    }

    /// The desk for a model of a run.
    fn desk(&self, run: &RunId, api: &Arc<dyn BatchApi>) -> Arc<BatchDesk> {
        let scope = scope_of(run, &**api);
        let mut desks = self.lock();
        if let Some(desk) = desks.get(&scope).and_then(Weak::upgrade) {
            desk.ask_by(Arc::clone(api));
            return desk;
        }
        desks.retain(|_, desk| desk.strong_count() > 0);
        let desk = BatchDesk::new(Arc::clone(api), self.ledger.clone(), scope.clone(), self.rules);
        let desk = Arc::new(desk);
        desks.insert(scope, Arc::downgrade(&desk));
        desk
    }

    fn desks(&self) -> Vec<(BatchScope, Arc<BatchDesk>)> {
        let desks = self.lock();
        desks.iter().filter_map(|(scope, desk)| Some((scope.clone(), desk.upgrade()?))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BatchScope, Weak<BatchDesk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model that is asked in batches.
#[derive(Clone, Debug)]
pub struct Batched {
    batches: Batches,
    api: Arc<dyn BatchApi>,
}

impl Batched {
    /// The model for the dialogues of a run. They share its batches; those of another run, even of the same
    /// configuration, get answers of their own.
    pub fn of_run(&self, run: &RunId) -> BatchedRun {
        let desk = self.batches.desk(run, &self.api);
        BatchedRun { run: run.clone(), identity: self.api.identity().clone(), desk }
    }
}

/// A model that is asked in batches for one run.
#[derive(Debug)]
pub struct BatchedRun {
    run: RunId,
    identity: ModelIdentity,
    desk: Arc<BatchDesk>,
}

#[async_trait::async_trait]
impl ChatModel for BatchedRun {
    /// Waits for the batch that the question is in. Dropping the future cancels nothing: whoever asks the same again,
    /// also in a later process, waits for the same batch.
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let body = self.desk.api().body(&request)?;
        let id = question_id(&self.run, &request, &body);
        let clock = CallClock::whole(Instant::now(), request.deadline);
        let answered = async {
            let told = self.desk.ask(BatchedRequest { id, body: body.into() }).await;
            told.await
        };
        // Nobody tells it any more once its run is over.
        clock.wait(answered).await?.unwrap_or_else(|_| Err(api::cancelled()))
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

/// For what the batches of a model of a run are asked, and where.
fn scope_of(run: &RunId, api: &dyn BatchApi) -> BatchScope {
    let identity = api.identity();
    BatchScope {
        run: run.clone(),
        connector: identity.connector.to_owned(),
        endpoint: identity.endpoint.clone(),
        model: identity.requested.clone(),
    }
}

/// The id of a question: a hash of what is asked, in which dialogue and round of which run.
fn question_id(run: &RunId, request: &ChatRequest, body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        // Length first, so that ("ab", "c") and ("a", "bc") differ.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    let key = &request.key;
    for text in [ID_RULE, run.as_str(), key.model.as_str(), key.task.as_str()] {
        add(text.as_bytes());
    }
    add(&key.iteration.to_le_bytes());
    add(&request.round.to_le_bytes());
    add(body);
    hasher.finalize().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::tests::request;

    #[test]
    fn a_question_has_an_id_of_its_own_in_each_round_and_run() {
        let run = RunId::new("run");
        let asked = request("?");
        let id = question_id(&run, &asked, b"{}");
        assert_eq!(id, question_id(&run, &asked, b"{}"));
        assert_eq!(id.len(), 40);
        let other = ChatRequest { round: 1, ..asked.clone() };
        for differs in [
            question_id(&run, &other, b"{}"),
            question_id(&RunId::new("other"), &asked, b"{}"),
            question_id(&run, &asked, b"{} "),
        ] {
            assert_ne!(id, differs);
        }
    }
}
