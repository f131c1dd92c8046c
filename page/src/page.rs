//! The public interface of this crate.

use std::io;
use std::sync::Arc;

use axum::Router;
use coordinator::Coordinator;

use crate::links::Links;
use crate::routes;
use crate::site::Site;
use crate::visitor::{Login, PublicUrl};

/// How a page is served.
#[derive(Clone)]
pub struct PageOptions {
    pub login: Login,
    /// Its address for other machines.
    pub public: Option<PublicUrl>,
    pub links: Links,
}

/// The live page of a coordinator.
#[derive(Clone)]
pub struct Page(Arc<Site>);

impl Page {
    /// The page of this coordinator.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(coordinator: Arc<Coordinator>, options: PageOptions) -> io::Result<Self> {
        let PageOptions { login, public, links } = options;
        Ok(Self(Arc::new(Site::new(coordinator, login, public, links)?)))
    }

    /// Its routes. Requests carry their [`Peer`](proto::server::Peer).
    pub fn router(&self) -> Router {
        routes::router(Arc::clone(&self.0))
    }

    /// Every path, as a pattern, with a method that it takes.
    pub fn routes() -> Vec<(&'static str, &'static str)> {
        routes::routes()
    }

    /// Ends all live streams, because the process ends.
    pub fn close(&self) {
        self.0.close();
    }
}
