//! Runs work that blocks or computes for long aside from the async threads.
//!
//! In a simulation nothing may run beside anything else, so the work is done in its turn on the simulation's thread, after
//! others were let go first as often as the simulation says.

use domain::machine;
use tokio::task::JoinError;

/// Runs `work` on a thread that may block.
///
/// # Errors
/// The work panicked, or the runtime is shutting down.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let Some(yields) = machine::simulated().map(|machine| machine.yields()) else {
        return tokio::task::spawn_blocking(work).await;
    };
    for _ in 0..yields {
        tokio::task::yield_now().await;
    }
    Ok(work())
}
