//! The manifest of a run that is about to begin.

use domain::RunId;
use jiff::Timestamp;
use packs::Pack;
use results::RunManifest;
use results::manifest::{MANIFEST_VERSION, PackUse, hash};

use crate::configuration::Benchmark;
use crate::plan::Plan;
use crate::protection::{self, ProtectionError};

/// A manifest that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum NewManifestError {
    /// The configuration cannot be written as JSON.
    #[error(transparent)]
    Configuration(#[from] serde_json::Error),
    /// The exercises are protected and no key can be made for their records.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
}

/// The manifest of a run of this configuration that begins now, under a fresh name.
///
/// # Errors
/// See [`NewManifestError`].
pub fn new_manifest(
    benchmark: &Benchmark,
    pack: &Pack,
    plan: &Plan,
) -> Result<RunManifest, NewManifestError> {
    let configuration = serde_json::to_value(benchmark)?;
    let now = Timestamp::now();
    let protected = pack.header().protected;
    Ok(RunManifest {
        version: MANIFEST_VERSION,
        run: new_name(now),
        created_at: now,
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        configuration_hash: hash(&configuration),
        configuration,
        plan_hash: plan.hash(benchmark.seed, pack.hash().as_str()),
        seed: benchmark.seed,
        packs: vec![PackUse { name: pack.header().name.clone(), hash: pack.hash().as_str().to_owned() }],
        planned_dialogues: plan.dialogues(),
        protected,
        log_key: protection::new_log_key(protected)?,
        about: None,
        other: serde_json::Map::new(),
    })
}

/// A fresh name for a run: its second in UTC, then three hexadecimal digits for the 4096th part of that second and five
/// random ones. So names sort by time, also those of runs that began within one second.
pub fn new_name(now: Timestamp) -> RunId {
    let part = i64::from(now.subsec_nanosecond()).max(0) * 4096 / 1_000_000_000;
    let random = domain::RecordId::random();
    let tail = random.as_str().rsplit('-').next().and_then(|digits| digits.get(..5)).unwrap_or("00000");
    RunId::new(format!("{}-{part:03x}{tail}", now.strftime("%Y%m%d-%H%M%S")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_that_begin_within_one_second_sort_by_time() {
        let second = Timestamp::from_second(1_795_000_000).unwrap();
        let names: Vec<_> = (0..20)
            .map(|step| second + jiff::SignedDuration::from_millis(step * 50))
            .map(|now| new_name(now).to_string())
            .collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(names.iter().all(|name| name.len() == "20261122-120000-fff12345".len()), "{names:?}");
    }
}
