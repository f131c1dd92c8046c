//! Where benchmarks are in the sink: one without judges is its run, a judged one has documents of its own.

use std::collections::BTreeSet;

use benchmarks::{Derivation, Judging, RunName, kinds, names};
use domain::control::RunPhase;
use domain::{ErrorCode, ModelLabel, ModelSpec, RunId, ServiceError, machine};
use jiff::Timestamp;
use results::manifest::{Alteration, without_key_names};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::benchmarks::Benchmarks;
use crate::benchmarks::summary::ModelSummary;
use crate::errors::{Result, conflict, internal, not_found};
use crate::plan::configuration::Configuration;
use crate::records::store::{CHANGES_MAX, PIPELINES, Revised};

/// Version of the documents that are written, and the newest that is read.
const VERSION: u32 = 1;

/// Maximum length of a chain of pipelines that reuse each other's verdicts.
pub(crate) const CHAIN_MAX: usize = 16;

/// Maximum number of revisions of a manifest.
const REVISIONS_MAX: u32 = 1_000;

/// A revision of a pipeline's manifest, written once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BenchmarkDocument {
    /// [`VERSION`] of the writer.
    version: u32,
    /// From 1.
    pub revision: u32,
    /// When it was written.
    pub created_at: Timestamp,
    /// Version of kgfleet that wrote it.
    kgfleet: String,
    /// The configuration, resolved.
    pub configuration: Value,
    /// [`results::manifest::hash`] of it.
    pub configuration_hash: String,
    /// Hash of the pack that the models under test are asked from.
    pub pack_hash: String,
    /// [`questions_hash`] of both.
    questions_hash: String,
    /// [`questions_hash`] without the names of keys, where an archive [left them out](Self::without_key_names).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keyless_hash: Option<String>,
}

impl BenchmarkDocument {
    /// The document without the names of keys, for other people: which variables and files hold keys is private. It keeps the
    /// hashes of the whole configuration. `None` if it names no key.
    pub(crate) fn without_key_names(&self) -> Option<Self> {
        let configuration = without_key_names(&self.configuration)?;
        let keyless_hash = Some(questions_hash(&configuration, &self.pack_hash));
        Some(Self { configuration, keyless_hash, ..self.clone() })
    }

    /// Whether both have the same configuration; one of them may lack the names of keys.
    pub(crate) fn has_configuration_of(&self, other: &Self) -> bool {
        let keyless = |document: &Self| {
            without_key_names(&document.configuration).unwrap_or_else(|| document.configuration.clone())
        };
        keyless(self) == keyless(other)
    }

    /// What in it is not as it was written.
    fn alteration(&self) -> Option<Alteration> {
        let is_keyless = || without_key_names(&self.configuration).is_none();
        let found = || questions_hash(&self.configuration, &self.pack_hash);
        if self.keyless_hash.as_ref().is_some_and(|stored| is_keyless() && found() == *stored) {
            return None;
        }
        if results::manifest::hash(&self.configuration) != self.configuration_hash {
            return Some(Alteration::Configuration);
        }
        (found() != self.questions_hash).then_some(Alteration::Pack)
    }
}

/// Hash of everything that decides what is asked.
fn questions_hash(configuration: &Value, pack_hash: &str) -> String {
    results::manifest::hash(&serde_json::json!([configuration, pack_hash]))
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JudgedState {
    /// Never [`RunPhase::Preparing`].
    pub phase: RunPhase,
    /// Whether it was submitted to a fleet.
    #[serde(default)]
    pub fleet: bool,
    /// Whether it is being removed. That is not undone: nobody derives any more, and the coordinators of a fleet that come
    /// upon it go on with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Whether its runs have perhaps not all been told of its phase: who comes upon it goes on with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub telling: bool,
    /// Dialogues planned, scored and not scored when it was last over.
    #[serde(default)]
    pub counts: [u64; 3],
    /// What came out when it was last over, by model: shown without reading a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<ModelSummary>,
}

impl JudgedState {
    /// Sees that a pipeline is not being removed.
    pub(crate) fn expect_kept(&self, name: &RunId) -> Result<()> {
        if self.removed {
            return Err(conflict(format!(
                "pipeline {name} is being removed; `kgfleet rm {name} --force` goes on with that if it was interrupted"
            )));
        }
        Ok(())
    }
}

/// What a name names.
#[derive(Debug)]
pub(crate) enum Benchmark {
    /// A run: a benchmark without judges, or a part of a judged one. Whether there is one of this name, its folder says.
    Run(RunId),
    Judged(Box<JudgedBenchmark>),
}

/// A judged benchmark according to its newest manifest.
#[derive(Clone)]
pub(crate) struct JudgedBenchmark {
    pub name: RunId,
    /// When its first manifest was written.
    pub begun: Timestamp,
    pub manifest: BenchmarkDocument,
    pub configuration: Configuration,
    pub judging: &'static Judging,
}

/// A judged benchmark, its state, and the number of that revision of it.
pub(crate) struct StatedBenchmark {
    pub benchmark: JudgedBenchmark,
    pub revision: u32,
    pub state: JudgedState,
}

impl std::fmt::Debug for JudgedBenchmark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "pipeline {} of kind {}",
            self.name,
            self.configuration.pipeline.as_deref().unwrap_or_default()
        )
    }
}

