//! Checks by `INFO` whether a Redis server can hold the queue.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// Checks one server's `INFO`.
///
/// # Errors
/// [`Error::Unfit`] if the queue would lose data or could not work; less serious findings are warnings.
pub(super) fn judge(info: &str, through_cluster: bool) -> Result<Vec<String>> {
    let fields: HashMap<&str, &str> =
        info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let unfit = |message: String| Err(Error::Unfit { message });

    let version = field("redis_version");
    // Valkey reports `redis_version:7.2.4` for compatibility, and its own version beside it.
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < 7 {
        return unfit(format!("it is version `{version}`; Redis 7 or Valkey is needed"));
    }
    let policy = field("maxmemory_policy");
    if policy != "noeviction" {
        return unfit(format!(
            "maxmemory-policy is `{policy}`: under memory pressure the server would silently delete parts of the queue. \
             Set `maxmemory-policy noeviction` (CONFIG SET maxmemory-policy noeviction, and in redis.conf)"
        ));
    }
    if matches!(field("role"), "slave" | "replica") {
        return unfit(
            "it is a replica; give the address of the primary, or a `redis+sentinel://` address".into(),
        );
    }
    if field("cluster_enabled") == "1" && !through_cluster {
        return unfit("it is a node of a cluster; give a `redis+cluster://` address".into());
    }
    let mut warnings = Vec::new();
    if field("aof_enabled") != "1" {
        warnings.push(
            "Redis keeps no append-only file: a restart loses the queue since its last snapshot, and coordinators rebuild \
             it from the record log, which takes a moment. Set `appendonly yes` to avoid that"
                .to_owned(),
        );
    }
    if field("aof_last_write_status") == "err" || field("rdb_last_bgsave_status") == "err" {
        warnings.push("Redis reports that its last write to disk failed: check its disk".to_owned());
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n\
        aof_enabled:1\r\naof_last_write_status:ok\r\ncluster_enabled:0\r\n";

    #[test]
    fn servers_are_judged_by_what_they_say() {
        assert_eq!(judge(GOOD, false).unwrap(), [""; 0]);
        let without = judge(&GOOD.replace("aof_enabled:1", "aof_enabled:0"), false).unwrap();
        assert!(without.len() == 1 && without[0].contains("appendonly yes"));
        for (from, to, says) in [
            ("7.0.15", "6.2.1", "Redis 7"),
            ("noeviction", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"),
            ("role:master", "role:slave", "replica"),
            ("cluster_enabled:0", "cluster_enabled:1", "redis+cluster://"),
        ] {
            let refused = judge(&GOOD.replace(from, to), false).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
