//! Ctrl-C: once drains, twice aborts.

use tokio::sync::watch;

/// How much is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// Start nothing new, finish what runs.
    Drain,
    /// Drop what runs. What is durable stays.
    Abort,
}

/// Tells everybody to stop. Stopping is never taken back.
#[derive(Clone, Debug)]
pub struct StopSender(watch::Sender<Stop>);

/// Hears of it.
pub type StopReceiver = watch::Receiver<Stop>;

/// A stop that nobody asked for yet.
pub fn channel() -> (StopSender, StopReceiver) {
    let (sender, receiver) = watch::channel(Stop::No);
    (StopSender(sender), receiver)
}

impl StopSender {
    /// Asks for at least this much.
    pub fn at_least(&self, wanted: Stop) {
        self.0.send_if_modified(|stop| {
            let more = wanted > *stop;
            *stop = wanted.max(*stop);
            more
        });
    }
}

/// Turns SIGINT and SIGTERM into stops: the first drains, the second aborts.
pub fn on_signals(sender: StopSender) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        for wanted in [Stop::Drain, Stop::Abort] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            match wanted {
                Stop::Drain => eprintln!("finishing the dialogues in flight; interrupt again to drop them"),
                _ => eprintln!("dropping the dialogues in flight"),
            }
            sender.at_least(wanted);
        }
    });
    Ok(())
}
