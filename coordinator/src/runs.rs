//! The runs that a coordinator knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::control::RunPhase;
use domain::{ErrorCode, RunId, ServiceError};
use results::log::{LogTail, Parsed, RecordHead, TailPart};
use tokio::sync::OnceCell;

use crate::aggregate::Aggregate;
use crate::errors::{Result, internal, not_found};
use crate::health::Clock;
use crate::manifest::Planned;
use crate::pack_store::PackStore;
use crate::remarks::Remark;
use crate::run::{Found, Run};
use crate::storage::Storage;

/// Runs that are over and stay loaded, because somebody may look at them again.
const MAX_LOADED_OVER: usize = 8;

/// How long a run that could not be loaded is not tried again: everybody asks for it, and to try costs as much as to load.
const UNLOADABLE_FOR: Duration = Duration::from_secs(5);

/// Runs that are remembered as not to be loaded.
const MAX_UNLOADABLE: usize = 1024;

/// Highest generation that is believed. Redis counts exactly up to 2^53, and no run comes near this.
const GENERATION_MAX: u64 = 1 << 52;

/// The runs that are loaded. Whatever is here can be loaded again.
pub(crate) struct Runs {
    storage: Arc<Storage>,
    packs: Arc<PackStore>,
    clock: Clock,
    cells: Mutex<BTreeMap<RunId, Arc<OnceCell<Arc<Run>>>>>,
    /// Those that could not be loaded: when, and why.
    unloadable: Mutex<BTreeMap<RunId, (Duration, ServiceError)>>,
}

