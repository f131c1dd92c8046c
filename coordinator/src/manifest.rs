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
        other: serde_json::Map::new(),
    })
}

/// A fresh name for a run. Names begin with their time, so that lists are in order of time; the rest tells runs of one second apart.
pub fn new_name(now: Timestamp) -> RunId {
    let random = domain::RecordId::random();
    let tail = random.as_str().rsplit('-').next().and_then(|part| part.get(..6)).unwrap_or("000000");
    RunId::new(format!("{}-{tail}", now.strftime("%Y%m%d-%H%M%S")))
}
