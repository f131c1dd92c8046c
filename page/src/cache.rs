//! Caches what pages show: each topic is computed at most once a tick for all visitors, and only while somebody looks.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coordinator::Coordinator;
use coordinator::access::Access;
use domain::caller::CallerRole;
use domain::control::{Control, WorkerView};
use domain::{ErrorCode, RunId, ServiceError};

use crate::admission::Audience;
use crate::render::board::Shown;
use crate::render::{benchmark, lists};
use crate::site::Links;
use crate::standings::{RunStandings, Standings};

/// Time between two computations of the same thing.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Topics cached at once; the largest runs take some 300 kB each.
const PAGES_MAX: usize = 32;

/// A page whose content changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Benchmarks(Audience),
    Benchmark(RunId, Audience),
    Workers(Audience),
}

#[derive(Default)]
struct CachedPage {
    /// Errors are cached as long as pages, so that visitors of an unreadable run do not each wait for the same failure.
    latest: Option<(Instant, Result<Arc<PageState>, ServiceError>)>,
    standings: Option<RunStandings>,
}

type Cell = Arc<tokio::sync::Mutex<CachedPage>>;

/// The cache; see the module.
pub(crate) struct ViewCache {
    of_operators: Arc<Access>,
    of_readers: Arc<Access>,
    links: Arc<Links>,
    tick: Duration,
    cells: Mutex<HashMap<Topic, (Instant, Cell)>>,
}

impl ViewCache {
    /// A cache with this time between two computations: [`TICK`], except in tests.
    pub(crate) fn new(coordinator: &Coordinator, links: Arc<Links>, tick: Duration) -> Self {
        let of_operators = coordinator.view_for_many(CallerRole::Operator);
        let of_readers = coordinator.view_for_many(CallerRole::Reader);
        Self { of_operators, of_readers, links, tick, cells: Mutex::default() }
    }

    fn access(&self, audience: Audience) -> &Arc<Access> {
        match audience {
            Audience::Operators => &self.of_operators,
            Audience::Readers => &self.of_readers,
        }
    }

    /// The state of a topic, at most one tick old.
    pub(crate) async fn latest(&self, topic: &Topic) -> Result<Arc<PageState>, ServiceError> {
        let cell = self.cell(topic);
        // Whoever comes while it is computed waits for that.
        let mut cached = cell.lock().await;
        if let Some((at, snapshot)) = &cached.latest
            && at.elapsed() < self.tick
        {
            return snapshot.clone();
        }
        let made = self.make(topic, &mut cached).await.map(Arc::new);
        if made.as_ref().is_err_and(|error| error.code == ErrorCode::NotFound) {
            self.forget(topic);
        }
        cached.latest = Some((Instant::now(), made.clone()));
        made
    }

    /// Drops the cached state after a command, so that the next visitor sees its effect.
    pub(crate) fn forget(&self, topic: &Topic) {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }

    fn cell(&self, topic: &Topic) -> Cell {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if !cells.contains_key(topic) && cells.len() >= PAGES_MAX {
            let oldest = cells.iter().min_by_key(|(_, (used, _))| *used).map(|(topic, _)| topic.clone());
            oldest.and_then(|topic| cells.remove(&topic));
        }
        let (used, cell) = cells.entry(topic.clone()).or_insert_with(|| (Instant::now(), Cell::default()));
        *used = Instant::now();
        Arc::clone(cell)
    }

    async fn make(&self, topic: &Topic, cached: &mut CachedPage) -> Result<PageState, ServiceError> {
        match topic {
            Topic::Benchmarks(audience) => {
                let listed = self.access(*audience).list().await?;
                let sections =
                    rendered(move || vec![Section::new("runs", lists::of_benchmarks(&listed))]).await?;
                Ok(PageState { title: "Benchmarks".to_owned(), sections, over: false })
            }
            Topic::Benchmark(id, audience) => self.make_benchmark(id, *audience, cached).await,
            Topic::Workers(audience) => {
                let workers: Vec<WorkerView> = self.access(*audience).workers().await?;
                let steers = *audience == Audience::Operators;
                let sections = rendered(move || lists::sections_of_workers(&workers, steers)).await?;
                Ok(PageState { title: "Workers".to_owned(), sections, over: false })
            }
        }
    }

