//! The binary as its users have it: a data folder with a `kgfleet` to call ([`data`]), processes and their ends ([`process`]), a
//! cluster of real processes ([`cluster`]), what coordinators acknowledged ([`acknowledged`]), and texts that are kept to
//! compare ([`kept_text`]). These parts lie here because cargo
//! tells only these tests where the binary is. All others, which know no binary, are in `tests/harness`; those that the tests here
//! use are named here again, so that there is one place to look.

pub mod acknowledged;
pub mod cluster;
pub mod data;
pub mod kept_text;
pub mod process;

pub use ::harness::proxy::Proxy;
pub use ::harness::receiver::Receiver;
pub use ::harness::sim_server::{self as server, SimServer as Server};
pub use ::harness::{
    Conformance, RedisServer, SentinelServer, free_port, http, invented_graph, skip,
    skip_where_nothing_helps, terminal, wait_until,
};
pub use cluster::Cluster;
pub use data::{Data, RunOnDisk};
pub use process::{Finished, Running};

/// Four tasks that are quick to load and cheap to judge.
pub const CHEAP_TASKS: [&str; 4] =
    ["RdfFriendCount-nt-1", "RdfFriendCount-nt-2", "RdfFriendCount-turtle-1", "RdfFriendCount-turtle-2"];

/// One of them, and another with the text by which its prompts are known.
pub const NT_TASK: &str = CHEAP_TASKS[0];
pub const TURTLE_TASK: &str = CHEAP_TASKS[2];
pub const TURTLE_PROMPT: &str = "in turtle syntax";

/// A judged benchmark about these tasks: simulated models, each with its skill, and two simulated judges.
pub fn judged_facts(tasks: &[&str], iterations: u32, models: &[(&str, f64)]) -> String {
    let table = |(label, skill): &(&str, f64)| {
        format!("[[models]]\nlabel = \"{label}\"\nconnector = \"simulated\"\nskill = {skill}\n")
    };
    let models: String = models.iter().map(table).collect();
    format!(
        r#"name = "facts"
pipeline = "judged-facts"
seed = 1
iterations = {iterations}
tasks = {tasks:?}
{models}[judges.grader]
label = "grader"
connector = "simulated"
skill = 0.9
[judges.reviewer]
label = "reviewer"
connector = "simulated"
skill = 0.9
"#
    )
}

/// A task whose answers such a benchmark can judge.
pub const FACTS: &str = "FactExtractStatic";
