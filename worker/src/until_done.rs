//! When a worker ends by itself: a plain state machine that takes what the coordinator says, what the servers do, and the
//! time.
//!
//! | outlook | then |
//! |---|---|
//! | work, unknown, or no answer | it stays, and all waiting begins anew |
//! | done in two answers at least [`LOOKS_APART_MIN`] apart, both asked for after its last lease | it ends |
//! | surplus for [`SURPLUS_FOR`] | it ends, if it may leave what others hold |
//! | held or later for as long as it may idle; for [`NEVER_HELD_FOR`] if it never held a lease | it ends |
//!
//! It also ends if its servers are silent for too long, or if it has not heard a coordinator for [`COORDINATOR_WAIT_MAX`]
//! and keeps no record.

use std::time::Duration;

use domain::exchange::{Departure, Outlook};
use tokio::time::Instant;

/// Minimum time between the two answers that nothing is left. Coordinators look at everything more often than that.
pub const LOOKS_APART_MIN: Duration = Duration::from_secs(5);

/// How long others must hold all that is left before a worker leaves it to them.
pub const SURPLUS_FOR: Duration = Duration::from_secs(60);

/// How long a worker waits for later work if it never held a lease: it has kept nobody waiting for its server.
pub const NEVER_HELD_FOR: Duration = Duration::from_secs(60);

/// Bounds of the time for which a worker keeps an idle server, if that is as long as loading it took.
pub const IDLE_AUTO_MIN: Duration = Duration::from_secs(5 * 60);
pub const IDLE_AUTO_MAX: Duration = Duration::from_secs(60 * 60);

/// How long a worker without records waits for a coordinator.
pub const COORDINATOR_WAIT_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// Default of [`EndRules::server_wait`].
pub const SERVER_WAIT: Duration = Duration::from_secs(1800);

/// How long a worker keeps its server when there is work later, but not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAfter {
    /// As long as loading it took, within bounds: keeping a server as long as loading it again would take costs at most
    /// twice the best choice.
    Auto,
    Exactly(Duration),
}

/// When a worker ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRules {
    pub idle_after: IdleAfter,
    /// How long its servers may be silent, at the start or later.
    pub server_wait: Duration,
    /// Whether it may leave when others hold all that is left.
    pub leave_surplus: bool,
}

/// Why a worker ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEnding {
    pub why: Departure,
    /// For people.
    pub reason: String,
}

/// The same outlook in a row of answers.
#[derive(Clone, Copy, Debug)]
struct Told {
    outlook: Outlook,
    /// The first of these answers, and the latest.
    since: Instant,
    latest: Instant,
}

/// The state of the decision.
#[derive(Debug)]
pub struct UntilDone {
    rules: EndRules,
    /// How long its server took to load; `None` until it answers.
    loaded_in: Option<Duration>,
    /// Since when none of its servers answers, if so.
    silent_since: Option<Instant>,
    /// When it last held a lease.
    held_at: Option<Instant>,
    heard_at: Instant,
    told: Option<Told>,
}

impl UntilDone {
    /// A worker that begins now; its servers are silent.
    pub fn new(rules: EndRules, now: Instant) -> Self {
        let silent_since = Some(now);
        Self { rules, loaded_in: None, silent_since, held_at: None, heard_at: now, told: None }
    }

    /// Its servers answer, and loading took so long; or none answers.
    pub fn servers(&mut self, answering: bool, loaded_in: Option<Duration>, now: Instant) {
        self.loaded_in = loaded_in.or(self.loaded_in);
        match answering {
            true => self.silent_since = None,
            false => drop(self.silent_since.get_or_insert(now)),
        }
    }

    /// It holds a lease.
    pub fn holds(&mut self, now: Instant) {
        (self.held_at, self.told) = (Some(now), None);
    }

    /// A coordinator has answered the report of `asked`; one of an old version says no outlook.
    pub fn told(&mut self, outlook: Option<Outlook>, asked: Instant, now: Instant) {
        self.heard_at = now;
        if self.held_at.is_some_and(|held| asked <= held) {
            return; // What it says is older than the last lease.
        }
        self.told = match (outlook, self.told) {
            (None | Some(Outlook::Work | Outlook::Unknown), _) => None,
            (Some(outlook), Some(told)) if is_alike(outlook, told.outlook) => {
                Some(Told { outlook, latest: now, ..told })
            }
            (Some(outlook), _) => Some(Told { outlook, since: now, latest: now }),
        };
    }

    /// No coordinator has answered.
    pub fn unanswered(&mut self) {
        self.told = None;
    }

    /// Whether the last answer was that nothing is left.
    pub fn is_done(&self) -> bool {
        self.told.is_some_and(|told| told.outlook == Outlook::Done)
    }

    /// How long it keeps its server when there is work later, but not now.
    pub fn idle_after(&self) -> Duration {
        match self.rules.idle_after {
            IdleAfter::Exactly(time) => time,
            IdleAfter::Auto => self.loaded_in.unwrap_or_default().clamp(IDLE_AUTO_MIN, IDLE_AUTO_MAX),
        }
    }

    /// Whether it ends now. `servers_trouble` says what is known of a silent server.
    pub fn ending(
        &self,
        keeps_records: bool,
        servers_trouble: impl FnOnce() -> Option<String>,
        now: Instant,
    ) -> Option<WorkerEnding> {
        let end = |why, reason: String| Some(WorkerEnding { why, reason });
        let silent = self.silent_since.map(|since| now.duration_since(since));
        if let Some(silent) = silent.filter(|silent| *silent >= self.rules.server_wait) {
            let trouble = servers_trouble().unwrap_or_else(|| "no server answers".to_owned());
            return end(Departure::Failed, format!("no server for {} s: {trouble}", silent.as_secs()));
        }
        let unheard = now.duration_since(self.heard_at);
        if unheard >= COORDINATOR_WAIT_MAX && !keeps_records {
            return end(Departure::Failed, format!("no coordinator answers for {} s", unheard.as_secs()));
        }
        let Told { outlook, since, latest } = self.told?;
        let so_long = latest.duration_since(since);
        let waited = |enough: Duration| so_long >= enough;
        match outlook {
            Outlook::Work | Outlook::Unknown => None,
            Outlook::Done if waited(LOOKS_APART_MIN) => {
                end(Departure::Done, "its models have no work left".to_owned())
            }
            Outlook::Surplus if self.rules.leave_surplus && waited(SURPLUS_FOR) => {
                end(Departure::Surplus, "other workers hold all that is left".to_owned())
            }
            Outlook::Held | Outlook::Later => {
                let enough = match self.held_at {
                    Some(_) => self.idle_after(),
                    None => self.idle_after().min(NEVER_HELD_FOR),
                };
                let (why, what) = match outlook {
                    Outlook::Held => (Departure::Held, "what is left is paused"),
                    _ => (Departure::Later, "there is no work now, but there may be later"),
                };
                waited(enough)
                    .then(|| WorkerEnding { why, reason: format!("{what}, for {} s", so_long.as_secs()) })
            }
            Outlook::Done | Outlook::Surplus => None,
        }
    }
}

/// Whether waiting for one goes on while the other is said.
fn is_alike(one: Outlook, other: Outlook) -> bool {
    let waits = |outlook| matches!(outlook, Outlook::Held | Outlook::Later);
    one == other || (waits(one) && waits(other))
}

#[cfg(test)]
mod tests;
