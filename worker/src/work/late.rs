//! Asks dialogues again whose first token does not come: at another server of their model.
//!
//! Once a second the calls under way are compared with what is usual ([`Tail`](crate::tail::Tail)). Those that are late
//! wait here for room at another server, before dialogues that have not begun. The dialogue itself makes the second call
//! and chooses between the two ([`second`](crate::second)).

use std::sync::Arc;

use tokio::time::Instant;

use super::lanes::ModelLane;
use super::{Running, Work, is_of};
use crate::second::AskedServer;
use crate::servers::{ServerKey, Servers};
use crate::slots::{LaneKey, Tag};
use crate::tail::Tail;

/// A call whose first token does not come.
pub(super) struct LateCall {
    dialogue: Tag,
    sent: Instant,
}

impl Work {
    /// Looks for the calls that are late.
    pub(super) fn find_late(&mut self, now: Instant) {
        self.late.clear();
        for (key, lane) in &self.lanes {
            let tail = lane.tail.as_ref().filter(|_| lane.servers.len() > 1);
            let Some(bound) = tail.and_then(|tail| tail.late_before(now)) else { continue };
            let asked_once = self.running.iter().filter(|(tag, running)| {
                is_of(tag, key) && running.asked_again_at.is_none() && is_own(&running.server)
            });
            self.late.extend(asked_once.filter_map(|(tag, running)| {
                let sent = running.progress.silent_since().filter(|sent| *sent < bound)?;
                Some(LateCall { dialogue: tag.clone(), sent })
            }));
        }
        self.late.sort_by_key(|call| call.sent);
    }

    /// Has as many late calls made again as there is room for.
    pub(super) fn ask_late_again(&mut self, now: Instant) {
        let mut late = std::mem::take(&mut self.late);
        late.retain(|call| !self.is_settled(call, now));
        self.late = late;
    }

    /// Has a late call made again, if no token has come yet and there is room; false if it has to wait for room.
    fn is_settled(&mut self, call: &LateCall, now: Instant) -> bool {
        let key = LaneKey::of(&call.dialogue.lease);
        let (running, lane) = (self.running.get_mut(&call.dialogue), self.lanes.get_mut(&key));
        let (Some(running), Some(lane)) = (running, lane) else { return true };
        if running.progress.silent_since() != Some(call.sent) {
            return true;
        }
        let breaker = self.breakers.get(&key);
        let limit = lane.spec.concurrency.filter(|_| self.config.concurrency.is_none());
        if breaker.is_some_and(|breaker| breaker.is_in_doubt() || breaker.is_open(now))
            || limit.is_some_and(|limit| lane.in_flight >= limit)
        {
            return false;
        }
        let Some((server, asked)) = other(lane, &self.servers, &running.server) else { return false };
        if !lane.tail.as_mut().is_some_and(Tail::hedge) {
            return false;
        }
        tracing::info!(
            dialogue = ?call.dialogue, waited_s = now.duration_since(call.sent).as_secs(), second = %asked.name,
            "the first token does not come; another server is asked, too"
        );
        lane.in_flight += 1;
        self.servers.begin(&server);
        running.asked_again_at = Some(server);
        running.second.tell(call.sent, asked);
        true
    }

    /// Records the end of a dialogue: a second server has room again, and what first tokens took is learnt.
    pub(super) fn leave_second(&mut self, key: &LaneKey, running: &Running) {
        if let Some(server) = &running.asked_again_at {
            self.servers.ended(server, None);
            self.leave_lane(key);
        }
        if let Some(tail) = self.lanes.get_mut(key).and_then(|lane| lane.tail.as_mut()) {
            running.progress.take_first_tokens().into_iter().for_each(|took| tail.first_token(took));
        }
    }
}

/// The server with most room for a second call, besides this one.
fn other(lane: &ModelLane, servers: &Servers, first: &ServerKey) -> Option<(ServerKey, Arc<AskedServer>)> {
    let others = lane.servers.iter().filter(|server| *server != first && is_own(server));
    let ready = others.filter_map(|server| {
        let context = lane.contexts.get(server)?.as_ref()?;
        Some((servers.free(server), server, context))
    });
    let (_, server, context) = ready.filter(|(free, ..)| *free > 0).max_by_key(|(free, ..)| *free)?;
    Some((server.clone(), Arc::clone(&context.at)))
}

/// Whether it is a server of whoever benchmarks. A provider is never asked twice: each call of it is paid for.
fn is_own(server: &ServerKey) -> bool {
    match server {
        ServerKey::Found { endpoint, .. } => !models::openai::is_a_providers(endpoint),
        ServerKey::Hosted { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_provider_is_asked_twice() {
        let found =
            |endpoint: &str| ServerKey::Found { endpoint: endpoint.to_owned(), model: "m".to_owned() };
        assert!(is_own(&found("http://10.0.0.1:8000/v1")));
        assert!(!is_own(&found("https://api.openai.com/v1")));
        let spec =
            serde_json::json!({"label": "m", "connector": "openai-compatible", "endpoint": "http://a/v1"});
        let spec = serde_json::from_value(spec).unwrap();
        assert!(!is_own(&ServerKey::hosted(&spec)));
    }
}
