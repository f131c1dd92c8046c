//! The public interface of this crate.

use std::io;
use std::sync::Arc;

use axum::Router;
use coordinator::Coordinator;

use crate::routes;
use crate::site::Site;
use crate::visitor::{Login, PublicUrl};

/// The live page of a coordinator.
#[derive(Clone)]
pub struct Page(Arc<Site>);

impl Page {
    /// The page of this coordinator. `public` is its address for other machines.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(coordinator: Arc<Coordinator>, login: Login, public: Option<PublicUrl>) -> io::Result<Self> {
        Ok(Self(Arc::new(Site::new(coordinator, login, public)?)))
    }

    /// Its routes. Requests need the address of their peer as [`ConnectInfo`](axum::extract::ConnectInfo).
    pub fn router(&self) -> Router {
        routes::router(Arc::clone(&self.0))
    }

    /// Ends all live streams, because the process ends.
    pub fn close(&self) {
        self.0.close();
    }
}
