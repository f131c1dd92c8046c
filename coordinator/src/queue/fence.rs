//! Who leads the fleet, as the record store knows it. Redis may be emptied or set back while a leader stands still; the claim in the
//! record store stays, and tells it that another one has led meanwhile.

use std::sync::Arc;

use queue::{Error, LeaderFence};
use results::log::Claim;
use results::sink::SinkError;
use tokio::sync::Mutex;

use crate::records::store::Store;

/// The claim of this process, once it has led.
pub(crate) struct StoreFence {
    store: Arc<Store>,
    claim: Mutex<Option<Arc<Claim>>>,
}

impl StoreFence {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, claim: Mutex::default() }
    }
}

fn unknown(error: &SinkError) -> Error {
    Error::Unavailable { message: format!("the record store does not say who leads this fleet: {error}") }
}

#[async_trait::async_trait]
impl LeaderFence for StoreFence {
    async fn claim(&self) -> queue::Result<()> {
        let claim = self.store.sink.claim_lead().await.map_err(|error| unknown(&error))?;
        *self.claim.lock().await = Some(Arc::new(claim));
        Ok(())
    }

    async fn check(&self) -> queue::Result<()> {
        let claim = self.claim.lock().await.clone();
        let leads = match &claim {
            Some(claim) => self.store.sink.has_lead(claim).await.map_err(|error| unknown(&error))?,
            None => false,
        };
        match leads {
            true => Ok(()),
            false => Err(Error::NotLeader {
                leader: "another coordinator has begun to lead this fleet, by its record store".to_owned(),
            }),
        }
    }
}
