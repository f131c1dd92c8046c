//! What moves: server-sent events with the parts of a page that changed.
//!
//! A reader that is slow misses states in between, and nothing waits for it: its stream asks for the latest state when it
//! can take one. The connection of a reader that takes nothing is closed by the server of the port.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use domain::ServiceError;
use futures::stream;
use service_kit::http::IDLE_MAX;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::board::{Section, TICK, Topic};
use crate::door::Visitor;
use crate::site::Site;

/// Somebody who looks.
struct Reader {
    site: Arc<Site>,
    visitor: Visitor,
    topic: Topic,
    /// By section, what it has.
    seen: HashMap<&'static str, u64>,
    closing: watch::Receiver<bool>,
    next: Instant,
    ended: bool,
    /// Whether it was told that the coordinator is in trouble.
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
    // Often enough that a connection without news is not taken for one that is gone.
    Sse::new(events).keep_alive(KeepAlive::new().interval(IDLE_MAX / 3)).into_response()
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
            let snapshot = match self.site.board.look(&self.topic).await {
                Ok(snapshot) => snapshot,
                Err(error) => match self.trouble(&error) {
                    Some(event) => return Some(event),
                    None => continue,
                },
            };
            if std::mem::take(&mut self.in_trouble) {
                // Everything again, so that its page says that all is well.
                self.seen.clear();
            }
            let news = self.news(&snapshot.sections);
            if snapshot.over && news.is_empty() {
                self.ended = true;
                return Some(Event::default().event("over").data("over"));
            }
            if !news.is_empty() {
                return Event::default().json_data(news).ok();
            }
        }
        None
    }

    /// Whether it may still look.
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

    /// The sections that it does not have.
    fn news(&mut self, sections: &[Section]) -> serde_json::Map<String, serde_json::Value> {
        let mut news = serde_json::Map::new();
        for section in sections {
            if self.seen.insert(section.id, section.hash) != Some(section.hash) {
                news.insert(section.id.to_owned(), (*section.html).into());
            }
        }
        news
    }
}
