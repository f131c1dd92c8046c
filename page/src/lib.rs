//! The live page of a coordinator: its runs, their progress and results, the dialogues behind every number, its
//! workers.
//!
//! Everything essential is rendered here and works without JavaScript; a script adds live updates and sorting.
//! `admission` decides who is served, with the sessions of `session`. `routes` answers requests with what `cache` keeps
//! and `render` makes: all visitors of a topic share one computation, and nothing is computed while nobody looks. All
//! reading and every command goes through [`Access`](coordinator::access::Access), so a caller has the same rights here
//! as over gRPC.
//!
//! To add a page, add its path to `routes`, its content to `render` and, if it changes, a topic to `cache`.

mod admission;
mod assets;
mod cache;
mod render;
mod routes;
mod session;
mod site;
mod standings;
mod stream;

use std::io;
use std::sync::Arc;

use axum::Router;
use coordinator::Coordinator;
use proto::server::Identities;

pub use admission::PublicUrl;
use site::Site;
pub use site::{DashboardUrl, InvalidUrl, Links};

/// How a page is served.
#[derive(Clone)]
pub struct PageOptions {
    /// Who may log in; without identities nobody has to.
    pub identities: Identities,
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
        Ok(Self(Arc::new(Site::new(coordinator, options)?)))
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