impl JudgedBenchmark {
    /// A pipeline from a checked configuration.
    pub(crate) fn new(
        name: RunId,
        configuration: Configuration,
        pack_hash: &str,
        revision: u32,
    ) -> Result<Self> {
        let configuration = serde_json::to_value(&configuration).map_err(internal)?;
        let manifest = BenchmarkDocument {
            version: VERSION,
            revision,
            created_at: machine::now(),
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            configuration_hash: results::manifest::hash(&configuration),
            questions_hash: questions_hash(&configuration, pack_hash),
            configuration,
            pack_hash: pack_hash.to_owned(),
            keyless_hash: None,
        };
        Self::of(name, manifest.created_at, manifest)
    }

    pub(crate) fn of(name: RunId, begun: Timestamp, manifest: BenchmarkDocument) -> Result<Self> {
        if manifest.version > VERSION {
            return Err(conflict(format!(
                "pipeline {name} was written by a newer kgfleet ({}); use that one",
                manifest.kgfleet
            )));
        }
        if let Some(alteration) = manifest.alteration() {
            return Err(conflict(format!(
                "the manifest of pipeline {name} was altered after it was planned: {}; put back its files \
                 `{PIPELINES}/{name}.*` from a backup",
                alteration.what()
            )));
        }
        let configuration: Configuration = serde_json::from_value(manifest.configuration.clone())
            .map_err(|error| internal(format!("pipeline {name}: its configuration: {error}")))?;
        let kind = kinds::find(configuration.pipeline.as_deref());
        let judging = kind.and_then(|kind| kind.judging_in(configuration.edition)).ok_or_else(|| {
            conflict(format!("pipeline {name} is of a kind or an edition that this version does not know"))
        })?;
        Ok(Self { name, begun, manifest, configuration, judging })
    }

    /// A name for a new pipeline: the configuration's name and a hash of its questions. The same configuration has the same
    /// name.
    pub(crate) fn fresh_name(configuration: &Configuration, pack_hash: &str) -> Result<RunId> {
        // Neither decides what is asked.
        let asked = Configuration { priority: None, cap: None, ..configuration.clone() };
        let json = serde_json::to_value(asked).map_err(internal)?;
        let hash = questions_hash(&json, pack_hash);
        let short = hash.get(..6).unwrap_or_default();
        Ok(RunId::new(format!("{}-{short}", names::pipeline_slug(&configuration.name))))
    }

    /// The judge of each stage, in the order of the kind.
    pub(crate) fn judges(&self) -> Result<Vec<&ModelSpec>> {
        let judge = |stage: &benchmarks::Stage| {
            let judge = self.configuration.judges.get(stage.judge);
            judge.ok_or_else(|| {
                conflict(format!("pipeline {}: nobody is named for the judge `{}`", self.name, stage.judge))
            })
        };
        self.judging.stages.iter().map(judge).collect()
    }

    /// Every model that it may ask: those under test, and its judges.
    pub(crate) fn asks(&self) -> impl Iterator<Item = &ModelSpec> {
        self.configuration.models.iter().chain(self.configuration.judges.values())
    }

