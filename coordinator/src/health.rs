//! The health of a coordinator: its clock, and problems that keep it from working.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, RunId, ServiceError};
use tokio::time::Instant;

use crate::errors::{Result, of_queue};

/// Time since the start of a coordinator, shared by all its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uptime {
    started: Instant,
}

impl Uptime {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The latest problems of a coordinator.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Why the queue does not belong to this sink.
    unbound: Mutex<Option<String>>,
    queue: Mutex<Option<String>>,
    /// Why the queue takes no writes: since it refused one, until a round could write again. It can be read meanwhile.
    unwritable: Mutex<Option<String>>,
    sink: Mutex<Option<String>>,
    tended: AtomicBool,
}

impl Health {
    /// The problem of sink or queue, if any.
    pub(crate) fn trouble(&self) -> Option<String> {
        get(&self.unbound).or_else(|| get(&self.sink)).or_else(|| self.queue_trouble())
    }

    /// The problem of the queue, if any: nobody can renew what it holds, so nothing is said of workers by it.
    pub(crate) fn queue_trouble(&self) -> Option<String> {
        get(&self.queue).or_else(|| get(&self.unwritable))
    }

    /// The parts that may be in trouble, and whether they are.
    pub(crate) fn troubled_parts(&self) -> [(&'static str, bool); 3] {
        let is_set = |place: &Mutex<Option<String>>| get(place).is_some();
        [
            ("queue", self.queue_trouble().is_some()),
            ("sink", is_set(&self.sink)),
            ("records", is_set(&self.unbound)),
        ]
    }

    /// The problem of the sink, if any.
    pub(crate) fn sink_trouble(&self) -> Option<String> {
        get(&self.sink)
    }

    /// Whether calls may be served: not if queue and sink do not belong together.
    pub(crate) fn serves(&self) -> Result<()> {
        match get(&self.unbound) {
            Some(message) => Err(ServiceError::new(ErrorCode::Unavailable, message)),
            None => Ok(()),
        }
    }

    pub(crate) fn set_unbound(&self, trouble: Option<String>) {
        set(&self.unbound, trouble);
    }

    /// Notes that every run was tended once.
    pub(crate) fn set_tended(&self) {
        self.tended.store(true, Ordering::Release);
    }

    /// Whether every run was tended once.
    pub(crate) fn is_tended(&self) -> bool {
        self.tended.load(Ordering::Acquire)
    }

    /// Notes the health of the queue and converts its error.
    pub(crate) fn note_queue<T>(&self, result: queue::Result<T>) -> Result<T> {
        let trouble = match &result {
            Err(
                error @ (queue::Error::Unavailable { .. }
                | queue::Error::NotLeader { .. }
                | queue::Error::Unfit { .. }
                | queue::Error::Corrupt { .. }),
            ) => Some(of_queue(error).message),
            Err(error @ queue::Error::Unwritable { .. }) => {
                set(&self.unwritable, Some(of_queue(error).message));
                None
            }
            _ => None,
        };
        set(&self.queue, trouble);
        result.map_err(|error| of_queue(&error))
    }

    /// Notes that the queue was written. Returns whether it had refused writes since this was noted last.
    pub(crate) fn note_written(&self) -> bool {
        self.unwritable.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Notes the health of the sink.
    pub(crate) fn note_sink<T, E: Into<ServiceError>>(&self, result: std::result::Result<T, E>) -> Result<T> {
        let result = result.map_err(Into::into);
        set(&self.sink, result.as_ref().err().map(|error: &ServiceError| error.message.clone()));
        result
    }

    /// The result for a run that may answer a submission: `None` if it cannot be used.
    ///
    /// # Errors
    /// The next attempt may succeed. To go on without the run would begin a second one of the same configuration.
    pub(crate) fn unless_transient<T>(&self, run: &RunId, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(error) if error.code.is_transient() => Err(error),
            result => self.apart(run, result),
        }
    }

    /// The result for one of several runs: `None` if it failed for a reason that may not affect the others.
    ///
    /// # Errors
    /// The queue as a whole has a problem: the other runs would fail too.
    pub(crate) fn apart<T>(&self, run: &RunId, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code.is_transient() && self.queue_trouble().is_some() => Err(error),
            Err(error) => {
                // Tending the run reports and shows the error.
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
