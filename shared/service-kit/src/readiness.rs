//! Whether a process can do its work, for outside observers.

use std::sync::{Arc, Mutex, PoisonError};

/// Whether a process can do its work, and why not. Clones share the state: the work sets it, the probe reports it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<Result<(), String>>>);

impl Readiness {
    /// Not ready yet, for this reason.
    pub fn not_yet(reason: &str) -> Self {
        Self(Arc::new(Mutex::new(Err(reason.to_owned()))))
    }

    /// Whether it is ready.
    ///
    /// # Errors
    /// What keeps it from working.
    pub fn get(&self) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets whether it is ready; returns whether that is news.
    pub fn set(&self, to: Result<(), String>) -> bool {
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), to.clone());
        before != to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_ready_before_it_says_so_and_says_why_it_is_not() {
        let readiness = Readiness::not_yet("it has not reached a coordinator yet");
        assert!(readiness.get().unwrap_err().contains("coordinator"));
        assert!(readiness.set(Ok(())));
        assert_eq!(readiness.clone().get(), Ok(()));
        assert!(readiness.set(Err("no server".to_owned())));
        assert!(!readiness.set(Err("no server".to_owned())), "said once");
        assert_eq!(readiness.get(), Err("no server".to_owned()));
    }
}
