//! What a coordinator knows of itself: its time, and what keeps it from doing its work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, RunId, ServiceError};
use tokio::time::Instant;

use crate::errors::{Result, of_queue};

/// Time since a coordinator began; all its parts have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

/// What keeps a coordinator from doing its work, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// That the queue belongs to another place of records.
    unbound: Mutex<Option<String>>,
    queue: Mutex<Option<String>>,
    sink: Mutex<Option<String>>,
    tended: AtomicBool,
}

impl Health {
    /// What is wrong with the sink or the queue.
    pub(crate) fn trouble(&self) -> Option<String> {
        get(&self.unbound).or_else(|| get(&self.sink)).or_else(|| get(&self.queue))
    }

    /// The parts that may be in trouble, and whether they are.
    pub(crate) fn troubled_parts(&self) -> [(&'static str, bool); 3] {
        let is_set = |place: &Mutex<Option<String>>| get(place).is_some();
        [("queue", is_set(&self.queue)), ("sink", is_set(&self.sink)), ("records", is_set(&self.unbound))]
    }

    /// What is wrong with the sink.
    pub(crate) fn sink_trouble(&self) -> Option<String> {
        get(&self.sink)
    }

    /// Whether anything may be said about runs here: not where the records are not those of the queue.
    pub(crate) fn serves(&self) -> Result<()> {
        match get(&self.unbound) {
            Some(message) => Err(ServiceError::new(ErrorCode::Unavailable, message)),
            None => Ok(()),
        }
    }

    pub(crate) fn set_unbound(&self, trouble: Option<String>) {
        set(&self.unbound, trouble);
    }

    /// Takes note that every run was looked after once.
    pub(crate) fn set_tended(&self) {
        self.tended.store(true, Ordering::Release);
    }

    /// Whether every run was looked after once.
    pub(crate) fn is_tended(&self) -> bool {
        self.tended.load(Ordering::Acquire)
    }

    /// Takes note of how the queue is, and puts its error into the words of a service.
    pub(crate) fn note_queue<T>(&self, result: queue::Result<T>) -> Result<T> {
        let trouble = match &result {
            Err(
                error @ (queue::Error::Unavailable { .. }
                | queue::Error::Full { .. }
                | queue::Error::Unfit { .. }
                | queue::Error::Corrupt { .. }),
            ) => Some(of_queue(error).message),
            _ => None,
        };
        set(&self.queue, trouble);
        result.map_err(|error| of_queue(&error))
    }

    /// Takes note of how the sink is.
    pub(crate) fn note_sink<T, E: Into<ServiceError>>(&self, result: std::result::Result<T, E>) -> Result<T> {
        let result = result.map_err(Into::into);
        set(&self.sink, result.as_ref().err().map(|error: &ServiceError| error.message.clone()));
        result
    }

    /// What came of one run's part of something that is done for several runs: `None` where it failed for a reason that
    /// the others need not share.
    ///
    /// # Errors
    /// The queue as a whole is in trouble: what is to be done for the others would fail as well.
    pub(crate) fn apart<T>(&self, run: &RunId, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code.is_transient() && get(&self.queue).is_some() => Err(error),
            Err(error) => {
                // Whoever looks after the run tells of it and shows it.
                tracing::debug!(%run, %error, "left out");
                Ok(None)
            }
        }
    }
}

fn set(place: &Mutex<Option<String>>, value: Option<String>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn get(place: &Mutex<Option<String>>) -> Option<String> {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
