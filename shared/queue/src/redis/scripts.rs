//! The Lua scripts. Each is one atomic step. They are called by hash, and loaded if the server does not know them
//! (after a restart, a failover or `SCRIPT FLUSH`).

use std::sync::LazyLock;

use ::redis::{FromRedisValue, Script, Value};

use crate::error::{Error, Result};

/// A script assembled from its parts.
type Lazy = LazyLock<Script>;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $($part:literal)+;)*) => { $(
        $(#[$doc])*
        pub(super) static $name: Lazy =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("scripts/", $part)), "\n"),+)));
    )* };
}

scripts! {
    BIND = "bind.lua";
    CREATE = "lib.lua" "create.lua";
    FORGET = "lib.lua" "forget.lua";
    SET_STATE = "lib.lua" "guard.lua" "set_state.lua";
    ADD_UNITS = "lib.lua" "guard.lua" "add_units.lua";
    LEASE = "lib.lua" "guard.lua" "lease.lua";
    RENEW = "lib.lua" "guard.lua" "renew.lua";
    RELEASE = "lib.lua" "guard.lua" "release.lua";
    FINISH = "lib.lua" "guard.lua" "finish.lua";
    REAP = "lib.lua" "guard.lua" "reap.lua";
    TICKETS = "lib.lua" "guard.lua" "tickets.lua";
    COMMIT = "lib.lua" "guard.lua" "commit.lua";
    COMMITTED = "lib.lua" "guard.lua" "committed.lua";
    COUNTS = "lib.lua" "guard.lua" "counts.lua";
    SUSPECTS = "lib.lua" "guard.lua" "suspects.lua";
    REQUEUE = "lib.lua" "guard.lua" "requeue.lua";
    PARK = "lib.lua" "guard.lua" "park.lua";
    UNPARK = "lib.lua" "guard.lua" "unpark.lua";
    HEARTBEAT = "workers_lib.lua" "heartbeat.lua";
    WORKERS = "workers_lib.lua" "workers.lua";
    DRAIN_WORKER = "workers_lib.lua" "drain_worker.lua";
    DEREGISTER = "workers_lib.lua" "deregister.lua";
    NOW = "now.lua";
    NOTE_POOLS = "pools_lib.lua" "note_pools.lua";
    POOLS = "pools_lib.lua" "pools.lua";
    TAKE_RATE = "take_rate.lua";
}

/// The answer of a script: a flat list, read from the front.
pub(super) struct ScriptAnswer {
    script: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl ScriptAnswer {
    pub(super) fn new(script: &'static str, values: Vec<Value>) -> Self {
        Self { script, values: values.into_iter() }
    }

    /// The next value.
    pub(super) fn read<T: FromRedisValue>(&mut self) -> Result<T> {
        let value = self.values.next().ok_or_else(|| self.corrupt("ends early"))?;
        T::from_redis_value(value).map_err(|error| self.corrupt(&error.to_string()))
    }

    /// Reads records until nothing is left.
    pub(super) fn read_all<T>(mut self, mut record: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut records = Vec::new();
        while self.values.len() > 0 {
            records.push(record(&mut self)?);
        }
        Ok(records)
    }

    /// An error about this answer.
    pub(super) fn corrupt(&self, what: &str) -> Error {
        Error::Corrupt { message: format!("the answer of script `{}` {what}", self.script) }
    }
}