impl Runs {
    pub(crate) fn new(storage: Arc<Storage>, packs: Arc<PackStore>, clock: Clock) -> Self {
        Self { storage, packs, clock, cells: Mutex::default(), unloadable: Mutex::default() }
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

    /// Forgets a run, loaded or not: it is not there any more.
    pub(crate) fn forget(&self, run: &RunId) {
        self.cells().remove(run);
    }

    fn unloadable(&self) -> MutexGuard<'_, BTreeMap<RunId, (Duration, ServiceError)>> {
        self.unloadable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a run could not be loaded a moment ago.
    fn why_unloadable(&self, run: &RunId, now: Duration) -> Option<ServiceError> {
        let unloadable = self.unloadable();
        let (at, error) = unloadable.get(run)?;
        (now < *at + UNLOADABLE_FOR).then(|| error.clone())
    }

    fn note_unloadable(&self, run: &RunId, error: ServiceError, now: Duration) {
        let mut unloadable = self.unloadable();
        unloadable.retain(|_, (at, _)| now < *at + UNLOADABLE_FOR);
        if unloadable.len() < MAX_UNLOADABLE {
            unloadable.insert(run.clone(), (now, error));
        }
    }

    /// Those that are loaded, in the order of their names, which is that of time.
    pub(crate) fn loaded(&self) -> Vec<Arc<Run>> {
        self.cells().values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// A run, if it is loaded.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Run>> {
        self.cells().get(run).and_then(|cell| cell.get().cloned())
    }

    /// Those that this coordinator looks after and that are not over, older ones first.
    pub(crate) fn live(&self) -> Vec<Arc<Run>> {
        let mut live = self.loaded();
        live.retain(|run| run.is_attended() && !run.phase().is_over());
        live
    }

    /// Forgets a run whose table does not hold any more: who asks for it next reads its log anew.
    pub(crate) fn discard(&self, run: &Arc<Run>) {
        let mut cells = self.cells();
        if cells.get(run.id()).and_then(|cell| cell.get()).is_some_and(|known| Arc::ptr_eq(known, run)) {
            cells.remove(run.id());
        }
    }

    /// Forgets the oldest runs that are over and that nobody uses now.
    pub(crate) fn evict(&self) {
        let mut cells = self.cells();
        let over: Vec<RunId> = cells
            .iter()
            .filter(|(_, cell)| {
                cell.get().is_some_and(|run| run.phase().is_over() && Arc::strong_count(run) == 1)
            })
            .map(|(run, _)| run.clone())
            .collect();
        for run in over.iter().take(over.len().saturating_sub(MAX_LOADED_OVER)) {
            cells.remove(run);
        }
    }

    /// A run, loaded from the sink by the first who asks.
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
        if !self.storage.is_shared() {
            return Ok(()); // Nobody else extends it.
        }
        let newest = self.storage.manifest(run.id()).await?;
        let newest = newest.ok_or_else(|| not_found(format!("there is no run {}", run.id())))?;
        if newest.revision <= run.manifest.revision {
            return Ok(());
        }
        self.discard(run);
        let message = format!("run {} was extended elsewhere; it is read anew", run.id());
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

    /// A run with everything that its log holds now or, in an object store, held so long ago.
    pub(crate) async fn followed(&self, id: &RunId, age: Duration) -> Result<Arc<Run>> {
        let run = self.known(id).await?;
        match self.follow_within(&run, age).await {
            // Read anew: it was closed or reopened meanwhile.
            Err(error) if error.code == ErrorCode::Unavailable && self.get(id).is_none() => {
                self.known(id).await
            }
            followed => followed.map(|()| run),
        }
    }

    async fn load(&self, id: &RunId) -> Result<Arc<Run>> {
        let manifest = self.storage.manifest(id).await?;
        let manifest = manifest.ok_or_else(|| not_found(format!("there is no run {id}")))?;
        let planned = Planned::again(&manifest, self.packs.of_run(&manifest).await?).await?;
        let writer = self.storage.new_writer();
        let build = move || Run::of(manifest, planned, writer).map(Arc::new);
        let run = tokio::task::spawn_blocking(build).await.map_err(internal)??;
        self.follow(&run).await?;
        let state = self.storage.state(id).await?;
        let complete = run.table(Aggregate::is_complete);
        match state {
            Some(state) => {
                run.set_phase(state.phase);
                if state.fleet && self.storage.is_shared() {
                    run.attend();
                }
            }
            // Of a version that kept no state.
            None => run.set_phase(if complete { RunPhase::Finished } else { RunPhase::Active }),
        }
        Ok(run)
    }

    /// Reads the records that have come into the log since it was read before: all of them at first, then those of other
    /// writers.
    pub(crate) async fn follow(&self, run: &Arc<Run>) -> Result<()> {
        self.follow_within(run, Duration::ZERO).await
    }

    /// Like [`follow`](Self::follow). An object store, which is asked for a list each time, is not asked again before so
    /// much time has passed.
    async fn follow_within(&self, run: &Arc<Run>, age: Duration) -> Result<()> {
        let mut place = run.tail.lock().await;
        let first = place.is_none();
        if !first && !self.storage.is_shared() {
            return Ok(()); // Nobody else writes.
        }
        let begun = self.clock.now();
        let is_fresh = |(at, _): &(Duration, LogTail)| begun < *at + age;
        if !self.storage.sink.has_locks() && place.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        self.storage.sink.refresh(run.id()).await?;
        let mut tail = match place.take() {
            Some((_, tail)) => tail,
            None => self.storage.tail(run)?,
        };
        let (run_of, run, now) = (run, Arc::clone(run), self.clock.now());
        let read = move || {
            let result = read_on(&run, &mut tail, (!first).then_some(now));
            (tail, result)
        };
        let (tail, result) = tokio::task::spawn_blocking(read).await.map_err(internal)?;
        *place = Some((begun, tail));
        if result? {
            return Ok(());
        }
        self.discard(run_of);
        let message = format!("run {} was finished or reopened elsewhere; its log is read anew", run_of.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }
}

/// Folds everything that is new, and says whether the table holds; `now` where it counts for the rate.
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
                tracing::warn!(run = %run.id(), %damage, "the record log is damaged; the dialogues in that place are asked again");
                continue;
            }
        };
        let mut records = Vec::new();
        while let Some(line) = lines.next() {
            match line.parse::<RecordHead>() {
                Ok(Parsed { ticket, record, .. }) => {
                    let (row, generation) = (run.row(ticket, &record), record.attempt.generation);
                    // A number out of nowhere says nothing about the queue; the record itself counts as for every reader.
                    let generation = if generation > GENERATION_MAX { 0 } else { generation };
                    records.push(Found { row, remark: Remark::of(&record), ticket, generation });
                }
                Err(error) => {
                    tracing::warn!(run = %run.id(), %error, "a line of the record log is no record");
                }
            }
        }
        run.fold(lines.end(), records, now, |_, _, _| {});
    }
    Ok(holds)
}
