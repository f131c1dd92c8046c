//! Counts earlier requests of a conversation and earlier equal requests, within bounded memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::identity::SimIdentity;

/// Conversations and requests remembered, each; about 4 MB together.
const REMEMBERED: usize = 100_000;

/// Counts of one request, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenAttempt {
    /// Requests of the same conversation so far.
    pub(super) of_conversation: u32,
    /// Equal requests so far.
    pub(super) of_request: u32,
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct SeenAttempts(Mutex<(Counts, Counts)>);

impl SeenAttempts {
    /// Counts a request.
    pub(super) fn count(&self, identity: SimIdentity) -> SeenAttempt {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SeenAttempt {
            of_conversation: counts.0.count(identity.conversation),
            of_request: counts.1.count(identity.request),
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    counts: HashMap<u64, u32>,
    /// First seen first, for forgetting the oldest.
    order: VecDeque<u64>,
}

impl Counts {
    fn count(&mut self, key: u64) -> u32 {
        if !self.counts.contains_key(&key) {
            if self.order.len() >= REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
            self.order.push_back(key);
        }
        let count = self.counts.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut counts = Counts::default();
        for key in 0..=REMEMBERED as u64 {
            assert_eq!(counts.count(key), 1);
        }
        assert_eq!((counts.count(1), counts.count(0)), (2, 1));
        assert_eq!(counts.counts.len(), REMEMBERED);
    }
}
