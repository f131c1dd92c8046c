//! Cancels a batch that nobody needs any more and that no process works at, and deletes what it has left.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::api::{self, BatchApi, BatchEnding, BatchRemains};
use super::ledger::BatchNote;
use crate::deadline::CallClock;
use crate::error::CallError;

/// How long each call may take: a person waits for it.
const CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause between two looks whether a batch that was cancelled has ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A batch of a run that nobody needs any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedBatch {
    /// The provider's id; `None` if its creation was cut off and it was not found.
    pub id: Option<String>,
    /// How its provider was asked, as configurations say it.
    pub connector: String,
    /// The address of the provider.
    pub endpoint: Option<String>,
    /// The name of the model there.
    pub model: String,
    /// What became of it.
    pub fate: BatchFate,
}

/// What became of a batch that was abandoned. Reasons are for people: one line each, without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchFate {
    /// Its provider does not have it.
    Gone,
    /// It was cancelled or had ended, and what it left is deleted.
    Cleared,
    /// It was cancelled, and what it leaves is not deleted, for this reason.
    Left(String),
    /// None of the models is asked where it is.
    NoModel,
    /// It may go on, for this reason.
    GoesOn(String),
}

impl BatchFate {
    /// Whether it surely costs nothing more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Gone | Self::Cleared | Self::Left(_))
    }
}

/// Abandons a batch. Models of one name may have keys of several accounts, of which one has it: they are asked in turn. What
/// it leaves can be deleted once it has ended, for which is waited so long.
pub(super) async fn abandon(
    note: &mut BatchNote,
    apis: &[Arc<dyn BatchApi>],
    ending_max: Duration,
) -> BatchFate {
    let mut so_far = BatchFate::NoModel;
    for api in apis {
        match end(&**api, note, ending_max).await {
            Ok(BatchFate::Gone) if so_far == BatchFate::NoModel => so_far = BatchFate::Gone,
            Ok(BatchFate::Gone) => {}
            Ok(fate) => return fate,
            Err(error) => so_far = BatchFate::GoesOn(error.to_string()),
        }
    }
    so_far
}

/// Ends a batch where it may be.
///
/// # Errors
/// It may go on.
async fn end(api: &dyn BatchApi, note: &mut BatchNote, ending_max: Duration) -> Result<BatchFate, CallError> {
    let id = match &note.id {
        Some(id) => id.clone(),
        None => match within(api.find(&note.name)).await? {
            Some(id) => id,
            None => return Ok(BatchFate::Gone),
        },
    };
    note.id = Some(id.clone());
    let refusal = match within(api::end(api, &id)).await? {
        BatchEnding::Cancelled => None,
        BatchEnding::Refused(error) => Some(error),
        BatchEnding::Gone => return Ok(BatchFate::Gone),
    };
    let until = Instant::now() + ending_max;
    loop {
        let left = match within(api.discard(&id)).await {
            Ok(BatchRemains::Deleted) => return Ok(BatchFate::Cleared),
            Err(error) if error.status == Some(404) => return Ok(BatchFate::Cleared),
            Ok(BatchRemains::UnderWay) => "it has not ended yet".to_owned(),
            Err(error) => error.to_string(),
        };
        let next = Instant::now() + LOOK_EVERY;
        if next > until {
            return refusal.map_or(Ok(BatchFate::Left(left)), Err);
        }
        tokio::time::sleep_until(next).await;
    }
}

async fn within<T>(call: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    CallClock::whole(Instant::now(), CALL_TIME_MAX).wait(call).await?
}
