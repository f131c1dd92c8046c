//! Callers of a coordinator and what each may do. Tokens and certificates are not here: `proto` turns them into a
//! [`Caller`].

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
    }
}

/// An authenticated identity.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    name: String,
    roles: Vec<CallerRole>,
    workers: Option<Glob>,
    revoked: AtomicBool,
}

impl Caller {
    /// Name of every caller if no identities are configured: on one machine, or behind a proxy that authenticates.
    pub const ANYONE: &'static str = "anyone";

    /// `workers` is the pattern of worker names that the identity may use; all if absent.
    pub fn new(name: impl Into<String>, roles: impl Into<Vec<CallerRole>>, workers: Option<Glob>) -> Self {
        let (name, roles, revoked) = (name.into(), roles.into(), AtomicBool::new(false));
        Self(Arc::new(Identity { name, roles, workers, revoked }))
    }

    /// The caller if no identities are configured, with every role.
    pub fn anyone() -> Self {
        Self::new(Self::ANYONE, CallerRole::ALL, None)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn has(&self, role: CallerRole) -> bool {
        self.0.roles.contains(&role)
    }

    /// Whether it may act as this worker.
    pub fn may_be(&self, worker: &WorkerId) -> bool {
        self.0.workers.as_ref().is_none_or(|names| names.matches(worker.as_str()))
    }

    /// Revokes its rights, including in calls in progress.
    pub fn revoke(&self) {
        self.0.revoked.store(true, Ordering::Release);
    }

    pub fn is_revoked(&self) -> bool {
        self.0.revoked.load(Ordering::Acquire)
    }
}
