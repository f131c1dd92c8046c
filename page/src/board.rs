//! What pages show, computed once a tick for everybody who looks, and not at all while nobody does.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coordinator::Coordinator;
use domain::control::{BenchmarkView, Control, WorkerView};
use domain::{ErrorCode, RunId, ServiceError};

use crate::intervals::Intervals;
use crate::render::{run, runs, workers};

/// Time between two computations of the same thing.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Different things kept at once: some 300 kB each of the largest runs.
const KEPT_MAX: usize = 32;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Runs,
    Run(RunId),
    /// The workers, for somebody who may drain them or may not.
    Workers {
        steers: bool,
    },
}

/// A part of a page that changes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its element.
    pub id: &'static str,
    pub html: Arc<str>,
    pub hash: u64,
}

impl Section {
    pub(crate) fn new(id: &'static str, html: maud::Markup) -> Self {
        let html = html.into_string();
        let mut hasher = DefaultHasher::new();
        html.hash(&mut hasher);
        Self { id, hash: hasher.finish(), html: html.into() }
    }
}

/// What there is to see at a moment.
#[derive(Clone, Debug)]
pub(crate) struct RunsSnapshot {
    pub title: String,
    pub sections: Vec<Section>,
    /// Whether nothing more happens.
    pub over: bool,
    /// All runs, of [`Topic::Runs`].
    pub runs: Arc<[BenchmarkView]>,
}

#[derive(Default)]
struct Kept {
    /// An error is kept as long: many who look at what cannot be read must not all wait for that, one after the other.
    latest: Option<(Instant, Result<Arc<RunsSnapshot>, ServiceError>)>,
    intervals: Intervals,
    /// Whether a name is that of a pipeline, once known.
    is_pipeline: Option<bool>,
}

type Cell = Arc<tokio::sync::Mutex<Kept>>;

/// See the module.
pub(crate) struct ViewCache {
    coordinator: Arc<Coordinator>,
    tick: Duration,
    cells: Mutex<HashMap<Topic, (Instant, Cell)>>,
}

impl ViewCache {
    /// With this time between two computations, which is [`TICK`] but in tests.
    pub(crate) fn new(coordinator: Arc<Coordinator>, tick: Duration) -> Self {
        Self { coordinator, tick, cells: Mutex::default() }
    }

    /// What there is to see, not older than a tick.
    pub(crate) async fn look(&self, topic: &Topic) -> Result<Arc<RunsSnapshot>, ServiceError> {
        let cell = self.cell(topic);
        // Whoever comes while it is computed waits for that.
        let mut kept = cell.lock().await;
        if let Some((at, snapshot)) = &kept.latest
            && at.elapsed() < self.tick
        {
            return snapshot.clone();
        }
        let made = self.make(topic, &mut kept).await.map(Arc::new);
        if made.as_ref().is_err_and(|error| error.code == ErrorCode::NotFound) {
            self.forget(topic);
        }
        kept.latest = Some((Instant::now(), made.clone()));
        made
    }

    /// Sees to it that the next look computes: something was done.
    pub(crate) fn forget(&self, topic: &Topic) {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }

    fn cell(&self, topic: &Topic) -> Cell {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if !cells.contains_key(topic) && cells.len() >= KEPT_MAX {
            let oldest = cells.iter().min_by_key(|(_, (used, _))| *used).map(|(topic, _)| topic.clone());
            oldest.and_then(|topic| cells.remove(&topic));
        }
        let (used, cell) = cells.entry(topic.clone()).or_insert_with(|| (Instant::now(), Cell::default()));
        *used = Instant::now();
        Arc::clone(cell)
    }

