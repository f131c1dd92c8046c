//! The live page of a coordinator: its runs, their progress and results, the dialogues behind every number, its workers.
//!
//! Everything essential is rendered here and works without JavaScript; a script adds movement and sorting. `admission`
//! decides who is served, by `session`; `routes` answers requests with what `cache` holds of what `render` makes: everybody
//! who looks at the same thing shares one computation, and nothing is computed while nobody looks. Reading and steering go through
//! [`Access`](coordinator::access::Access), so a caller may do here what it may do over gRPC, and nothing else.

mod admission;
mod assets;
mod cache;
mod intervals;
mod page;
mod render;
mod routes;
mod section;
mod session;
mod site;
mod stream;
mod visitor;

pub use page::Page;
pub use visitor::{InvalidUrl, Login, PublicUrl};
