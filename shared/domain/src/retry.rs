//! Whether a failed call may be retried.

use std::time::Duration;

/// What an error says about a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The same call fails again.
    No,
    /// A temporary fault: retry after a back-off.
    Transient,
    /// The server is unreachable: keep retrying until it is back. Nothing was sent, so the request cannot be the
    /// cause.
    Unreachable,
    /// The server asks for fewer calls: retry after its delay, or after a back-off if it gives none.
    RateLimited {
        /// The delay the server asked for.
        after: Option<Duration>,
    },
}
