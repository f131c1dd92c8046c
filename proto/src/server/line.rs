//! The state of one connection, and when to close it: a plain state machine that takes the time.
//!
//! The guard takes note of every request of a connection, and of the first caller that it lets in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::budget::DECODE_UNIT;
use crate::limits::{DECODE_BYTES, IDLE_CONNECTION, SLOW_READER, UNKNOWN_PEER};

/// One connection.
#[derive(Debug)]
pub(super) struct ClientConnection {
    state: Mutex<State>,
    /// Memory budget for messages being received, in units of [`DECODE_UNIT`].
    pub(super) room: Arc<Semaphore>,
}

#[derive(Debug)]
struct State {
    /// Whether a caller was let in.
    known: bool,
    /// When the last call ended; of a stranger, when it came.
    idle_since: Instant,
    calls: u64,
    /// Calls whose last piece of an answer was not read yet, with the time.
    unread: BTreeMap<u64, Instant>,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// No authenticated call in time.
    Unknown,
    /// No call for too long.
    Idle,
    /// The client does not read answers.
    SlowReader,
}

/// A call in progress.
#[derive(Debug)]
pub(super) struct OpenCall {
    line: Arc<ClientConnection>,
    number: u64,
}

impl ClientConnection {
    pub(super) fn new(now: Instant) -> Arc<Self> {
        let state = State { known: false, idle_since: now, calls: 0, unread: BTreeMap::new() };
        Arc::new(Self {
            state: Mutex::new(state),
            room: Arc::new(Semaphore::new(DECODE_BYTES / DECODE_UNIT)),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave plain values inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call.
    pub(super) fn begin(self: &Arc<Self>, number: u64) -> OpenCall {
        self.state().calls += 1;
        OpenCall { line: Arc::clone(self), number }
    }

    /// Takes note that a caller was let in.
    pub(super) fn let_in(&self) {
        self.state().known = true;
    }

    /// Whether to close the connection, and why.
    pub(super) fn close_reason(&self, now: Instant) -> Option<CloseReason> {
        let state = self.state();
        let since = |then: Instant| now.saturating_duration_since(then);
        if state.unread.values().any(|then| since(*then) >= SLOW_READER) {
            return Some(CloseReason::SlowReader);
        }
        match (state.known, state.calls) {
            (false, _) if since(state.idle_since) >= UNKNOWN_PEER => Some(CloseReason::Unknown),
            (true, 0) if since(state.idle_since) >= IDLE_CONNECTION => Some(CloseReason::Idle),
            _ => None,
        }
    }
}

impl OpenCall {
    /// A piece of the answer was sent.
    pub(super) fn handed_out(&self, now: Instant) {
        self.line.state().unread.insert(self.number, now);
    }

    /// The client is ready for more.
    pub(super) fn asked_for_more(&self) {
        self.line.state().unread.remove(&self.number);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut state = self.line.state();
        state.calls = state.calls.saturating_sub(1);
        state.unread.remove(&self.number);
        // A stranger's calls do not make its time longer.
        if state.known {
            state.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_idlers_and_slow_readers_have_their_time() {
        let begin = Instant::now();
        let line = ClientConnection::new(begin);
        assert_eq!(line.close_reason(begin), None);
        assert_eq!(line.close_reason(begin + UNKNOWN_PEER), Some(CloseReason::Unknown));
        drop(line.begin(0));
        let call = line.begin(1);
        assert_eq!(
            line.close_reason(begin + UNKNOWN_PEER),
            Some(CloseReason::Unknown),
            "calls make nobody known"
        );
        line.let_in();
        assert_eq!(line.close_reason(begin + IDLE_CONNECTION * 2), None, "a long poll is no idling");
        call.handed_out(begin);
        call.asked_for_more();
        assert_eq!(line.close_reason(begin + SLOW_READER), None);
        call.handed_out(begin);
        assert_eq!(line.close_reason(begin + SLOW_READER), Some(CloseReason::SlowReader));
        drop(call);
        let end = Instant::now();
        assert_eq!(line.close_reason(end), None);
        assert_eq!(line.close_reason(end + IDLE_CONNECTION), Some(CloseReason::Idle));
    }
}
