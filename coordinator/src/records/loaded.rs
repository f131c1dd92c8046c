//! The loaded runs of a coordinator.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{ErrorCode, RunId, ServiceError};
use results::Summary;
use results::log::{EntryLocation, LogItem, LogReader, SegmentId};
use tokio::sync::OnceCell;

use crate::errors::{Result, internal, not_found};
use crate::health::Uptime;
use crate::plan::planned::Planned;
use crate::records::events::{RunEvent, RunStateFile};
use crate::records::packs::Packs;
use crate::records::run::Run;
use crate::records::store::{ListedState, Store};

/// Maximum number of runs that stay loaded after they are over, because somebody may view them again.
const LOADED_OVER_MAX: usize = 8;

/// Time before loading is tried again after a failure: many callers ask for a run, and each attempt costs as much as a load.
const UNLOADABLE_FOR: Duration = Duration::from_secs(5);

/// Maximum number of runs remembered as not loadable.
const UNLOADABLE_MAX: usize = 1024;

/// The loaded runs. They can be loaded again at any time.
pub(crate) struct LoadedRuns {
    store: Arc<Store>,
    packs: Arc<Packs>,
    clock: Uptime,
    cells: Mutex<BTreeMap<RunId, Arc<OnceCell<Arc<Run>>>>>,
    /// Runs that could not be loaded: when, and why.
    unloadable: Mutex<BTreeMap<RunId, (Duration, ServiceError)>>,
}

impl LoadedRuns {
    pub(crate) fn new(store: Arc<Store>, packs: Arc<Packs>, clock: Uptime) -> Self {
        Self { store, packs, clock, cells: Mutex::default(), unloadable: Mutex::default() }
    }

    fn cells(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<OnceCell<Arc<Run>>>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, run: &RunId) -> Arc<OnceCell<Arc<Run>>> {
        Arc::clone(self.cells().entry(run.clone()).or_default())
    }

    /// Forgets a run that could not be loaded.
    fn drop_empty(&self, run: &RunId) {
        let mut cells = self.cells();
        if cells.get(run).is_some_and(|cell| cell.get().is_none()) {
            cells.remove(run);
        }
    }

    /// Forgets a run that no longer exists.
    pub(crate) fn forget(&self, run: &RunId) {
        self.cells().remove(run);
    }

    fn unloadable(&self) -> MutexGuard<'_, BTreeMap<RunId, (Duration, ServiceError)>> {
        self.unloadable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a run could not be loaded recently.
    fn why_unloadable(&self, run: &RunId, now: Duration) -> Option<ServiceError> {
        let unloadable = self.unloadable();
        let (at, error) = unloadable.get(run)?;
        (now < *at + UNLOADABLE_FOR).then(|| error.clone())
    }

    fn note_unloadable(&self, run: &RunId, error: ServiceError, now: Duration) {
        let mut unloadable = self.unloadable();
        unloadable.retain(|_, (at, _)| now < *at + UNLOADABLE_FOR);
        if unloadable.len() < UNLOADABLE_MAX {
            unloadable.insert(run.clone(), (now, error));
        }
    }

    /// The loaded runs, ordered by name, which is by time.
    pub(crate) fn loaded(&self) -> Vec<Arc<Run>> {
        self.cells().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// A run, if it is loaded.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Run>> {
        self.cells().get(run).and_then(|cell| cell.get().cloned())
    }

    /// The runs that this coordinator tends and that are not over, older ones first.
    pub(crate) fn live(&self) -> Vec<Arc<Run>> {
        let mut live = self.loaded();
        live.retain(|run| run.is_attended() && !run.phase().is_over());
        live
    }

    /// Forgets a run, so that the next call reads its log again. Its log is closed, after the records on their way.
    pub(crate) async fn discard(&self, run: &Arc<Run>) {
        {
            let mut cells = self.cells();
            if cells.get(run.id()).and_then(|cell| cell.get()).is_some_and(|known| Arc::ptr_eq(known, run)) {
                cells.remove(run.id());
            }
        }
        let mut log = run.log.lock().await;
        log.is_retired = true;
        log.close().await;
        log.lock = None;
    }

    /// Forgets the oldest unused runs that are over.
    pub(crate) fn evict(&self) {
        let mut cells = self.cells();
        let over: Vec<RunId> = cells
            .iter()
            .filter(|(_, cell)| {
                cell.get().is_some_and(|run| run.phase().is_over() && Arc::strong_count(run) == 1)
            })
            .map(|(run, _)| run.clone())
            .collect();
        for run in over.iter().take(over.len().saturating_sub(LOADED_OVER_MAX)) {
            cells.remove(run);
        }
    }

    /// A run; the first call loads it from the sink.
    pub(crate) async fn known(&self, id: &RunId) -> Result<Arc<Run>> {
        if let Some(error) = self.why_unloadable(id, self.clock.now()) {
            return Err(error);
        }
        let cell = self.cell(id);
        let loaded = cell.get_or_try_init(|| self.load(id)).await.cloned();
        if let Err(error) = &loaded {
            self.drop_empty(id);
            if error.code != ErrorCode::NotFound && !error.code.is_transient() {
                tracing::warn!(run = %id, %error, "the run cannot be loaded");
                self.note_unloadable(id, error.clone(), self.clock.now());
            }
        }
        loaded
    }

