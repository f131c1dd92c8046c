//! What a provider of batches can be asked. Each has its own file beside its other calls.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::BatchName;
use domain::{FailureCause, RetryAdvice};

use crate::chat::{ChatReply, ChatRequest, ModelIdentity};
use crate::error::CallError;
use crate::http::unusable;

/// How long both providers take for a batch at most. What is not answered by then has expired.
pub const BATCH_WINDOW: Duration = Duration::from_secs(24 * 3600);

/// How long the upload of a batch may take: hundreds of megabytes over a slow line.
pub(crate) const UPLOAD_TIME_MAX: Duration = Duration::from_secs(1800);

/// The same for the answers of a batch.
pub(crate) const RESULTS_TIME_MAX: Duration = Duration::from_secs(1800);

/// How long a question about a batch may take, or a deletion.
pub(crate) const LOOK_TIME_MAX: Duration = Duration::from_secs(60);

/// Longest id of a provider.
const ID_CHARS_MAX: usize = 200;

/// What may be in one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchBounds {
    pub requests_max: usize,
    /// Of everything that is uploaded.
    pub bytes_max: usize,
    /// What stands around the id and the body of a request there, at most.
    pub frame_bytes: usize,
}

/// A question in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchedRequest {
    /// By which its answer is found.
    pub id: String,
    /// What would be posted to ask it alone.
    pub body: Arc<[u8]>,
}

/// What came of a question.
pub(crate) type BatchedReply = Result<ChatReply, CallError>;

/// Why there is no new batch.
#[derive(Clone, Debug)]
pub(crate) struct NotCreated {
    pub error: CallError,
    /// Whether the provider may have it all the same.
    pub may_exist: bool,
}

impl NotCreated {
    /// By what the provider said: only what it refused, or what never reached it, is certain.
    pub(crate) fn of(error: CallError) -> Self {
        let is_refused = error.status.is_some_and(|status| (400..500).contains(&status) && status != 408);
        let may_exist = !is_refused && error.retry != RetryAdvice::Unreachable;
        Self { error, may_exist }
    }

    /// It failed before the provider was asked for it.
    pub(crate) fn surely(error: CallError) -> Self {
        Self { error, may_exist: false }
    }
}

/// How far a batch is.
#[derive(Clone, Debug)]
pub(crate) enum BatchSight {
    UnderWay,
    Ended(EndedBatch),
}

/// A batch that has ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedBatch {
    /// Where its answers can be read, by ids of the provider.
    pub results: Vec<String>,
    /// What came of questions that are in none of them.
    pub otherwise: CallError,
}

/// Whether what a batch has left at its provider is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchRemains {
    /// Nothing is: the batch has not ended.
    UnderWay,
    Deleted,
}

/// A provider's batches for one model.
#[async_trait::async_trait]
pub(crate) trait BatchApi: fmt::Debug + Send + Sync {
    fn identity(&self) -> &ModelIdentity;

    fn bounds(&self) -> BatchBounds;

    /// The body of a question.
    ///
    /// # Errors
    /// The provider cannot be asked this.
    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, CallError>;

    /// Creates a batch; the provider's id of it.
    async fn create(&self, name: &BatchName, requests: &[BatchedRequest]) -> Result<String, NotCreated>;

    /// Looks for a batch whose creation was cut off.
    ///
    /// # Errors
    /// The provider cannot be asked, or keeps no names, which no later call changes.
    async fn find(&self, name: &BatchName) -> Result<Option<String>, CallError>;

    async fn look(&self, id: &str) -> Result<BatchSight, CallError>;

    /// Reads the answers to these questions, as far as they are at this place.
    async fn read(
        &self,
        place: &str,
        wanted: &HashSet<String>,
    ) -> Result<HashMap<String, BatchedReply>, CallError>;

    async fn cancel(&self, id: &str) -> Result<(), CallError>;

    /// Deletes what a batch that has ended has left: the files of its questions and answers, or the batch itself.
    async fn discard(&self, id: &str) -> Result<BatchRemains, CallError>;
}

/// What a batch does once it is asked to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BatchEnding {
    Cancelled,
    /// It says so: it has ended, if it is seen so.
    Refused(CallError),
    /// Its provider does not have it.
    Gone,
}

/// Cancels a batch that may have ended or be gone.
///
/// # Errors
/// It may go on.
pub(super) async fn end(api: &dyn BatchApi, id: &str) -> Result<BatchEnding, CallError> {
    match api.cancel(id).await {
        Ok(()) => Ok(BatchEnding::Cancelled),
        Err(error) => match error.status {
            Some(404) => Ok(BatchEnding::Gone),
            Some(400 | 409) => Ok(BatchEnding::Refused(error)),
            _ => Err(error),
        },
    }
}

/// An id that may stand in an address: of letters, digits, `-` and `_`.
///
/// # Errors
/// It is another text.
pub(crate) fn plain_id(id: &str) -> Result<&str, CallError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(plain) {
        return Err(unusable(&format!("`{}` is no id of a batch", id.chars().take(40).collect::<String>())));
    }
    Ok(id)
}

/// The error for a question that its batch did not come to in time.
pub(crate) fn expired() -> CallError {
    let hours = BATCH_WINDOW.as_secs() / 3600;
    let message = format!("the batch did not come to this question within {hours} h");
    CallError::new(FailureCause::Timeout, RetryAdvice::Transient, message)
}

/// The error for a question whose batch was cancelled before it came to it.
pub(crate) fn cancelled() -> CallError {
    let message = "the batch was cancelled before it came to this question";
    CallError::new(FailureCause::Aborted, RetryAdvice::Transient, message)
}

/// The error for a question that a batch says nothing about.
pub(crate) fn left_out() -> CallError {
    unusable("the batch has ended without an answer to this question")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_certain() {
        let not_created = |status: Option<u16>, retry| {
            let error = CallError::new(FailureCause::Server, retry, "");
            let error = match status {
                Some(status) => error.with_status(status),
                None => error,
            };
            NotCreated::of(error).may_exist
        };
        assert!(!not_created(Some(400), RetryAdvice::No));
        assert!(!not_created(Some(429), RetryAdvice::RateLimited { after: None }));
        assert!(!not_created(None, RetryAdvice::Unreachable));
        assert!(not_created(Some(500), RetryAdvice::Transient));
        assert!(not_created(Some(408), RetryAdvice::Transient));
        assert!(not_created(None, RetryAdvice::Transient));
    }

    #[test]
    fn an_id_leads_nowhere_else() {
        assert_eq!(plain_id("batch_67-A").unwrap(), "batch_67-A");
        for other in ["", "../files", "a?b", "a b", "ä"] {
            assert!(plain_id(other).is_err(), "{other}");
        }
        assert!(plain_id(&"x".repeat(ID_CHARS_MAX + 1)).is_err());
    }
}
