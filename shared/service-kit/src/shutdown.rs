//! Shutdown in two steps: the first signal drains, the second aborts.

use tokio::sync::watch;

/// The stage of a shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Keep running.
    #[default]
    No,
    /// Start nothing new, finish work in progress.
    Drain,
    /// Drop work in progress. Durable data stays.
    Abort,
}

/// A signal that asks for a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Requests a shutdown, which cannot be revoked.
#[derive(Clone, Debug)]
pub struct StopSender(watch::Sender<Stop>);

/// Observes the shutdown.
pub type StopReceiver = watch::Receiver<Stop>;

/// Creates both halves.
pub fn channel() -> (StopSender, StopReceiver) {
    let (sender, receiver) = watch::channel(Stop::No);
    (StopSender(sender), receiver)
}

impl StopSender {
    /// Requests at least this stage.
    pub fn at_least(&self, wanted: Stop) {
        self.0.send_if_modified(|stop| {
            let more = wanted > *stop;
            *stop = wanted.max(*stop);
            more
        });
    }
}

/// Waits until at least this stage is requested, or the requester is gone.
pub async fn reached(mut receiver: StopReceiver, wanted: Stop) {
    let _ = receiver.wait_for(|stop| *stop >= wanted).await;
}

/// Turns SIGINT and SIGTERM into shutdown requests: the first drains, the second aborts, further ones change nothing.
/// Each is also passed to `say` with its signal, to print a message.
///
/// # Errors
/// The handlers cannot be installed.
pub fn on_signals(
    sender: StopSender,
    say: impl Fn(Stop, StopSignal) + Send + 'static,
) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        for wanted in [Stop::Drain, Stop::Abort] {
            let signal = tokio::select! {
                _ = interrupt.recv() => StopSignal::Interrupt,
                _ = terminate.recv() => StopSignal::Terminate,
            };
            // First, so that whoever is stopped finds it said.
            say(wanted, signal);
            sender.at_least(wanted);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn stopping_is_never_taken_back() {
        let (sender, mut receiver) = channel();
        assert_eq!(*receiver.borrow_and_update(), Stop::No);
        sender.at_least(Stop::Abort);
        assert_eq!(*receiver.borrow_and_update(), Stop::Abort);
        sender.at_least(Stop::Drain);
        assert_eq!(*receiver.borrow(), Stop::Abort);
        assert!(!receiver.has_changed().unwrap(), "what changes nothing wakes nobody");
    }

    #[tokio::test]
    async fn more_than_what_is_waited_for_is_enough() {
        let (sender, receiver) = channel();
        sender.at_least(Stop::Abort);
        reached(receiver.clone(), Stop::Drain).await;
        drop(sender);
        reached(receiver, Stop::Abort).await;
    }

    #[tokio::test]
    async fn the_first_signal_drains_and_the_second_aborts() {
        let (sender, receiver) = channel();
        let said = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&said);
        on_signals(sender, move |stop, signal| hear.lock().unwrap().push((stop, signal))).unwrap();
        let said_then = [(Stop::Drain, StopSignal::Terminate), (Stop::Abort, StopSignal::Interrupt)];
        for (signal, (expected, _)) in ["-TERM", "-INT"].into_iter().zip(said_then) {
            let id = std::process::id().to_string();
            assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
            reached(receiver.clone(), expected).await;
            assert_eq!(*receiver.borrow(), expected);
        }
        assert_eq!(*said.lock().unwrap(), said_then);
    }
}