    /// Sees that a run is loaded as its newest manifest says. One that was extended or begun anew is forgotten, and read anew by
    /// who asks for it next.
    ///
    /// # Errors
    /// It was, or is not there any more.
    pub(crate) async fn expect_newest(&self, run: &Arc<Run>) -> Result<()> {
        if !self.store.is_shared() {
            return Ok(()); // Nobody else extends it.
        }
        let newest = self.store.manifest(run.id()).await?;
        let newest = newest.ok_or_else(|| not_found(format!("there is no run {}", run.id())))?;
        // A lower one is that of a copy from which the records were restored.
        if newest.revision == run.manifest.revision && newest.created_at == run.manifest.created_at {
            return Ok(());
        }
        self.discard(run).await;
        let message = format!("run {} was extended or begun anew; it is read anew", run.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    /// A run as its newest manifest says.
    pub(crate) async fn newest(&self, id: &RunId) -> Result<Arc<Run>> {
        let run = self.known(id).await?;
        match self.expect_newest(&run).await {
            Err(error) if error.code == ErrorCode::Unavailable => self.known(id).await,
            checked => checked.map(|()| run),
        }
    }

    /// The state of a run; `None` if it was never begun. It is loaded only where the sink does not have its state for lists.
    pub(crate) async fn state(&self, id: &RunId) -> Result<Option<RunStateFile>> {
        if let Some(run) = self.get(id) {
            // What came late counts, too.
            let counted =
                |state: RunStateFile| if state.phase.is_over() { run.summed_up(state) } else { state };
            return Ok(run.known_state().map(counted));
        }
        match self.store.listed_state(id).await? {
            ListedState::NeverBegun => Ok(None),
            // As the log says it.
            ListedState::Known(state) => Ok(Some(RunStateFile { epoch: 0, ..state })),
            ListedState::InTheLog(_) => Ok(self.known(id).await?.known_state()),
        }
    }

    async fn load(&self, id: &RunId) -> Result<Arc<Run>> {
        let manifest = self.store.manifest(id).await?;
        let manifest = manifest.ok_or_else(|| not_found(format!("there is no run {id}")))?;
        let planned = Planned::again(&manifest, self.packs.of_run(&manifest).await?).await?;
        let after = self.store.sink.removed_generation(id).await?;
        let build = move || Run::of(manifest, planned, after).map(Arc::new);
        let run = service_kit::aside::run(build).await.map_err(internal)??;
        self.read_on(&run).await?;
        let listed = self.store.listed_state(id).await?;
        if run.known_state().is_none()
            && run.is_damaged()
            && let ListedState::Known(repeated) | ListedState::InTheLog(Some(repeated)) = &listed
        {
            // What it said of its state was lost, and the list repeats it: without it, nobody would work at the run.
            let state = RunStateFile { epoch: 0, ..repeated.clone() };
            run.fold_event(BEFORE_THE_LOG, RunEvent::State(state));
        }
        let known = run.known_state();
        run.set_listed(match (&listed, &known) {
            (ListedState::Known(listed), Some(known)) => {
                let of_log = run.summed_up(known.clone());
                let is_counted = (listed.scored, &listed.failures) == (of_log.scored, &of_log.failures);
                listed.phase == of_log.phase && (is_counted || !of_log.phase.is_over())
            }
            (ListedState::NeverBegun, None) => true,
            _ => false,
        });
        if self.store.is_shared() && known.is_some_and(|state| state.fleet) {
            run.attend();
        }
        Ok(run)
    }

    /// Reads what the log of a run has got since it was last read here.
    pub(crate) async fn read_on(&self, run: &Arc<Run>) -> Result<()> {
        let (run, log) = (Arc::clone(run), self.store.sink.run_dir(run.id())?.log());
        let read = move || read_log(&run, &log);
        service_kit::aside::run(read).await.map_err(internal)?
    }
}

/// The place of what is known of a run from elsewhere: whatever its log says comes later.
const BEFORE_THE_LOG: EntryLocation =
    EntryLocation { segment: SegmentId { epoch: 0, number: 0 }, offset: 0, line: 0 };

/// Records that are read before they are taken in together.
const RECORDS_AT_ONCE: usize = 512;

fn read_log(run: &Run, log: &Path) -> Result<()> {
    let mut position = run.read_to.lock().unwrap_or_else(PoisonError::into_inner);
    let reader = LogReader::<Summary>::from(log, run.cipher.as_ref(), *position);
    let mut reader = reader.map_err(internal)?;
    let mut records = Vec::new();
    for item in reader.by_ref() {
        match item.map_err(internal)? {
            LogItem::Record { location, record } => {
                records.push((location, record));
                if records.len() >= RECORDS_AT_ONCE {
                    run.fold(records.drain(..), None, |_, _, _| {});
                }
            }
            LogItem::Event { location, json } => match serde_json::from_str(&json) {
                Ok(event) => drop(run.fold_event(location, event)),
                Err(error) => tracing::warn!(run = %run.id(), %error, "an event of the log is not known"),
            },
            LogItem::Damage(damage) => {
                if damage.is_loss() {
                    run.note_damage();
                }
                tracing::warn!(run = %run.id(), %damage, "the record log is damaged; the dialogues in that place will be asked again");
            }
        }
    }
    run.fold(records, None, |_, _, _| {});
    *position = Some(reader.position());
    Ok(())
}
