//! The state that all requests share, and what a page needs to know beyond the coordinator: prices, and where its dashboards are.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coordinator::Coordinator;
use coordinator::access::Access;
use domain::RunId;
use proto::server::Identities;
use report::costs::Prices;
use tokio::sync::{Semaphore, watch};
use url::Url;

use crate::PageOptions;
use crate::admission::{PublicUrl, Visitor};
use crate::cache::{TICK, ViewCache};
use crate::session::{Sessions, random_token};

/// Visitors with live updates at once. Others must reload their page.
pub(crate) const STREAMS_MAX: usize = 64;

/// Exports of records at once: each reads a whole log.
pub(crate) const EXPORTS_MAX: usize = 2;

/// The shared state; see the module.
pub(crate) struct Site {
    pub coordinator: Arc<Coordinator>,
    pub identities: Identities,
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
    pub(crate) fn new(coordinator: Arc<Coordinator>, options: PageOptions) -> io::Result<Self> {
        let PageOptions { identities, public, links } = options;
        let links = Arc::new(links);
        Ok(Self {
            cache: Arc::new(ViewCache::new(&coordinator, Arc::clone(&links), TICK)),
            coordinator,
            identities,
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

/// The dashboards of this project, by the identifiers that their files give them.
const RUN_DASHBOARD: &str = "d/kgfleet-run";

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Links {
    pub prices: Prices,
    /// Where Grafana serves this project's dashboards.
    pub dashboards: Option<DashboardUrl>,
}

impl Links {
    /// The dashboard of a run.
    pub(crate) fn dashboard_of(&self, run: &RunId) -> Option<String> {
        let DashboardUrl(base) = self.dashboards.as_ref()?;
        let mut url = base.join(RUN_DASHBOARD).ok()?;
        url.query_pairs_mut().append_pair("var-run", run.as_str());
        Some(url.into())
    }
}

/// The address of Grafana.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardUrl(Url);

/// An address of another form than it must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidUrl {
    pub(crate) text: String,
    pub(crate) wanted: &'static str,
}

impl std::str::FromStr for DashboardUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        // A base whose path does not end in a slash would lose its last part.
        let url = Url::parse(&format!("{}/", text.trim_end_matches('/')));
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_plain =
            |url: &Url| url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let url = url.ok().filter(|url| is_web(url) && is_plain(url));
        let wanted = "http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]";
        url.map(Self).ok_or_else(|| InvalidUrl { text: text.to_owned(), wanted })
    }
}

/// Notices that wait to be told; the oldest gives way.
const NOTICES_MAX: usize = 256;

/// The notices that nobody was told yet. A plain structure.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    waiting: VecDeque<(String, String)>,
}

impl Notices {
    /// Leaves a notice under this name, which nobody can guess.
    pub(crate) fn leave(&mut self, name: String, words: String) {
        if self.waiting.len() >= NOTICES_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((name, words));
    }

    /// The words of a notice, once.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.waiting.iter().position(|(known, _)| known == name)?;
        self.waiting.remove(place).map(|(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_leads_to_its_own_dashboard() {
        let links = |base: &str| Links { dashboards: Some(base.parse().unwrap()), ..Links::default() };
        let to = |base: &str| links(base).dashboard_of(&"a b&c".into()).unwrap();
        assert_eq!(to("https://grafana.example"), "https://grafana.example/d/kgfleet-run?var-run=a+b%26c");
        assert_eq!(to("http://h:3000/grafana/"), "http://h:3000/grafana/d/kgfleet-run?var-run=a+b%26c");
        for wrong in ["javascript:alert(1)", "grafana.example", "https://", "https://a?x=1", "https://u@a"] {
            assert!(wrong.parse::<DashboardUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_notice_is_told_once_and_few_are_kept() {
        let mut notices = Notices::default();
        notices.leave("a".to_owned(), "paused".to_owned());
        assert_eq!((notices.take("b"), notices.take("a")), (None, Some("paused".to_owned())));
        assert_eq!(notices.take("a"), None);
        for number in 0..2 * NOTICES_MAX {
            notices.leave(number.to_string(), String::new());
        }
        assert_eq!((notices.waiting.len(), notices.take("0")), (NOTICES_MAX, None));
    }
}
