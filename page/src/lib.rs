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
mod page;
mod render;
mod routes;
mod session;
mod site;
mod standings;
mod stream;

pub use links::{DashboardUrl, Links};
pub use page::{Page, PageOptions};
pub use visitor::{InvalidUrl, Login, PublicUrl};
