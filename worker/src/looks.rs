//! Reads the loads of servers as often as their limits need it.
//!
//! A discovered server is read at even distances, any server when the work loop wants to look: soon while its limit
//! grows, seldom once it stands. A server that takes its time to answer is left alone for a multiple of that time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Backoff;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::limiter::LoadLook;
use crate::servers::News;
use crate::vllm::ServerLoad;

/// How long a server is left alone after a query of its load, in times of what the query took: queries never take more
/// than a fifth of its time.
const REST: u32 = 4;

/// What the work loop wants of the probe of an address.
#[derive(Debug, Default)]
pub struct ProbeWishes {
    suspected: Notify,
    wanted: Notify,
    /// The soonest look wanted and not had.
    look: Mutex<Option<LoadLook>>,
}

impl ProbeWishes {
    /// A dialogue could not reach the address.
    pub fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// Its load should be read.
    pub fn look(&self, look: LoadLook) {
        let mut soonest = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        *soonest = Some(soonest.map_or(look, |before| before.min(look)));
        drop(soonest);
        self.wanted.notify_one();
    }

    fn take(&self) -> Option<LoadLook> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// After a query that began at `asked_at`, waits until the next one is due: after `every` if given, or earlier if a
    /// look is wanted. True if the address is suspected before that.
    pub async fn until_look(&self, asked_at: Instant, every: Option<Duration>) -> bool {
        let read_at = Instant::now();
        let rested_at = read_at + (read_at - asked_at) * REST;
        let mut next = every.map(|every| read_at + every);
        loop {
            tokio::select! {
                () = self.suspected.notified() => return true,
                () = self.wanted.notified() => {
                    let wanted = self.take().map(|look| due(look, read_at).max(rested_at));
                    next = next.into_iter().chain(wanted).min();
                }
                () = tokio::time::sleep_until(next.unwrap_or(read_at)), if next.is_some() => return false,
            }
        }
    }
}

/// When a look is due that is wanted now, after one at `read_at`.
fn due(look: LoadLook, read_at: Instant) -> Instant {
    match look {
        // What was just begun must arrive first.
        LoadLook::Soon | LoadLook::Shared => Instant::now() + look.pause(),
        LoadLook::Settled => read_at + look.pause(),
    }
}

/// Reads the load of an address whenever that is wanted, as long as the server there tells it.
pub async fn read_when_wanted(endpoint: String, news: mpsc::Sender<News>, wishes: Arc<ProbeWishes>) {
    let mut load = ServerLoad::new(&endpoint);
    let mut backoff = Backoff::default();
    while load.is_told() {
        let asked_at = Instant::now();
        match load.read().await {
            Some(loads) => {
                backoff.reset();
                if news.send(News::Load { endpoint: endpoint.clone(), loads }).await.is_err() {
                    return;
                }
            }
            None => tokio::time::sleep(backoff.next_delay()).await,
        }
        wishes.until_look(asked_at, None).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Option<Duration> = Some(Duration::from_secs(1));

    /// Whether it waits so long after a query that took so long, if these looks are wanted at once.
    async fn waits(took: Duration, every: Option<Duration>, looks: &[LoadLook], expected: Duration) -> bool {
        let wishes = ProbeWishes::default();
        let asked_at = Instant::now();
        tokio::time::advance(took).await;
        looks.iter().for_each(|look| wishes.look(*look));
        let began = Instant::now();
        assert!(!wishes.until_look(asked_at, every).await);
        // Timers have a resolution of a millisecond.
        (expected..=expected + Duration::from_millis(1)).contains(&began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_comes_when_it_is_wanted_and_the_server_has_rested() {
        let (quick, slow) = (Duration::from_millis(1), Duration::from_millis(20));
        let all = [LoadLook::Settled, LoadLook::Soon, LoadLook::Shared];
        assert!(waits(quick, EVERY, &[], Duration::from_secs(1)).await);
        assert!(waits(quick, EVERY, &[LoadLook::Settled], LoadLook::Settled.pause()).await);
        assert!(waits(quick, None, &all, LoadLook::Soon.pause()).await, "the soonest counts");
        assert!(waits(slow, EVERY, &[LoadLook::Soon], slow * REST).await);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_looks_unless_somebody_wants_to() {
        let wishes = ProbeWishes::default();
        let waiting = wishes.until_look(Instant::now(), None);
        assert!(tokio::time::timeout(Duration::from_secs(3600), waiting).await.is_err());
        wishes.suspect();
        assert!(wishes.until_look(Instant::now(), EVERY).await, "its models are asked for first");
    }
}
