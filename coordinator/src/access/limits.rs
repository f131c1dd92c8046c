//! Rate limits for expensive calls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, ServiceError};

use crate::errors::Result;

/// Maximum number of submissions of one identity per minute. Each is planned, stored and queued.
pub const SUBMISSIONS_PER_MINUTE: usize = 60;

const MINUTE: Duration = Duration::from_secs(60);

/// Counts submissions by identity.
#[derive(Debug, Default)]
pub(crate) struct Submissions(Mutex<HashMap<String, Vec<Duration>>>);

impl Submissions {
    /// Counts a submission, if another one is allowed now.
    pub(crate) fn take(&self, who: &str, now: Duration) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Names come from a file of identities; idle ones are forgotten.
        all.retain(|_, times| times.last().is_some_and(|last| now.saturating_sub(*last) < MINUTE));
        let times = all.entry(who.to_owned()).or_default();
        times.retain(|time| now.saturating_sub(*time) < MINUTE);
        if times.len() >= SUBMISSIONS_PER_MINUTE {
            let message =
                format!("`{who}` has submitted {SUBMISSIONS_PER_MINUTE} runs within a minute; wait");
            return Err(ServiceError::new(ErrorCode::Full, message));
        }
        times.push(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_minute_and_by_identity() {
        let (submissions, second) = (Submissions::default(), Duration::from_secs(1));
        for _ in 0..SUBMISSIONS_PER_MINUTE {
            submissions.take("a", second).unwrap();
        }
        assert_eq!(submissions.take("a", second * 60).unwrap_err().code, ErrorCode::Full);
        submissions.take("b", second).unwrap();
        submissions.take("a", second * 61).unwrap();
    }
}