    /// The derivation of its runs.
    pub(crate) fn derivation<'a>(&'a self, judges: &'a [&'a ModelSpec]) -> Derivation<'a> {
        Derivation {
            pipeline: self.name.as_str(),
            judging: self.judging,
            judges,
            settings: &self.configuration.settings,
            wordings: &self.configuration.wordings,
        }
    }

    /// The name of the n-th run of a stage for a model.
    pub(crate) fn run_name(&self, stage: &str, model: &ModelLabel, number: u32) -> RunName {
        RunName::new(self.name.as_str(), stage, model, number)
    }
}

const MANIFEST: &str = "manifest";

fn revision_name(revision: u32) -> String {
    format!("{MANIFEST}-{revision}.json")
}

const STATE: &str = "state";

impl Benchmarks {
    /// What a name names: the judged benchmark of this name, else the run.
    pub(crate) async fn find(&self, name: &RunId) -> Result<Benchmark> {
        let judged = self.find_judged(name).await?;
        Ok(judged.map_or_else(|| Benchmark::Run(name.clone()), |found| Benchmark::Judged(Box::new(found))))
    }

    /// The judged benchmarks with their states. One that cannot be read hides no other.
    pub(crate) async fn all_judged(&self) -> Result<Vec<(RunId, Result<StatedBenchmark>)>> {
        let mut all = Vec::new();
        for name in self.store.pipelines().await? {
            let read = self.stated(&name).await.transpose();
            all.extend(read.map(|read| (name, read)));
        }
        Ok(all)
    }

    async fn stated(&self, name: &RunId) -> Result<Option<StatedBenchmark>> {
        let Some(benchmark) = self.find_judged(name).await? else { return Ok(None) };
        let (revision, state) = self.revised_judged_state(name).await?;
        Ok(Some(StatedBenchmark { benchmark, revision, state }))
    }

    /// A judged benchmark in its newest revision; `None` if there is none of this name.
    pub(crate) async fn find_judged(&self, name: &RunId) -> Result<Option<JudgedBenchmark>> {
        // A run that is loaded is none; that spares asking the sink.
        if !names::is_pipeline_name(name.as_str()) || self.loaded.get(name).is_some() {
            return Ok(None);
        }
        let mut found: Option<(Timestamp, BenchmarkDocument)> = None;
        for revision in 1..=REVISIONS_MAX {
            match self.store.document::<BenchmarkDocument>(name, &revision_name(revision)).await? {
                Some(newer) => found = Some((found.map_or(newer.created_at, |(begun, _)| begun), newer)),
                None => break,
            }
        }
        found.map(|(begun, manifest)| JudgedBenchmark::of(name.clone(), begun, manifest)).transpose()
    }

