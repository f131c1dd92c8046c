//! The state that all requests share.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coordinator::Coordinator;
use coordinator::access::Access;
use tokio::sync::{Semaphore, watch};

use crate::cache::{TICK, ViewCache};
use crate::links::Links;
use crate::notices::Notices;
use crate::session::{Sessions, random_token};
use crate::visitor::{Login, PublicUrl, Visitor};

/// Visitors with live updates at once. Others must reload their page.
pub(crate) const STREAMS_MAX: usize = 64;

/// Exports of records at once: each reads a whole log.
pub(crate) const EXPORTS_MAX: usize = 2;

/// The shared state; see the module.
pub(crate) struct Site {
    pub coordinator: Arc<Coordinator>,
    pub login: Login,
    pub public: Option<PublicUrl>,
    pub cache: Arc<ViewCache>,
    pub streams: Arc<Semaphore>,
    pub exports: Arc<Semaphore>,
    pub links: Arc<Links>,
    /// The token of forms if nobody has to log in.
    pub form_token: String,
    sessions: Mutex<Sessions>,
    notices: Mutex<Notices>,
    started: Instant,
    closing: watch::Sender<bool>,
}

impl Site {
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        login: Login,
        public: Option<PublicUrl>,
        links: Links,
    ) -> io::Result<Self> {
        let links = Arc::new(links);
        Ok(Self {
            cache: Arc::new(ViewCache::new(&coordinator, Arc::clone(&links), TICK)),
            coordinator,
            login,
            public,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
            links,
            form_token: random_token()?,
            sessions: Mutex::default(),
            notices: Mutex::default(),
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

    /// Leaves words for whoever is sent to a page after a command; returns the name by which that page finds them.
    pub(crate) fn leave_notice(&self, words: String) -> String {
        // Without random numbers nothing is told: the page itself shows what was done.
        let Ok(name) = random_token() else { return String::new() };
        self.notices().leave(name.clone(), words);
        name
    }

    /// The words that were left under this name, once.
    pub(crate) fn take_notice(&self, name: &str) -> Option<String> {
        self.notices().take(name)
    }

    fn notices(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
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
