//! What the tests share: a data folder with a `kgfleet` to call ([`data`]), processes and their ends ([`process`]), a
//! simulated server that tells what it was asked ([`server`]), a cluster of real processes around it ([`cluster`]), and texts that
//! are kept to compare ([`kept_text`]).

pub mod cluster;
pub mod data;
pub mod http;
pub mod kept_text;
pub mod process;
pub mod proxy;
pub mod receiver;
pub mod server;
pub mod terminal;

pub use cluster::Cluster;
pub use data::{Data, RunOnDisk};
pub use process::{Finished, Running};
pub use proxy::Proxy;
pub use receiver::Receiver;
pub use server::Server;

/// Four tasks that are quick to load and cheap to judge.
pub const CHEAP_TASKS: [&str; 4] =
    ["RdfFriendCount-nt-1", "RdfFriendCount-nt-2", "RdfFriendCount-turtle-1", "RdfFriendCount-turtle-2"];

/// One of them, and another with the text by which its prompts are known.
pub const NT_TASK: &str = CHEAP_TASKS[0];
pub const TURTLE_TASK: &str = CHEAP_TASKS[2];
pub const TURTLE_PROMPT: &str = "in turtle syntax";
