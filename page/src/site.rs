//! The page as a whole: what all requests share.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use coordinator::Coordinator;
use coordinator::access::Access;
use tokio::sync::{Semaphore, watch};

use crate::board::{TICK, ViewCache};
use crate::door::{Login, PublicUrl, Visitor};
use crate::routes;
use crate::session::{Sessions, random_token};

/// Visitors whose pages move by themselves, at once. Others reload.
pub(crate) const STREAMS_MAX: usize = 64;

/// The live page of a coordinator.
#[derive(Clone)]
pub struct Page(Arc<Site>);

pub(crate) struct Site {
    pub coordinator: Arc<Coordinator>,
    pub entrance: Login,
    pub public: Option<PublicUrl>,
    pub board: Arc<ViewCache>,
    pub streams: Arc<Semaphore>,
    /// The token of forms where nobody logs in.
    pub form_token: String,
    sessions: Mutex<Sessions>,
    started: Instant,
    closing: watch::Sender<bool>,
}

impl Page {
    /// The page of this coordinator. `public` is its address for other machines.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(
        coordinator: Arc<Coordinator>,
        entrance: Login,
        public: Option<PublicUrl>,
    ) -> io::Result<Self> {
        Ok(Self(Arc::new(Site {
            board: Arc::new(ViewCache::new(Arc::clone(&coordinator), TICK)),
            coordinator,
            entrance,
            public,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            form_token: random_token()?,
            sessions: Mutex::default(),
            started: Instant::now(),
            closing: watch::channel(false).0,
        })))
    }

    /// Its routes. Requests need the address of their peer as [`ConnectInfo`](axum::extract::ConnectInfo).
    pub fn router(&self) -> Router {
        routes::router(Arc::clone(&self.0))
    }

    /// Ends the streams of everybody who looks, because the process ends.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }
}

impl Site {
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Sessions are whole at any moment, also where a panic passed through.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The coordinator as this visitor may use it.
    pub(crate) fn behalf(&self, visitor: &Visitor) -> Arc<Access> {
        Access::of(&self.coordinator, &visitor.caller)
    }

    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}
