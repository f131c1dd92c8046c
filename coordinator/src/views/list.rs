//! Lists: all runs and benchmarks, all workers. What cannot be read hides nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use benchmarks::names::benchmark_of;
use domain::control::{BenchmarkView, Condition, RunPhase, WorkerView};
use domain::{ErrorCode, RunId, ServiceError, machine};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use results::RunManifest;

use crate::errors::Result;
use crate::fleet::workers::RegisteredWorkers;
use crate::records::events::RunStateFile;
use crate::records::run::{Run, priority_of};
use crate::views::Views;
use crate::views::run::{Detail, Unredacted, name_of};

/// How the names of runs begin, and as what that is read.
const TIME_IN_NAMES: &str = "20261121-143141";
const TIME_FORMAT: &str = "%Y%m%d-%H%M%S";

const END_OF_SECOND: Duration = Duration::from_millis(999);

impl Views {
    /// All benchmarks, the oldest first. Runs of judged ones that can be read stand in their views.
    pub(crate) async fn list(&self) -> Result<Vec<Unredacted>> {
        let judged = self.judged().await?;
        let readable = judged.iter().filter(|judged| judged.is_readable);
        let names: BTreeSet<&RunId> = readable.map(|judged| &judged.view.run).collect();
        let mut views = self.runs(|run| !names.contains(&benchmark_of(run))).await?;
        views.extend(judged.into_iter().map(|judged| Unredacted::without_words(judged.view)));
        views.sort_by(|a, b| (a.view.created_at, &a.view.run).cmp(&(b.view.created_at, &b.view.run)));
        Ok(views)
    }

    /// These runs; a run that is over and not loaded is shown by its last state.
    async fn runs(&self, is_listed: impl Fn(&RunId) -> bool) -> Result<Vec<Unredacted>> {
        let (mut views, workers) = (Vec::new(), self.fleet.workers().await.unwrap_or_default());
        for (id, manifest) in self.store.found().await? {
            if !is_listed(&id) {
                continue;
            }
            if let Some(run) = self.loaded.get(&id) {
                views.push(self.brief(&run, &workers).await);
                continue;
            }
            let over = match self.loaded.state(&id).await {
                Ok(state) => state.filter(|state| state.phase.is_over()),
                // Loading it will report the error.
                Err(_) => None,
            };
            views.push(match (manifest, over) {
                (Ok(manifest), Some(state)) => {
                    Unredacted::without_words(view_of_file(&id, Some(&manifest), &state))
                }
                // A run that cannot be read must not hide the others.
                (manifest, _) => match self.loaded.known(&id).await {
                    Ok(run) => self.brief(&run, &workers).await,
                    Err(error) => {
                        Unredacted::without_words(broken_view(&id, manifest.ok().as_ref(), error.message))
                    }
                },
            });
        }
        Ok(views)
    }

    async fn brief(&self, run: &Arc<Run>, workers: &RegisteredWorkers) -> Unredacted {
        let view = self.of_run(run, workers, Detail::Brief).await;
        Unredacted { view, protected: run.manifest.protected }
    }

    /// The view of an existing run that cannot be loaded, with the reason.
    ///
    /// # Errors
    /// The run does not exist, or this cannot be determined now.
    pub(crate) async fn view_of_broken(&self, id: &RunId, error: ServiceError) -> Result<BenchmarkView> {
        if error.code == ErrorCode::NotFound || error.code.is_transient() {
            return Err(error);
        }
        match self.store.manifest(id).await {
            // Not a valid run name.
            Err(invalid) if invalid.code == ErrorCode::Invalid => Err(invalid),
            manifest => Ok(broken_view(id, manifest.ok().flatten().as_ref(), error.message)),
        }
    }

    /// The workers, by name, then those that were lost in the last hour.
    pub(crate) async fn workers(&self) -> Result<Vec<WorkerView>> {
        let workers = self.fleet.workers().await?.members;
        // The store's clock may differ from ours: the latest heartbeat defines the present.
        let lost = self.fleet.lost();
        let seen = workers.iter().map(|member| member.seen_ms).chain(lost.iter().map(|lost| lost.seen_ms));
        let now_ms = seen.max().unwrap_or_default();
        let now_ms = now_ms.max(u64::try_from(machine::now().as_millisecond()).unwrap_or_default());
        let lost = lost.into_iter().map(|lost| WorkerView {
            status: Arc::new(lost.shown()),
            worker: lost.worker,
            seen_ms_ago: now_ms.saturating_sub(lost.seen_ms),
            draining: false,
        });
        let workers = workers.into_iter().map(|member| WorkerView {
            status: member.status,
            worker: member.worker,
            seen_ms_ago: now_ms.saturating_sub(member.seen_ms),
            draining: member.draining,
        });
        Ok(workers.chain(lost).collect())
    }
}

/// The view of a run that is not loaded, from the sink.
pub(crate) fn view_of_file(
    run: &RunId,
    manifest: Option<&RunManifest>,
    state: &RunStateFile,
) -> BenchmarkView {
    BenchmarkView {
        run: run.clone(),
        name: manifest.map(name_of).unwrap_or_default(),
        phase: state.phase,
        created_at: manifest.map_or(Timestamp::UNIX_EPOCH, |manifest| manifest.created_at),
        planned: manifest.map_or(0, |manifest| manifest.planned_dialogues),
        scored: state.scored,
        failed: state.failures.iter().map(|(_, count)| count).sum(),
        failures: state.failures.clone(),
        priority: manifest.map_or(0, |manifest| priority_of(&manifest.configuration).get()),
        ..BenchmarkView::default()
    }
}

/// The view of a run or judged benchmark of which at most the manifest is readable.
pub(crate) fn broken_view(run: &RunId, manifest: Option<&RunManifest>, trouble: String) -> BenchmarkView {
    let state = RunStateFile { phase: RunPhase::Paused, ..RunStateFile::default() };
    let view = view_of_file(run, manifest, &state);
    let created_at = match manifest {
        Some(_) => view.created_at,
        None => time_in(run).unwrap_or_default(),
    };
    BenchmarkView { condition: Some(Condition::Unreadable), trouble: Some(trouble), created_at, ..view }
}

/// When a run was planned according to its name, which most runs have from that second. The end of the second counts: a run that
/// cannot be read stays the latest one, so that nobody gets an older one of the same second in its place.
fn time_in(run: &RunId) -> Option<Timestamp> {
    let named = run.as_str().get(..TIME_IN_NAMES.len())?;
    let second = DateTime::strptime(TIME_FORMAT, named).ok()?.to_zoned(TimeZone::UTC).ok()?;
    second.timestamp().checked_add(END_OF_SECOND).ok()
}