    async fn make(&self, topic: &Topic, kept: &mut Kept) -> Result<RunsSnapshot, ServiceError> {
        match topic {
            Topic::Runs => {
                let runs: Arc<[BenchmarkView]> = self.coordinator.runs().await?.into();
                let shown = Arc::clone(&runs);
                let sections = rendered(move || runs::sections(&shown)).await?;
                Ok(RunsSnapshot { title: "Runs".to_owned(), sections, over: false, runs })
            }
            Topic::Run(id) => self.make_run(id, kept).await,
            Topic::Workers { steers } => {
                let (workers, steers): (Vec<WorkerView>, bool) = (self.coordinator.workers().await?, *steers);
                let sections = rendered(move || workers::sections(&workers, steers)).await?;
                Ok(RunsSnapshot { title: "Workers".to_owned(), sections, over: false, runs: Arc::new([]) })
            }
        }
    }

    async fn make_run(&self, id: &RunId, kept: &mut Kept) -> Result<RunsSnapshot, ServiceError> {
        let view = self.coordinator.run(id).await?;
        let is_pipeline = match kept.is_pipeline {
            Some(known) => known,
            None => *kept.is_pipeline.insert(self.coordinator.pipeline(id).await?.is_some()),
        };
        let stages = if is_pipeline {
            let all = Box::pin(self.look(&Topic::Runs)).await?;
            let prefix = format!("{id}.");
            all.runs.iter().filter(|run| run.run.as_str().starts_with(&prefix)).cloned().collect()
        } else {
            // Whoever waits for intervals sees them with a later tick.
            kept.intervals.keep_up(&self.coordinator, id, view.done());
            Vec::new()
        };
        let intervals = kept.intervals.known();
        let is_settled = is_pipeline || kept.intervals.are_settled(view.done());
        let (title, over) = (
            format!("{} {id}", if is_pipeline { "Pipeline" } else { "Run" }),
            view.phase.is_over() && is_settled,
        );
        let shown = run::Shown { view, intervals, stages, is_pipeline };
        let sections = rendered(move || run::sections(&shown)).await?;
        Ok(RunsSnapshot { title, sections, over, runs: Arc::new([]) })
    }
}

/// Renders beside the threads that answer.
async fn rendered(
    make: impl FnOnce() -> Vec<Section> + Send + 'static,
) -> Result<Vec<Section>, ServiceError> {
    let made = tokio::task::spawn_blocking(make).await;
    made.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))
}

#[cfg(test)]
mod tests {
    use coordinator::CoordinatorOptions;
    use futures::future::join_all;

    use super::*;

    fn board(data: &tempfile::TempDir, tick: Duration) -> ViewCache {
        let config = CoordinatorOptions { tends: false, ..CoordinatorOptions::fleet() };
        let queue = queue::open("memory", None).unwrap();
        ViewCache::new(Coordinator::start(config, queue, results::sink::folder(data.path())), tick)
    }

    #[tokio::test]
    async fn however_many_look_it_is_computed_once_a_tick() {
        let data = tempfile::tempdir().unwrap();
        let board = board(&data, Duration::from_secs(3600));
        let looks = join_all((0..100).map(|_| board.look(&Topic::Runs))).await;
        let first = looks[0].as_ref().unwrap();
        assert!(looks.iter().all(|look| Arc::ptr_eq(look.as_ref().unwrap(), first)));
        // What was done to a run shows at once.
        board.forget(&Topic::Runs);
        assert!(!Arc::ptr_eq(&board.look(&Topic::Runs).await.unwrap(), first));
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_unknown_runs_are_not_kept() {
        let data = tempfile::tempdir().unwrap();
        let board = board(&data, Duration::ZERO);
        for number in 0..2 * KEPT_MAX {
            let error = board.look(&Topic::Run(RunId::new(format!("run-{number}")))).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::NotFound);
        }
        assert!(board.cells.lock().unwrap().is_empty());
        for number in 0..2 * KEPT_MAX {
            board.cell(&Topic::Run(RunId::new(format!("run-{number}"))));
        }
        assert_eq!(board.cells.lock().unwrap().len(), KEPT_MAX);
    }
}
