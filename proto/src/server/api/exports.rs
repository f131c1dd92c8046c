//! Turns of exports: each holds records until its reader takes them, so an identity has a few at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::caller::Caller;
use domain::{ErrorCode, ServiceError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{EXPORTS_PER_IDENTITY, ROOM_PATIENCE};

/// The turns of each identity that has exported.
#[derive(Default)]
pub(in crate::server) struct ExportTurns(Mutex<HashMap<String, Arc<Semaphore>>>);

impl ExportTurns {
    /// Waits until the caller may export; it may for as long as the permit is kept.
    ///
    /// # Errors
    /// [`ErrorCode::Full`] if none of the identity's exports ends in time.
    pub(super) async fn take(&self, caller: &Caller) -> Result<OwnedSemaphorePermit, ServiceError> {
        match timeout(ROOM_PATIENCE, self.of(caller.name()).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let message = format!(
                    "`{}` has {EXPORTS_PER_IDENTITY} exports under way, which are as many as it may have; try again later",
                    caller.name()
                );
                Err(ServiceError::new(ErrorCode::Full, message))
            }
        }
    }

    fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = turns.entry(name.to_owned());
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(EXPORTS_PER_IDENTITY))))
    }
}
