//! From a configuration to a run: checked, planned, written down, queued.

use std::sync::Arc;

use domain::control::{RunPhase, Submission};
use domain::{Connector, ModelSpec, RunId};
use jiff::Timestamp;
use packs::Pack;
use results::RunManifest;
use results::manifest::{MANIFEST_VERSION, PackUse, hash};

use crate::config::MAX_DIALOGUES;
use crate::configuration::Benchmark;
use crate::core::Core;
use crate::errors::{Result, conflict, internal, invalid};
use crate::plan::{Plan, outlines};
use crate::protection;
use crate::run::Run;
use crate::storage::RunStateFile;

/// What error messages call a configuration that came without a file.
const CONFIGURATION: &str = "configuration";

impl Core {
    /// Plans a run and queues it, or joins the unfinished one of the same configuration.
    pub(crate) async fn submit_run(self: &Arc<Self>, submission: Submission) -> Result<Arc<Run>> {
        let benchmark: Benchmark = serde_json::from_value(submission.configuration)
            .map_err(|error| invalid(format!("{CONFIGURATION}: {error}")))?;
        benchmark.validate(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        if self.is_shared() {
            let replays = |model: &&ModelSpec| model.connector == Connector::Replay;
            if let Some(replayed) = benchmark.models.iter().find(replays) {
                return Err(invalid(format!(
                    "model `{}` replays files of this machine, which workers elsewhere do not have; use `kgfleet run`",
                    replayed.label
                )));
            }
        } else {
            benchmark.validate_local(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        }
        let pack = self.submitted_pack(&benchmark, submission.pack).await?;
        let plan = Plan::new(&benchmark, &outlines(&pack)).map_err(|error| invalid(error.to_string()))?;
        if plan.dialogues() > MAX_DIALOGUES {
            let planned = plan.dialogues();
            return Err(invalid(format!(
                "{planned} dialogues are planned; a run may have {MAX_DIALOGUES}: split the configuration"
            )));
        }
        let manifest = new_manifest(&benchmark, &pack, &plan)?;
        if let Some(run) = self.unfinished(&manifest).await? {
            self.begin(&run).await?;
            return Ok(run);
        }
        self.storage.create(&manifest).await?;
        let run = self.known(&manifest.run).await?;
        self.begin(&run).await?;
        tracing::info!(run = %run.id(), planned = manifest.planned_dialogues, "submitted");
        Ok(run)
    }

    /// Makes a run one of this coordinator's and fills its queue.
    pub(crate) async fn begin(self: &Arc<Self>, run: &Arc<Run>) -> Result<()> {
        let state = self.storage.state(run.id()).await?.unwrap_or_default();
        // A paused run of a fleet stays paused until somebody resumes it; one of a single process was interrupted.
        let stays = self.is_shared() && state.phase == RunPhase::Paused;
        let phase = if stays { RunPhase::Paused } else { RunPhase::Active };
        let state = RunStateFile { phase, fleet: self.is_shared(), ..state };
        if !self.is_shared() {
            // The right to write the run: whoever else has it is running it.
            self.committer(run).await?;
        }
        self.change_state(run, state).await?;
        self.fill(run).await
    }

    /// Writes down where a run stands, then tells the queue.
    pub(crate) async fn change_state(&self, run: &Arc<Run>, state: RunStateFile) -> Result<()> {
        self.note_sink(self.storage.set_state(run.id(), &state).await)?;
        run.set_phase(state.phase);
        run.attend();
        let at = self.at(run).await?;
        // Where the queue was joined just now it has the state already.
        if let Some(status) = self.note_queue(self.queue.run(run.id()).await)? {
            self.set_queue_state(&at, status.state, &state).await?;
        }
        self.backlog.touch();
        Ok(())
    }

    /// The latest run of the same configuration and plan that is not over.
    async fn unfinished(&self, wanted: &RunManifest) -> Result<Option<Arc<Run>>> {
        for old in self.storage.manifests().await?.into_iter().rev() {
            let same =
                old.configuration_hash == wanted.configuration_hash && old.plan_hash == wanted.plan_hash;
            if !same {
                continue;
            }
            if self.storage.state(&old.run).await?.is_some_and(|state| state.phase.is_over()) {
                continue;
            }
            let run = self.known(&old.run).await?;
            if !run.phase().is_over() {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }
}

fn new_manifest(benchmark: &Benchmark, pack: &Pack, plan: &Plan) -> Result<RunManifest> {
    let configuration = serde_json::to_value(benchmark).map_err(internal)?;
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
        log_key: protection::new_log_key(protected).map_err(|error| conflict(error.to_string()))?,
        other: serde_json::Map::new(),
    })
}

/// Names begin with their time, so that lists are in order of time; the rest tells runs of one second apart.
fn new_name(now: Timestamp) -> RunId {
    let random = domain::RecordId::random();
    let tail = random.as_str().rsplit('-').next().and_then(|part| part.get(..6)).unwrap_or("000000");
    RunId::new(format!("{}-{tail}", now.strftime("%Y%m%d-%H%M%S")))
}
