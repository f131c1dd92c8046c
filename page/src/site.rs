//! The state that all requests share.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coordinator::Coordinator;
use coordinator::access::Access;
use tokio::sync::{Semaphore, watch};

use crate::cache::{TICK, ViewCache};
use crate::session::{Sessions, random_token};
use crate::visitor::{Login, PublicUrl, Visitor};

/// Visitors with live updates at once. Others must reload their page.
pub(crate) const STREAMS_MAX: usize = 64;

/// The shared state; see the module.
pub(crate) struct Site {
    pub coordinator: Arc<Coordinator>,
    pub login: Login,
    pub public: Option<PublicUrl>,
    pub cache: Arc<ViewCache>,
    pub streams: Arc<Semaphore>,
    /// The token of forms if nobody has to log in.
    pub form_token: String,
    sessions: Mutex<Sessions>,
    started: Instant,
    closing: watch::Sender<bool>,
}

impl Site {
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        login: Login,
        public: Option<PublicUrl>,
    ) -> io::Result<Self> {
        Ok(Self {
            cache: Arc::new(ViewCache::new(&coordinator, TICK)),
            coordinator,
            login,
            public,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            form_token: random_token()?,
            sessions: Mutex::default(),
            started: Instant::now(),
            closing: watch::channel(false).0,
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Sessions are whole at any moment, also where a panic passed through.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The coordinator as this visitor may use it.
    pub(crate) fn access(&self, visitor: &Visitor) -> Arc<Access> {
        self.coordinator.access(&visitor.caller)
    }

    /// Ends the streams of everybody who looks.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}
