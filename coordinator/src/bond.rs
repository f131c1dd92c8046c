//! Checks that queue and sink belong together.
//!
//! A coordinator on an empty folder, because a volume is not mounted or a prefix is misspelt, would tell workers that their
//! runs do not exist and start others in the same queue. So the sink has an identity, and the queue stores the identity of
//! the sink that it belongs to.

use std::sync::{Mutex, PoisonError};

use crate::coordinator::Coordinator;
use crate::errors::{Result, conflict};

/// The identity of the sink, once the queue is known to belong to it.
#[derive(Debug, Default)]
pub(crate) struct Bond(Mutex<Option<String>>);

impl Bond {
    fn known(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, here: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(here);
    }
}

impl Coordinator {
    /// Checks that the queue belongs to this sink. The first coordinator of a queue binds it; `adopt` binds it again, whatever
    /// it belonged to.
    ///
    /// # Errors
    /// The queue belongs to another sink, or this sink has lost its identity: nothing is served until that is corrected.
    pub(crate) async fn check_bond(&self, adopt: bool) -> Result<()> {
        if !self.storage.is_shared() {
            return Ok(());
        }
        // In this order: who claims a queue has given the place its identity before.
        let owner = self.health.note_queue(self.queue.owner().await)?;
        let here = self.storage.sink.identity().await?;
        // A queue that lost everything is given what it had.
        let owner = if adopt { None } else { owner.or_else(|| self.bond.known()) };
        let bond = match (here, owner) {
            (Some(here), Some(owner)) if here == owner => Ok(here),
            (here, Some(owner)) => {
                let here =
                    here.map_or("has no identity, as if it were new".to_owned(), |here| format!("is {here}"));
                Err(conflict(format!(
                    "the queue belongs to the records of store {owner}, and {} {here}: mount the volume, or mend \
                     --data-dir or --sink; to give the queue to this place on purpose, start once with --adopt-store",
                    self.storage.sink
                )))
            }
            (_, None) => Ok(self.storage.sink.identify().await?),
        };
        let bond = match bond {
            Ok(here) => {
                let owner = self.health.note_queue(self.queue.claim(&here, adopt).await)?;
                // A coordinator on another sink was faster.
                if owner == here {
                    Ok(here)
                } else {
                    Err(conflict(format!("the queue was given to store {owner} just now")))
                }
            }
            error => error,
        };
        let checked = bond.map(|here| self.bond.set(here));
        self.health.set_unbound(checked.as_ref().err().map(|error| error.message.clone()));
        checked
    }
}
