//! The loaded runs of a coordinator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::control::RunPhase;
use domain::{ErrorCode, RunId, ServiceError};
use results::log::{LogTail, Parsed, TailPart};
use tokio::sync::OnceCell;

use crate::errors::{Result, internal, not_found};
use crate::health::Uptime;
use crate::plan::planned::Planned;
use crate::records::dialogues::DialogueTable;
use crate::records::packs::Packs;
use crate::records::run::{FoldedRecord, Run};
use crate::records::store::Store;

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

    /// Forgets a run whose table is no longer valid, so that the next call reads its log again.
    pub(crate) fn discard(&self, run: &Arc<Run>) {
        let mut cells = self.cells();
        if cells.get(run.id()).and_then(|cell| cell.get()).is_some_and(|known| Arc::ptr_eq(known, run)) {
            cells.remove(run.id());
        }
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

    /// Sees that a run is loaded as its newest manifest says. One that was extended meanwhile is forgotten, and read anew by
    /// who asks for it next.
    ///
    /// # Errors
    /// It was extended, or is not there any more.
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
        self.discard(run);
        let message = format!("run {} was extended elsewhere, or restored; it is read anew", run.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    /// Sees that a run is the one that was loaded. The runs of a judged benchmark that was removed and submitted again have the
    /// names of before.
    ///
    /// # Errors
    /// It is another one, and read anew by who asks for it next.
    pub(crate) async fn expect_same(&self, run: &Arc<Run>) -> Result<()> {
        if !self.store.is_shared() {
            return Ok(()); // Nobody else removes it.
        }
        match self.store.manifest(run.id()).await? {
            Some(newest) if newest.created_at != run.manifest.created_at => {
                self.discard(run);
                let message = format!("run {} was removed and begun anew; it is read anew", run.id());
                Err(ServiceError::new(ErrorCode::Unavailable, message))
            }
            // What is not there any more is noticed by who reads its state.
            _ => Ok(()),
        }
    }

    /// A run as its newest manifest says.
    pub(crate) async fn newest(&self, id: &RunId) -> Result<Arc<Run>> {
        let run = self.known(id).await?;
        match self.expect_newest(&run).await {
            Err(error) if error.code == ErrorCode::Unavailable => self.known(id).await,
            checked => checked.map(|()| run),
        }
    }

    /// A run with everything that its log holds now.
    pub(crate) async fn followed(&self, id: &RunId) -> Result<Arc<Run>> {
        let run = self.known(id).await?;
        match self.follow(&run).await {
            // It was closed or reopened meanwhile: read it again.
            Err(error) if error.code == ErrorCode::Unavailable && self.get(id).is_none() => {
                self.known(id).await
            }
            followed => followed.map(|()| run),
        }
    }

    async fn load(&self, id: &RunId) -> Result<Arc<Run>> {
        let manifest = self.store.manifest(id).await?;
        let manifest = manifest.ok_or_else(|| not_found(format!("there is no run {id}")))?;
        let planned = Planned::again(&manifest, self.packs.of_run(&manifest).await?).await?;
        let writer = self.store.new_writer();
        let after = self.store.sink.removed_generation(id).await?;
        let build = move || Run::of(manifest, planned, writer, after).map(Arc::new);
        let run = service_kit::aside::run(build).await.map_err(internal)??;
        self.follow(&run).await?;
        let state = self.store.state(id).await?;
        let complete = run.table(DialogueTable::is_complete);
        match state {
            Some(state) => {
                run.set_phase(state.phase);
                if state.fleet && self.store.is_shared() {
                    run.attend();
                }
            }
            // Whoever created it has not written its state yet, or died before.
            None => run.set_phase(if complete { RunPhase::Finished } else { RunPhase::Active }),
        }
        Ok(run)
    }

    /// Reads new records of the log: all of them the first time, then those of other writers.
    pub(crate) async fn follow(&self, run: &Arc<Run>) -> Result<()> {
        let mut place = run.tail.lock().await;
        let first = place.is_none();
        if !first && !self.store.is_shared() {
            return Ok(()); // Nobody else writes.
        }
        let mut tail = match place.take() {
            Some(tail) => tail,
            None => self.store.tail(run.id(), run.cipher.as_ref(), run.writer)?,
        };
        let (run_of, run, now) = (run, Arc::clone(run), self.clock.now());
        let read = move || {
            let result = read_on(&run, &mut tail, (!first).then_some(now));
            (tail, result)
        };
        let (tail, result) = service_kit::aside::run(read).await.map_err(internal)?;
        *place = Some(tail);
        if result? {
            return Ok(());
        }
        self.discard(run_of);
        let message =
            format!("run {} was finished or reopened elsewhere; reading its log again", run_of.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }
}

/// Adds new records; returns whether the table is still valid. `now` is given if they contribute to the rate.
fn read_on(run: &Run, tail: &mut LogTail, now: Option<Duration>) -> Result<bool> {
    let mut holds = true;
    while let Some(part) = tail.poll().map_err(internal)? {
        let mut lines = match part {
            TailPart::Lines(lines) => lines,
            TailPart::Sealed(seals) => {
                holds &= run.learn(seals);
                continue;
            }
            TailPart::Damage(damage) => {
                if damage.is_loss() {
                    run.note_damage();
                }
                tracing::warn!(run = %run.id(), %damage, "the record log is damaged; the dialogues in that place will be asked again");
                continue;
            }
        };
        let mut records = Vec::new();
        while let Some(line) = lines.next() {
            match line.parse() {
                Ok(Parsed { ticket, record: summary, .. }) => records.push(FoldedRecord { ticket, summary }),
                Err(error) => {
                    tracing::warn!(run = %run.id(), %error, "a line of the record log is not a record");
                }
            }
        }
        run.fold(lines.end(), records, now, |_, _, _| {});
    }
    Ok(holds)
}
