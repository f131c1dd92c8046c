//! The live page of a coordinator: its runs, their progress and results, the dialogues behind every number, its workers.
//!
//! Everything essential is rendered here and works without JavaScript; a script adds movement and sorting. `door` decides
//! who is served, by `session`; `routes` answers requests with what `render` makes of `board`, where everybody who looks at
//! the same thing shares one computation, and nothing is computed while nobody looks. Reading and steering go through
//! [`Access`](coordinator::access::Access), so a caller may do here what it may do over gRPC, and nothing else.

mod assets;
mod board;
mod door;
mod intervals;
mod render;
mod routes;
mod session;
mod site;
mod stream;

pub use door::{InvalidUrl, Login, PublicUrl};
pub use site::Page;
