//! How a worker is told to end: once drains, twice aborts.

use tokio::sync::watch;

/// How much is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// Begin nothing new, finish what runs within the grace period, give the rest back.
    Drain,
    /// Drop what runs, and give it back.
    Abort,
}

/// Hears of it. A sender that goes away asks for nothing.
pub type StopReceiver = watch::Receiver<Stop>;
