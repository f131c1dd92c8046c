//! A planned configuration, and its manifest.

use std::sync::Arc;

use benchmarks::kinds;
use domain::{RunId, machine};
use jiff::Timestamp;
use packs::Pack;
use results::RunManifest;
use results::manifest::{Alteration, MANIFEST_VERSION, PackUse, hash};

use crate::errors::{Result, conflict, internal, invalid};
use crate::plan::configuration::Configuration;
use crate::plan::protection;
use crate::plan::{Plan, outlines, with_iterations};

/// The field of a manifest that names the run whose answers were rejudged. Such a run has no pending dialogues.
pub(crate) const REJUDGED: &str = "rejudged_from";

/// The manifest of a run says otherwise than the plan that its configuration and pack give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manifest of run {run} {alteration}")]
pub struct NotAsPlanned {
    pub run: RunId,
    pub alteration: Alteration,
}

impl NotAsPlanned {
    /// Compares a manifest with the plan made again from it and from a pack of this hash. A plan from another pack than the
    /// manifest names says nothing about the manifest, unless it is the one that was hashed.
    ///
    /// # Errors
    /// The manifest was altered.
    pub fn check(manifest: &RunManifest, plan: &Plan, pack_hash: &str) -> std::result::Result<(), Self> {
        let altered = |alteration| Err(Self { run: manifest.run.clone(), alteration });
        let fits = plan.hash(manifest.seed, pack_hash) == manifest.plan_hash;
        let named = manifest.packs.first().map(|pack| pack.hash.as_str());
        if named != Some(pack_hash) {
            return if fits { altered(Alteration::Pack) } else { Ok(()) };
        }
        if !fits && !manifest.plan_hash.is_empty() {
            return altered(Alteration::Plan);
        }
        // Of a run that was judged again, only what had a record was planned.
        if manifest.planned_dialogues != plan.dialogues() && !manifest.other.contains_key(REJUDGED) {
            return altered(Alteration::Dialogues);
        }
        Ok(())
    }
}

/// Why the kind of a configuration cannot judge the answers to one of its tasks; `None` if it can judge all of them.
pub fn unjudgeable(configuration: &Configuration, pack: &Pack, plan: &Plan) -> Option<String> {
    let kind = kinds::find(configuration.pipeline.as_deref())?;
    let judging = kind.judging?;
    let mut tasks = plan.tasks.iter().filter_map(|planned| pack.tasks().get(planned.index));
    tasks.find_map(|task| {
        let why = (judging.refuses)(task)?;
        let (label, pack) = (&task.label, &configuration.pack);
        Some(format!(
            "{} cannot judge task {label} of pack {pack}: {why}; `tasks` of a configuration chooses among them",
            kind.name
        ))
    })
}

/// A configuration with its pack and plan.
#[derive(Clone, Debug)]
pub struct Planned {
    pub configuration: Configuration,
    pub pack: Arc<Pack>,
    pub plan: Plan,
}

impl Planned {
    /// Plans a configuration.
    pub(crate) async fn new(configuration: Configuration, pack: Arc<Pack>) -> Result<Self> {
        let plan = move || {
            let outlines = outlines(&pack);
            let plan = Plan::new(&configuration, &outlines).map_err(|error| invalid(error.to_string()))?;
            // What is stored says how much is asked, whatever the default is later.
            let configuration = with_iterations(configuration, &plan.tasks, &outlines);
            Ok(Self { configuration, pack, plan })
        };
        service_kit::aside::run(plan).await.map_err(internal)?
    }

    /// Plans a run again from its manifest.
    ///
    /// # Errors
    /// The pack is not the one from which the run was planned, this version plans it differently, or the manifest was altered.
    pub(crate) async fn again(manifest: &RunManifest, pack: Arc<Pack>) -> Result<Self> {
        let run = &manifest.run;
        let configuration = serde_json::from_value(manifest.configuration.clone())
            .map_err(|error| internal(format!("run {run}: its configuration: {error}")))?;
        let planned = Self::new(configuration, pack).await;
        let planned = planned.map_err(|error| conflict(format!("run {run}: {}", error.message)))?;
        let checked = NotAsPlanned::check(manifest, &planned.plan, planned.pack.hash().as_str());
        checked.map_err(|altered| conflict(altered.to_string()))?;
        if planned.hash() != manifest.plan_hash && !manifest.plan_hash.is_empty() {
            return Err(conflict(format!(
                "run {run} was planned from pack {} and cannot continue with pack {}: the questions would differ",
                manifest.packs.first().map_or("?", |pack| pack.hash.get(..12).unwrap_or("?")),
                planned.pack.hash().short()
            )));
        }
        Ok(planned)
    }

    /// Hash of everything that determines the questions.
    fn hash(&self) -> String {
        self.plan.hash(self.configuration.seed, self.pack.hash().as_str())
    }

    /// The manifest of a new run, under a new name.
    pub(crate) fn manifest(&self) -> Result<RunManifest> {
        let now = machine::now();
        let header = self.pack.header();
        let manifest = RunManifest {
            version: MANIFEST_VERSION,
            revision: 1,
            run: new_name(now),
            created_at: now,
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            configuration: serde_json::Value::Null,
            configuration_hash: String::new(),
            keyless_hash: None,
            plan_hash: String::new(),
            seed: self.configuration.seed,
            packs: vec![PackUse { name: header.name.clone(), hash: self.pack.hash().as_str().to_owned() }],
            planned_dialogues: 0,
            protected: header.protected,
            log_key: protection::new_log_key(header.protected)
                .map_err(|error| conflict(error.to_string()))?,
            about: None,
            other: serde_json::Map::new(),
        };
        self.written_into(manifest)
    }

    /// A manifest with this configuration and plan instead of its own.
    pub(crate) fn written_into(&self, manifest: RunManifest) -> Result<RunManifest> {
        let configuration = serde_json::to_value(&self.configuration).map_err(internal)?;
        Ok(RunManifest {
            configuration_hash: hash(&configuration),
            keyless_hash: None,
            configuration,
            plan_hash: self.hash(),
            planned_dialogues: self.plan.dialogues(),
            ..manifest
        })
    }
}

/// A new name for a run: the second in UTC, then three hexadecimal digits for the fraction of the second (in 4096ths) and
/// five random ones. So names sort by time, even within one second.
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
