//! Queue and place of records belong together.
//!
//! A coordinator that was started on an empty folder, because a volume is not mounted or a prefix is misspelt, would tell
//! workers that their runs are not there and begin others under the same queue. So the place of records has an identity,
//! and the queue knows the identity of the place that it belongs to.

use std::sync::{Mutex, PoisonError};

use crate::coordinator::Coordinator;
use crate::errors::{Result, conflict};

/// The identity of the place of records, once the queue is known to belong to it.
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
    /// Sees whether the queue belongs to this place of records. The first coordinator of a queue makes it so; `adopt`
    /// makes it so again, whatever it belonged to.
    ///
    /// # Errors
    /// It belongs to another place, or this one has lost its identity: nothing is served until that is mended.
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
                // Another coordinator, on another place, was quicker.
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
