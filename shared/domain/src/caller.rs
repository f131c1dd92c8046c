//! Callers of a coordinator and what each may do. Tokens and certificates are not here: `proto` turns them into a
//! [`Caller`].

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::glob::Glob;
use crate::ids::WorkerId;

named! {
    /// What an identity may do.
    pub enum CallerRole {
        /// Views runs and workers. Texts of protected exercises are redacted.
        Reader = "reader",
        /// Submits and controls runs, drains workers, reads everything.
        Operator = "operator",
        /// Takes work and delivers records, under its own names.
        Worker = "worker",
        /// Asks what models have left and which workers there are, to start servers for them.
        Conductor = "conductor",
    }
}

/// An authenticated identity, and where it calls from.
#[derive(Clone, Debug)]
pub struct Caller {
    identity: Arc<Identity>,
    from: Option<IpAddr>,
}

#[derive(Debug)]
struct Identity {
    name: String,
    roles: Vec<CallerRole>,
    workers: Option<Glob>,
    open_dialogues: Option<u64>,
    revoked: AtomicBool,
}

impl Caller {
    /// Name of every caller if no identities are configured: on one machine, or behind a proxy that authenticates.
    pub const ANYONE: &'static str = "anyone";

    /// `workers` is the pattern of worker names that the identity may use; all if absent.
    pub fn new(name: impl Into<String>, roles: impl Into<Vec<CallerRole>>, workers: Option<Glob>) -> Self {
        Self::bounded(name, roles, workers, None)
    }

    /// The same; `open_dialogues` is how many its benchmarks may have without a record, without a bound if absent.
    pub fn bounded(
        name: impl Into<String>,
        roles: impl Into<Vec<CallerRole>>,
        workers: Option<Glob>,
        open_dialogues: Option<u64>,
    ) -> Self {
        let (name, roles, revoked) = (name.into(), roles.into(), AtomicBool::new(false));
        Self { identity: Arc::new(Identity { name, roles, workers, open_dialogues, revoked }), from: None }
    }

    /// The same identity, calling from this machine.
    pub fn at(&self, from: IpAddr) -> Self {
        Self { identity: Arc::clone(&self.identity), from: Some(from.to_canonical()) }
    }

    /// The machine that it calls from, as this one sees it; none within this process.
    pub fn from(&self) -> Option<IpAddr> {
        self.from
    }

    /// The caller if no identities are configured, with every role.
    pub fn anyone() -> Self {
        Self::new(Self::ANYONE, CallerRole::ALL, None)
    }

    pub fn name(&self) -> &str {
        &self.identity.name
    }

    pub fn has(&self, role: CallerRole) -> bool {
        self.identity.roles.contains(&role)
    }

    /// Whether it may act as this worker.
    pub fn may_be(&self, worker: &WorkerId) -> bool {
        self.identity.workers.as_ref().is_none_or(|names| names.matches(worker.as_str()))
    }

    /// How many dialogues without a record its benchmarks may have, if that is bounded.
    pub fn open_dialogues(&self) -> Option<u64> {
        self.identity.open_dialogues
    }

    /// Revokes its rights, including in calls in progress.
    pub fn revoke(&self) {
        self.identity.revoked.store(true, Ordering::Release);
    }

    pub fn is_revoked(&self) -> bool {
        self.identity.revoked.load(Ordering::Acquire)
    }
}
