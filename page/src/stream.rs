//! Live updates: server-sent events with the sections of a page that changed.
//!
//! A slow reader misses states in between and delays nobody: its stream asks for the latest state when it can send one.
//! The server of the port closes connections whose readers take nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use domain::ServiceError;
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::admission::Visitor;
use crate::cache::{PageState, Section, TICK, Topic};
use crate::site::Site;

/// Sections longer than this, in bytes, are sent less often: the grid of the largest runs has 200 kB.
const LARGE: usize = 32 << 10;

/// Shortest time between two versions of a large section.
const LARGE_EVERY: Duration = Duration::from_secs(5);

/// Time without news after which an empty event is sent: proxies take a silent connection for one that is gone, nginx after a
/// minute.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The stream of one visitor.
struct Reader {
    site: Arc<Site>,
    visitor: Visitor,
    topic: Topic,
    /// For each section, the version that was sent and when.
    seen: HashMap<&'static str, (u64, Instant)>,
    closing: watch::Receiver<bool>,
    next: Instant,
    ended: bool,
    /// Whether the visitor was told of an error of the coordinator.
    in_trouble: bool,
    _room: OwnedSemaphorePermit,
}

/// The stream of a topic.
pub(crate) fn of(site: Arc<Site>, visitor: Visitor, topic: Topic) -> Response {
    let Ok(room) = Arc::clone(&site.streams).try_acquire_owned() else {
        let headers = [(header::RETRY_AFTER, "30")];
        return (StatusCode::SERVICE_UNAVAILABLE, headers, "too many look at once; reload by hand\n")
            .into_response();
    };
    let closing = site.closing();
    let (seen, next) = (HashMap::new(), Instant::now());
    let reader =
        Reader { site, visitor, topic, seen, closing, next, ended: false, in_trouble: false, _room: room };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.event().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies that collect answers are asked not to.
    ([(HeaderName::from_static("x-accel-buffering"), "no")], stream).into_response()
}

impl Reader {
    /// The next event; `None` at the end.
    async fn event(&mut self) -> Option<Event> {
        while !self.ended {
            tokio::select! {
                _ = self.closing.wait_for(|closing| *closing) => return None,
                () = tokio::time::sleep_until(self.next) => {}
            }
            self.next = Instant::now() + TICK;
            if !self.is_welcome() {
                self.ended = true;
                return Some(Event::default().event("leave").data("the session has ended"));
            }
            let state = match self.site.cache.latest(&self.topic).await {
                Ok(state) => state,
                Err(error) => match self.trouble(&error) {
                    Some(event) => return Some(event),
                    None => continue,
                },
            };
            if std::mem::take(&mut self.in_trouble) {
                // Everything again, so that its page says that all is well.
                self.seen.clear();
            }
            let news = self.news(&state);
            if state.over && news.is_empty() {
                self.ended = true;
                return Some(Event::default().event("over").data("over"));
            }
            if !news.is_empty() {
                return Event::default().json_data(news).ok();
            }
        }
        None
    }

    /// Whether the visitor still has the right to look.
    fn is_welcome(&self) -> bool {
        let session = self.visitor.session;
        !self.visitor.caller.is_revoked()
            && session.is_none_or(|id| self.site.sessions().goes_on(&id, self.site.now()))
    }

    fn trouble(&mut self, error: &ServiceError) -> Option<Event> {
        if std::mem::replace(&mut self.in_trouble, true) {
            return None;
        }
        Some(Event::default().event("trouble").data(report::table::printable(&error.message)))
    }

    /// The sections that changed since they were sent.
    fn news(&mut self, state: &PageState) -> serde_json::Map<String, serde_json::Value> {
        let (mut news, now) = (serde_json::Map::new(), Instant::now());
        for section in &state.sections {
            let had = self.seen.get(section.id).map(|(hash, at)| (*hash, now.saturating_duration_since(*at)));
            // At the end, everything is sent.
            if is_due(section, had, state.over) {
                self.seen.insert(section.id, (section.hash, now));
                news.insert(section.id.to_owned(), (*section.html).into());
            }
        }
        news
    }
}

/// Whether to send a section now. `had` is the version sent before and its age; the last state of a run is always sent.
fn is_due(section: &Section, had: Option<(u64, Duration)>, is_last: bool) -> bool {
    match had {
        None => true,
        Some((hash, _)) if hash == section.hash => false,
        Some((_, since)) => is_last || section.html.len() <= LARGE || since >= LARGE_EVERY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_is_sent_less_often_and_what_is_new_in_the_end() {
        let section = |bytes: usize| Section { id: "s", html: "x".repeat(bytes).into(), hash: 7 };
        let (small, large) = (section(LARGE), section(LARGE + 1));
        let second = Duration::from_secs(1);
        assert!(is_due(&large, None, false) && is_due(&small, Some((6, second)), false));
        assert!(!is_due(&large, Some((6, second)), false) && is_due(&large, Some((6, LARGE_EVERY)), false));
        assert!(is_due(&large, Some((6, second)), true) && !is_due(&large, Some((7, second)), true));
    }
}
