//! Names of keys. `scripts/lib.lua` describes the layout of a run's keys and derives them all from the one key named
//! here.

use domain::{DialogueKey, RunId};

/// Iterations whose records share one hash. A hash of up to 128 short fields is stored as one compact list (the
/// default of `hash-max-listpack-entries`), about a fifth of what a field costs in a large hash.
const ITERATIONS_PER_CELL: u32 = 100;

/// The set of the names of all runs. Each run has its own hash tag, so this cannot be one of a run's keys.
pub(super) const RUNS: &str = "kgf:runs";

/// Which record store the queue belongs to.
pub(super) const OWNER: &str = "kgf:store";

/// The time at which a coordinator last asked for it.
pub(super) const CLOCK: &str = "kgf-clock";

/// The keys of `scripts/workers_lib.lua`, in its order.
pub(super) const WORKERS: [&str; 6] = [
    "kgf-workers:{all}:expiry",
    "kgf-workers:{all}:info",
    "kgf-workers:{all}:seen",
    "kgf-workers:{all}:draining",
    "kgf-workers:{all}:instance",
    "kgf-workers:{all}:identity",
];

/// The keys of `scripts/pools_lib.lua`, in its order.
pub(super) const POOLS: [&str; 2] = ["kgf-pools:{all}:expiry", "kgf-pools:{all}:info"];

/// The hash with the status of a run. The braces make the run's name the hash tag, so a cluster keeps all of its keys
/// on one node.
pub(super) fn run(run: &RunId) -> String {
    format!("kgf:{{{run}}}:run")
}

/// The cell of a dialogue within its run. It begins with the length of the model's label, because labels may contain
/// colons: (`a:b`, `c`) and (`a`, `b:c`) must differ.
pub(super) fn cell(key: &DialogueKey) -> String {
    let model = key.model.as_str();
    format!("{}:{model}:{}:{}", model.len(), key.task, key.iteration / ITERATIONS_PER_CELL)
}

/// The bucket of a rate budget.
pub(super) fn rate(bucket: &str) -> String {
    format!("kgf-rate:{bucket}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str, task: &str, iteration: u32) -> DialogueKey {
        DialogueKey { model: model.into(), task: task.into(), iteration }
    }

    #[test]
    fn cells_differ_where_dialogues_do() {
        assert_eq!(cell(&key("m", "t", 0)), cell(&key("m", "t", 99)));
        assert_ne!(cell(&key("m", "t", 99)), cell(&key("m", "t", 100)));
        assert_ne!(cell(&key("a:b", "c", 0)), cell(&key("a", "b:c", 0)));
        assert_eq!(run(&RunId::new("2026")), "kgf:{2026}:run");
    }
}