    async fn make_benchmark(
        &self,
        id: &RunId,
        audience: Audience,
        cached: &mut CachedPage,
    ) -> Result<PageState, ServiceError> {
        let access = self.access(audience);
        let view = access.view(id).await?;
        let (has_intervals, done) = (view.headline.intervals, view.done());
        if has_intervals {
            cached.standings = RunStandings::kept_up(cached.standings.take(), access, id, done).await;
        }
        let is_settled = !has_intervals || cached.standings.as_ref().is_some_and(|known| known.done == done);
        // A model that was added meanwhile would be missing from the standings of before.
        let known = cached.standings.as_ref().map(|known| Arc::clone(&known.known));
        let known = known.filter(|known| has_intervals && known.models.len() == view.models.len());
        let standings = known.unwrap_or_else(|| Arc::new(Standings::of_view(&view)));
        let (title, over) = (format!("Benchmark {id}"), view.phase.is_over() && is_settled);
        let shown = Shown { view, standings, links: Arc::clone(&self.links) };
        let sections = rendered(move || benchmark::sections(&shown)).await?;
        Ok(PageState { title, sections, over })
    }
}

/// Renders on a thread that may block.
async fn rendered(
    make: impl FnOnce() -> Vec<Section> + Send + 'static,
) -> Result<Vec<Section>, ServiceError> {
    let made = tokio::task::spawn_blocking(make).await;
    made.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))
}

/// A part of a page that changes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Id of its HTML element.
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

/// The state of a page at one time.
#[derive(Clone, Debug)]
pub(crate) struct PageState {
    pub title: String,
    pub sections: Vec<Section>,
    /// Whether the state does not change any more.
    pub over: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use coordinator::CoordinatorOptions;
    use futures::future::join_all;

    fn cache(data: &tempfile::TempDir, tick: Duration) -> ViewCache {
        let config = CoordinatorOptions { tends: false, ..CoordinatorOptions::fleet() };
        let queue = queue::open("memory", None).unwrap();
        let coordinator = Coordinator::start(config, queue, results::Sink::new(data.path()));
        let links = Links { prices: report::costs::Prices::default(), dashboards: None };
        ViewCache::new(&coordinator, Arc::new(links), tick)
    }

    #[tokio::test]
    async fn however_many_look_it_is_computed_once_a_tick() {
        let data = tempfile::tempdir().unwrap();
        let cache = cache(&data, Duration::from_secs(3600));
        let states = join_all((0..100).map(|_| cache.latest(&Topic::Benchmarks(Audience::Readers)))).await;
        let first = states[0].as_ref().unwrap();
        assert!(states.iter().all(|state| Arc::ptr_eq(state.as_ref().unwrap(), first)));
        // What was done to a run shows at once.
        cache.forget(&Topic::Benchmarks(Audience::Readers));
        assert!(!Arc::ptr_eq(&cache.latest(&Topic::Benchmarks(Audience::Readers)).await.unwrap(), first));
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_unknown_runs_are_not_kept() {
        let data = tempfile::tempdir().unwrap();
        let cache = cache(&data, Duration::ZERO);
        for number in 0..2 * PAGES_MAX {
            let error = cache
                .latest(&Topic::Benchmark(RunId::new(format!("run-{number}")), Audience::Readers))
                .await
                .unwrap_err();
            assert_eq!(error.code, ErrorCode::NotFound);
        }
        assert!(cache.cells.lock().unwrap().is_empty());
        for number in 0..2 * PAGES_MAX {
            cache.cell(&Topic::Benchmark(RunId::new(format!("run-{number}")), Audience::Readers));
        }
        assert_eq!(cache.cells.lock().unwrap().len(), PAGES_MAX);
    }
}
