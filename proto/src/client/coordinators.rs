//! Which of several coordinators is asked, and what a caller shows of itself: shared by the calls of workers and of tools.
//!
//! A client uses one coordinator until a call fails because nobody answers, or because it cannot serve; the next call goes to the
//! next one. Nothing is retried here, because only callers know what may be repeated.
//!
//! A call whose caller is unknown, or whose connection fails where certificates may be why, reads the credentials again. If they
//! have been replaced, it may be made anew.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use tokio::time::Instant;
use tonic::codegen::http::HeaderValue;

use super::connect::{ClientConfig, invalid};
use crate::server::BEARER;

/// Time between two readings of files, however many calls are refused.
const REREAD_EVERY: Duration = Duration::from_millis(500);

/// The coordinators of a client, with the lines to them: one for each, or one for all.
pub(super) struct Coordinators<L> {
    connect: fn(&ClientConfig) -> Result<L, ServiceError>,
    current: Mutex<Current<L>>,
}

struct Current<L> {
    lines: L,
    config: ClientConfig,
    authorization: Option<HeaderValue>,
    /// Rises with every coordinator that is left, so that calls that fail together leave one only.
    turn: usize,
    /// Rises with the credentials, so that calls that fail together read files once.
    credentials: u64,
    read_at: Option<Instant>,
}

/// What one call uses.
#[derive(Clone)]
pub(super) struct InUse<L> {
    pub(super) lines: L,
    pub(super) authorization: Option<HeaderValue>,
    /// The coordinator asked is the one at this place among the addresses, counted round.
    pub(super) turn: usize,
    pub(super) credentials: u64,
    /// Whether certificates may be why a connection fails.
    pub(super) has_certificates: bool,
}

impl<L: Clone> Coordinators<L> {
    /// The coordinators of a configuration.
    ///
    /// # Errors
    /// There is no address, the token cannot be sent, or `connect` fails.
    pub(super) fn new(
        config: &ClientConfig,
        connect: fn(&ClientConfig) -> Result<L, ServiceError>,
    ) -> Result<Self, ServiceError> {
        if config.addresses.is_empty() {
            return Err(invalid("no address of a coordinator is given".to_owned()));
        }
        let (lines, authorization) = (connect(config)?, authorization(config)?);
        let config = config.clone();
        let current = Current { lines, config, authorization, turn: 0, credentials: 0, read_at: None };
        Ok(Self { connect, current: Mutex::new(current) })
    }

    fn current(&self) -> MutexGuard<'_, Current<L>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn in_use(&self) -> InUse<L> {
        let current = self.current();
        InUse {
            lines: current.lines.clone(),
            authorization: current.authorization.clone(),
            turn: current.turn,
            credentials: current.credentials,
            has_certificates: current.config.ca.is_some(),
        }
    }

    /// Leaves the coordinator of a failed call, unless another call did so already.
    pub(super) fn leave(&self, turn: usize) {
        let mut current = self.current();
        if current.turn == turn {
            current.turn = turn.wrapping_add(1);
        }
    }

    /// Reads the credentials again that a call has used; returns whether they are others now.
    pub(super) async fn renew(&self, used: u64) -> bool {
        let reread = {
            let mut current = self.current();
            if current.credentials != used {
                return true;
            }
            let now = Instant::now();
            let is_soon = |read: Instant| now.saturating_duration_since(read) < REREAD_EVERY;
            if current.read_at.is_some_and(is_soon) {
                return false;
            }
            current.read_at = Some(now);
            current.config.reread.clone()
        };
        let Some(reread) = reread else { return false };
        let Ok(read) = tokio::task::spawn_blocking(move || reread()).await else { return false };
        let mut current = self.current();
        if current.credentials != used {
            return true;
        }
        match read.and_then(|read| self.take(&mut current, read).map_err(|error| error.message)) {
            Ok(is_other) => is_other,
            Err(error) => {
                tracing::warn!(error, "the credentials for the coordinator cannot be read again");
                false
            }
        }
    }

    /// Takes the credentials that were read again, if they differ. Addresses stay.
    fn take(&self, current: &mut Current<L>, read: ClientConfig) -> Result<bool, ServiceError> {
        let old = &current.config;
        if (&old.ca, &old.token) == (&read.ca, &read.token) {
            return Ok(false);
        }
        let config = ClientConfig { addresses: old.addresses.clone(), reread: old.reread.clone(), ..read };
        (current.lines, current.authorization) = ((self.connect)(&config)?, authorization(&config)?);
        current.config = config;
        current.credentials += 1;
        tracing::info!("the credentials for the coordinator have been replaced and read again");
        Ok(true)
    }
}

/// The authorization header of a configuration.
fn authorization(config: &ClientConfig) -> Result<Option<HeaderValue>, ServiceError> {
    let Some(token) = &config.token else { return Ok(None) };
    let value = HeaderValue::try_from(format!("{BEARER}{token}"));
    let mut value = value.map_err(|_| {
        // Without the token, because it may be almost right.
        ServiceError::new(ErrorCode::Invalid, "the token has characters that a header cannot carry")
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn with(
        token: &str,
        reread: impl Fn() -> Result<ClientConfig, String> + Send + Sync + 'static,
    ) -> ClientConfig {
        ClientConfig {
            token: Some(token.to_owned()),
            reread: Some(Arc::new(reread)),
            ..ClientConfig::new("http://127.0.0.1:1")
        }
    }

    fn token(coordinators: &Coordinators<()>) -> String {
        let authorization = coordinators.in_use().authorization.unwrap();
        String::from_utf8(authorization.as_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn files_are_read_at_most_twice_a_second_and_only_what_differs_counts() {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let found = ["old", "line\nbreak", "new"];
        let config = with("old", move || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            Ok(with(found[number], || Err("not asked".to_owned())))
        });
        let coordinators = Coordinators::new(&config, |_| Ok(())).unwrap();
        assert!(!coordinators.renew(0).await, "the same token");
        assert!(!coordinators.renew(0).await && read.load(Ordering::Relaxed) == 1, "read a moment ago");
        tokio::time::sleep(REREAD_EVERY).await;
        assert!(!coordinators.renew(0).await, "no header can carry it");
        assert_eq!(token(&coordinators), "Bearer old");
        tokio::time::sleep(REREAD_EVERY).await;
        assert!(coordinators.renew(0).await && token(&coordinators) == "Bearer new");
        assert!(coordinators.renew(0).await, "another call has read them");
        assert_eq!(read.load(Ordering::Relaxed), 3);
        let without = ClientConfig { reread: None, ..config };
        assert!(!Coordinators::new(&without, |_| Ok(())).unwrap().renew(0).await);
    }

    #[test]
    fn calls_that_fail_together_leave_one_coordinator() {
        let config = ClientConfig::of(vec!["http://a:1".to_owned(), "http://b:1".to_owned()]);
        let coordinators = Coordinators::new(&config, |_| Ok(())).unwrap();
        coordinators.leave(0);
        coordinators.leave(0);
        assert_eq!(coordinators.in_use().turn, 1);
    }
}