    /// A judged benchmark that is asked for by its name.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(crate) async fn expect_judged(&self, name: &RunId) -> Result<JudgedBenchmark> {
        self.find_judged(name).await?.ok_or_else(|| not_found(format!("there is no pipeline {name}")))
    }

    /// Whether nobody has extended a pipeline since it was read.
    pub(crate) async fn is_newest(&self, pipeline: &JudgedBenchmark) -> Result<bool> {
        let next = revision_name(pipeline.manifest.revision + 1);
        let next: Option<IgnoredAny> = self.store.document(&pipeline.name, &next).await?;
        Ok(next.is_none())
    }

    /// Whether a pipeline was removed since it was read, or is being removed: nothing may be created for it any more.
    pub(crate) async fn is_gone(&self, pipeline: &JudgedBenchmark) -> Result<bool> {
        Ok(self.judged_state(&pipeline.name).await?.removed || !self.is_there(pipeline).await?)
    }

    /// Whether a pipeline has its documents still: another one of its name was begun at another time.
    pub(crate) async fn is_there(&self, pipeline: &JudgedBenchmark) -> Result<bool> {
        let first = self.store.document::<BenchmarkDocument>(&pipeline.name, &revision_name(1)).await?;
        Ok(first.is_some_and(|first| first.created_at == pipeline.begun))
    }

    /// Writes the revision of an extended pipeline; `false` if one of this number exists.
    ///
    /// # Errors
    /// Somebody has removed the pipeline meanwhile: what was written is removed again.
    pub(crate) async fn extend_by(&self, next: &JudgedBenchmark, old: &JudgedBenchmark) -> Result<bool> {
        if !self.write_revision(next).await? {
            return Ok(false);
        }
        // Whoever removes marks the pipeline first and looks for its documents then: one of both sees the other.
        if self.is_gone(old).await? {
            self.store.remove_document(&old.name, &revision_name(next.manifest.revision)).await?;
            return Err(not_found(format!("pipeline {} was removed", old.name)));
        }
        Ok(true)
    }

    /// Writes a revision; `false` if one of this number exists.
    pub(crate) async fn write_revision(&self, pipeline: &JudgedBenchmark) -> Result<bool> {
        let content = serde_json::to_vec_pretty(&pipeline.manifest).map_err(internal)?;
        let name = revision_name(pipeline.manifest.revision);
        self.health.note_sink(self.store.create_document(&pipeline.name, &name, content).await)
    }

    /// Removes every document of a pipeline: its history, then the newest revision first, so that what is left after a
    /// crash is a pipeline as it was, and being removed.
    pub(crate) async fn remove_documents(&self, name: &RunId) -> Result<()> {
        self.remove_history(name).await?;
        self.store.remove_revisions(name, MANIFEST).await?;
        self.store.remove_revisions(name, STATE).await
    }

    pub(crate) async fn judged_state(&self, name: &RunId) -> Result<JudgedState> {
        Ok(self.revised_judged_state(name).await?.1)
    }

    /// The state of a pipeline, with the number of its revision.
    pub(crate) async fn revised_judged_state(&self, name: &RunId) -> Result<(u32, JudgedState)> {
        let Revised { revision, content } = self.store.revised_document(name, STATE).await?;
        Ok((revision, content.unwrap_or_default()))
    }

    /// Writes the state that follows this revision; `false` if another command was quicker.
    ///
    /// # Errors
    /// Somebody has removed the pipeline meanwhile: what was written is removed again.
    pub(crate) async fn revise_judged_state(
        &self,
        name: &RunId,
        after: u32,
        state: &JudgedState,
    ) -> Result<bool> {
        if !self.health.note_sink(self.store.revise_document(name, STATE, after, state).await)? {
            return Ok(false);
        }
        // Whoever removes a pipeline removes its first manifest before its states: one of both sees the other.
        let first: Option<IgnoredAny> = self.store.document(name, &revision_name(1)).await?;
        if first.is_none() {
            self.store.remove_revisions(name, STATE).await?;
            return Err(not_found(format!("pipeline {name} was removed")));
        }
        Ok(true)
    }

    /// Changes the state of a pipeline to what `decide` makes of the newest one, unless that is nothing; returns the number of
    /// the revision that was written. `decide` is asked again where another command was quicker.
    pub(crate) async fn change_judged_state(
        &self,
        name: &RunId,
        decide: impl Fn(JudgedState) -> Result<Option<JudgedState>>,
    ) -> Result<Option<u32>> {
        for _ in 0..CHANGES_MAX {
            let (revision, state) = self.revised_judged_state(name).await?;
            let Some(state) = decide(state)? else { return Ok(None) };
            if self.revise_judged_state(name, revision, &state).await? {
                return Ok(Some(revision + 1));
            }
        }
        let message = format!("the state of pipeline {name} is being changed by others");
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    /// A pipeline and those whose answers and verdicts it reuses, the nearest first.
    pub(crate) async fn chain_of(&self, pipeline: &JudgedBenchmark) -> Result<Vec<JudgedBenchmark>> {
        let mut chain = vec![pipeline.clone()];
        let mut seen = BTreeSet::from([pipeline.name.clone()]);
        while let Some(base) = chain.last().and_then(|last| last.configuration.reuse.clone()) {
            let base = RunId::new(base);
            if chain.len() == CHAIN_MAX || !seen.insert(base.clone()) {
                return Err(conflict(format!(
                    "pipeline {}: too many take over from each other",
                    pipeline.name
                )));
            }
            let found = self.find_judged(&base).await?;
            chain.push(found.ok_or_else(|| {
                conflict(format!(
                    "pipeline {}: there is no pipeline {base} to take answers from",
                    pipeline.name
                ))
            })?);
        }
        Ok(chain)
    }
}
