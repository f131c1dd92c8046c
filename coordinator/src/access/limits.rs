//! Limits of what one identity may ask for.

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

/// Whether an identity that may have so many dialogues without a record may have these too.
pub(crate) fn expect_open(who: &str, bound: u64, open: u64, more: u64) -> Result<()> {
    if more == 0 || open.saturating_add(more) <= bound {
        return Ok(());
    }
    let message = format!(
        "`{who}` may have {bound} dialogues without a record (open_dialogues in the file of identities); its benchmarks have \
         {open}, and this adds {more}: wait for them, cancel one, or ask for less"
    );
    Err(ServiceError::new(ErrorCode::Full, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_nothing_is_never_too_much() {
        expect_open("a", 10, 4, 6).unwrap();
        assert_eq!(expect_open("a", 10, 5, 6).unwrap_err().code, ErrorCode::Full);
        expect_open("a", 10, 500, 0).unwrap();
        assert_eq!(expect_open("a", 10, u64::MAX, 1).unwrap_err().code, ErrorCode::Full);
    }

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
