//! Whether a failed call may be repeated.

use std::time::Duration;

/// What an error says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The same call fails again.
    No,
    /// A passing fault: repeat after a back-off.
    Transient,
    /// Nobody is there: repeat, patiently, until somebody is again. Nothing was sent, so the call cannot be at fault.
    Unreachable,
    /// The server asks for less: repeat after its delay, or after a back-off where it names none.
    RateLimited {
        /// The delay the server asked for.
        after: Option<Duration>,
    },
}
