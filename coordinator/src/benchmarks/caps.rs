//! The caps of benchmarks: whether one is reached, which whoever hands out work asks each time.
//!
//! What a benchmark has used follows from its records. A run that is loaded counts its own. Of a judged benchmark the runs are
//! added up, also those that are over and not loaded any more: what these used is remembered here. It can be counted again, as
//! `counting` does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use benchmarks::names::benchmark_of;
use domain::RunId;
use jiff::Timestamp;

use crate::options::{CoordinatorOptions, Scope};
use crate::plan::configuration::cap::{Cap, CapReached};
use crate::records::events::RunStateFile;
use crate::records::loaded::LoadedRuns;
use crate::records::run::Run;

/// The tokens that the runs of a judged benchmark have used, each with the state in which they were counted.
pub(crate) type SpentByRun = BTreeMap<RunId, (Option<RunStateFile>, u64)>;

/// A judged benchmark whose runs were counted.
#[derive(Clone, Debug)]
pub(crate) struct CountedBenchmark {
    /// When it was submitted: another one of its name is another benchmark.
    pub begun: Timestamp,
    pub cap: Option<Cap>,
    /// Empty without a cap.
    pub runs: SpentByRun,
}

/// The caps that a coordinator knows. All of it can be read again.
pub(crate) struct Caps {
    is_fleet: bool,
    loaded: Arc<LoadedRuns>,
    /// Judged benchmarks by name; `None` where runs have a name as if they were of one, and there is none.
    judged: Mutex<BTreeMap<RunId, Option<CountedBenchmark>>>,
}

impl Caps {
    pub(crate) fn new(options: &CoordinatorOptions, loaded: Arc<LoadedRuns>) -> Self {
        Self { is_fleet: options.scope == Scope::Fleet, loaded, judged: Mutex::default() }
    }

    fn judged(&self) -> MutexGuard<'_, BTreeMap<RunId, Option<CountedBenchmark>>> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted of a judged benchmark that was submitted then.
    pub(crate) fn counted(&self, name: &RunId, begun: Timestamp) -> SpentByRun {
        let judged = self.judged();
        let known = judged.get(name).and_then(Option::as_ref).filter(|known| known.begun == begun);
        known.map(|known| known.runs.clone()).unwrap_or_default()
    }

    /// Notes what was counted of a judged benchmark, or that there is none of this name.
    pub(crate) fn note(&self, name: &RunId, counted: Option<CountedBenchmark>) {
        self.judged().insert(name.clone(), counted);
    }

    /// Forgets a judged benchmark of which nothing goes on.
    pub(crate) fn forget(&self, name: &RunId) {
        self.judged().remove(name);
    }

    /// Why nothing more may be handed out of a run; `None` while its benchmark may use more.
    pub(crate) fn reached(&self, run: &Run) -> Option<CapReached> {
        let benchmark = benchmark_of(run.id());
        if benchmark == *run.id() {
            return reached_alone(run);
        }
        match self.judged().get(&benchmark) {
            Some(Some(counted)) => self.reached_together(&benchmark, counted),
            Some(None) => reached_alone(run),
            None => run.cap.map(|_| CapReached::Uncounted),
        }
    }

    /// The same of a benchmark by its name, in words that say what to do. One that is not known here may use more.
    pub(crate) fn told(&self, name: &RunId) -> Option<String> {
        let reached = match self.loaded.get(name) {
            Some(run) => self.reached(&run),
            None => match self.judged().get(name) {
                Some(Some(counted)) => self.reached_together(name, counted),
                Some(None) | None => None,
            },
        };
        reached.map(|reached| reached.told(name, self.is_fleet))
    }

    /// The same of the benchmark of a run.
    pub(crate) fn told_of(&self, run: &Run) -> Option<String> {
        self.reached(run).map(|reached| reached.told(&benchmark_of(run.id()), self.is_fleet))
    }

    /// A judged benchmark: what its loaded runs have used by now, and what the others had used.
    fn reached_together(&self, name: &RunId, counted: &CountedBenchmark) -> Option<CapReached> {
        let cap = counted.cap?;
        let mut loaded = self.loaded.loaded();
        loaded.retain(|run| benchmark_of(run.id()) == *name);
        let is_loaded = |run: &RunId| loaded.iter().any(|known| known.id() == run);
        let others = counted.runs.iter().filter(|(run, _)| !is_loaded(run)).map(|(_, (_, spent))| *spent);
        let spent = loaded.iter().map(|run| run.spent()).chain(others);
        cap.reached(spent.fold(0, u64::saturating_add))
    }
}

/// A run that is a benchmark by itself.
fn reached_alone(run: &Run) -> Option<CapReached> {
    run.cap?.reached(run.spent())
}
