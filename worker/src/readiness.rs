//! Whether a worker can do its work, for outside observers.

use std::sync::{Arc, Mutex, PoisonError};

/// Whether a worker can do its work. Clones share the state: the worker sets it, its process reports it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<Result<(), String>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Err("it has not reached a coordinator yet".to_owned()))))
    }
}

impl Readiness {
    /// Whether it is ready.
    ///
    /// # Errors
    /// What keeps it from working.
    pub fn get(&self) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What keeps it from working, if anything does.
    pub(crate) fn set(&self, trouble: Option<&str>) {
        let state = trouble.map_or(Ok(()), |trouble| Err(trouble.to_owned()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_not_ready_before_it_says_so_and_says_why_it_is_not() {
        let readiness = Readiness::default();
        assert!(readiness.get().unwrap_err().contains("coordinator"));
        readiness.set(None);
        assert_eq!(readiness.clone().get(), Ok(()));
        readiness.set(Some("no server"));
        assert_eq!(readiness.get(), Err("no server".to_owned()));
    }
}
