//! A sink whose calls can be made to fail.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use results::Sink;
use results::sink::{Interposed, SinkError};

/// Whether a call of this name fails.
type Fails = Box<dyn FnMut(&'static str) -> bool + Send>;

/// Lets the calls of a sink fail, as those of a network disk may, when a test says so.
#[derive(Default)]
pub(super) struct FailingSink(Mutex<Option<Fails>>);

impl FailingSink {
    /// A folder whose calls do not fail, and what lets them fail.
    pub(super) fn new(folder: &Path) -> (Sink, Arc<Self>) {
        let failing = Arc::new(Self::default());
        (Sink::new(folder).with(Arc::clone(&failing) as Arc<dyn Interposed>), failing)
    }

    /// Lets the calls fail that this says so of, from now on.
    pub(super) fn fail(&self, fails: impl FnMut(&'static str) -> bool + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(fails));
    }
}

impl Interposed for FailingSink {
    fn before<'a>(&'a self, call: &'static str, _: &'a str) -> BoxFuture<'a, Result<bool, SinkError>> {
        let fails = self.0.lock().unwrap().as_mut().is_some_and(|fails| fails(call));
        Box::pin(std::future::ready(if fails { Err(SinkError::Ended) } else { Ok(false) }))
    }
}
