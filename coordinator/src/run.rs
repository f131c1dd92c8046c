//! A run as a coordinator knows it: what was planned, which never changes, and what has become of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::benchmark::ModelSpec;
use domain::control::{HistoryEntry, RunPhase};
use domain::exchange::{RunMaterial, TaskUse};
use domain::{DialogueKey, Iteration, RunId};
use history::Winners;
use queue::{Commit, Committed, RunRef, RunSpec};
use results::RunManifest;
use results::log::{
    CommitThread, Ends, LogCipher, LogTail, Position, RecordHead, SealEvent, Seals, WriterId,
};
use results::run_dir::RunLock;
use tasks::TaskClass;

use crate::aggregate::{Aggregate, Row};
use crate::commit::Committer;
use crate::config::CoordinatorConfig;
use crate::errors::{Result, conflict, internal};
use crate::headline;
use crate::layout::{Layout, Slot};
use crate::manifest::Planned;
use crate::plan::Plan;
use crate::protection;
use crate::rate::{Rate, Speed};
use crate::remarks::{Remark, Remarks};

/// A run as a coordinator knows it.
pub(crate) struct Run {
    /// What was planned, as the sink keeps it.
    pub manifest: RunManifest,
    /// The models, in the order of the plan.
    pub models: Vec<ModelSpec>,
    /// The plan.
    pub plan: Plan,
    /// Where dialogues lie in tables.
    pub layout: Layout,
    /// Classes and versions of the tasks, in the order of the plan.
    pub tasks: Vec<TaskKind>,
    /// What workers need to know.
    pub material: RunMaterial,
    /// What its record log is read and written with.
    pub cipher: Option<LogCipher>,
    /// Under which name this coordinator writes the log.
    pub writer: WriterId,
    state: Mutex<State>,
    table: Mutex<Table>,
    /// Whether the queue holds every unit of the plan that is needed.
    filled: AtomicBool,
    attended: AtomicBool,
    /// Held while queue and coordinator are brought into step, so that one caller does it for all; with the generation that
    /// was claimed for a queue and not built, if any.
    pub joining: tokio::sync::Mutex<Option<u64>>,
    /// Held while units are added: to the whole plan, or for another attempt.
    pub filling: tokio::sync::Mutex<()>,
    /// Held while the records of other writers are read; with the time when they were.
    pub tail: tokio::sync::Mutex<Option<(Duration, LogTail)>>,
    /// Who did what to it, as last read, and when.
    pub history: tokio::sync::Mutex<Option<(Duration, Vec<HistoryEntry>)>>,
    /// The way to the log, opened with the first record.
    pub log: tokio::sync::Mutex<Log>,
}

/// What a task is scored by.
#[derive(Clone, Debug)]
pub(crate) struct TaskKind {
    /// The class.
    pub class: TaskClass,
    /// Its name and version in records.
    pub name: String,
    /// Version of the class.
    pub version: String,
    /// Names of its cases: iteration `i` uses case `i` modulo their number.
    pub cases: Vec<String>,
}

/// The way to a run's log, as far as it was opened.
#[derive(Default)]
pub(crate) struct Log {
    pub committer: Option<Committer>,
    /// Its thread, which closes the log after the last record.
    pub thread: Option<CommitThread>,
    /// Whether it was open before: a writer of a fleet opens once.
    pub reopened: bool,
    /// The right to write, where there is one writer only.
    pub lock: Option<RunLock>,
}

#[derive(Clone, Debug)]
struct State {
    /// The queue as it was built last, once known.
    at: Option<RunRef>,
    phase: RunPhase,
    /// What keeps this coordinator from looking after it.
    trouble: Option<String>,
}

struct Table {
    aggregate: Aggregate,
    /// By model, in the order of the plan.
    rates: Vec<Rate>,
    remarks: Remarks,
    /// When the winners were fixed, as far as it was read.
    seals: Seals,
    /// Up to where the log's segments are in the table.
    folded: Ends,
}

/// A record of the log: what tables keep of it, unless its dialogue is not planned, what it says, and its numbers.
pub(crate) struct Found {
    pub row: Option<(Slot, Row)>,
    pub remark: Remark,
    pub ticket: u64,
    pub generation: u64,
}

impl Run {
    /// Puts a run together from its manifest and its plan. Reads the pack's tasks: not for async code.
    pub(crate) fn of(manifest: RunManifest, planned: Planned, writer: WriterId) -> Result<Self> {
        let Planned { benchmark, pack, plan } = planned;
        let kind = |index: usize| {
            let task = &pack.tasks()[index];
            let class = TaskClass::resolve(&task.class, &task.version)
                .map_err(|error| conflict(format!("run {}: {error}", manifest.run)))?;
            let cases = task.cases.iter().map(|case| case.uid.clone()).collect();
            Ok(TaskKind { class, name: task.class.clone(), version: task.version.clone(), cases })
        };
        let tasks = plan.tasks.iter().map(|task| kind(task.index)).collect::<Result<Vec<_>>>()?;
        let uses = plan.tasks.iter().map(|task| TaskUse {
            label: task.label.clone(),
            pack_label: pack.tasks()[task.index].label.clone(),
        });
        let material = RunMaterial {
            run: manifest.run.clone(),
            seed: benchmark.seed,
            pack_hash: pack.hash().as_str().to_owned(),
            tasks: uses.collect(),
            models: benchmark.models.clone(),
            protected: manifest.protected,
            about: manifest.about.clone(),
        };
        let cipher = protection::cipher(&manifest).map_err(internal)?;
        let layout = Layout::of(&plan);
        Ok(Self {
            models: benchmark.models,
            state: Mutex::new(State { at: None, phase: RunPhase::Active, trouble: None }),
            table: Mutex::new(Table {
                aggregate: Aggregate::new(layout.slots()),
                rates: vec![Rate::default(); plan.models.len()],
                remarks: Remarks::new(plan.models.len()),
                seals: Seals::default(),
                folded: Ends::new(),
            }),
            filled: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            joining: tokio::sync::Mutex::default(),
            filling: tokio::sync::Mutex::default(),
            tail: tokio::sync::Mutex::default(),
            history: tokio::sync::Mutex::default(),
            log: tokio::sync::Mutex::default(),
            manifest,
            plan,
            layout,
            tasks,
            material,
            cipher,
            writer,
        })
    }

    /// Its name.
    pub(crate) fn id(&self) -> &RunId {
        &self.manifest.run
    }

    /// The queue as it was built last, where that is known.
    pub(crate) fn at(&self) -> Option<RunRef> {
        self.state().at.clone()
    }

    /// Takes note that its queue was built. What was filled before was another one.
    pub(crate) fn set_at(&self, at: RunRef) {
        let mut state = self.state();
        if state.at.as_ref() != Some(&at) {
            self.filled.store(false, Ordering::Release);
            state.at = Some(at);
        }
    }

    /// Where it stands.
    pub(crate) fn phase(&self) -> RunPhase {
        self.state().phase
    }

    /// Takes note of where it stands.
    pub(crate) fn set_phase(&self, phase: RunPhase) {
        self.state().phase = phase;
    }

    /// What keeps this coordinator from looking after it, as last seen.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Takes note of it.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        self.state().trouble = trouble;
    }

    /// Whether the queue holds every unit of the plan that is needed.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Takes note that it does.
    pub(crate) fn set_filled(&self) {
        self.filled.store(true, Ordering::Release);
    }

    /// Forgets its queue: it was removed.
    pub(crate) fn clear_at(&self) {
        self.state().at = None;
        self.set_filled_no_more();
    }

    /// Whether this coordinator looks after it. Others are only looked at.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Acquire)
    }

    /// Looks after it from now on.
    pub(crate) fn attend(&self) {
        self.attended.store(true, Ordering::Release);
    }

    /// Takes note that it may not: its queue was lost meanwhile.
    pub(crate) fn set_filled_no_more(&self) {
        self.filled.store(false, Ordering::Release);
    }

    /// Reads the table of its dialogues.
    pub(crate) fn table<T>(&self, read: impl FnOnce(&Aggregate) -> T) -> T {
        read(&self.lock_table().aggregate)
    }

    /// The records that count, in short.
    pub(crate) fn what_counts(&self) -> Winners {
        let mut winners = Winners::default();
        self.table(|table| {
            for slot in 0..table.len() {
                if let Some(winner) = table.get(slot) {
                    winners.add(&self.layout.key(slot), winner.outcome.is_ok(), winner.ticket);
                }
            }
        });
        winners
    }

    /// What comes per second of a model, by its place in the plan, of which work is in hand or not.
    pub(crate) fn speed(&self, model: usize, in_hand: bool, now: Duration) -> Speed {
        let mut table = self.lock_table();
        let Some(rate) = table.rates.get_mut(model) else { return Speed::default() };
        rate.working(now, in_hand);
        rate.per_second(now)
    }

    /// Reads what its records say to people.
    pub(crate) fn remarks<T>(&self, read: impl FnOnce(&Remarks) -> T) -> T {
        read(&self.lock_table().remarks)
    }

    /// What tables keep of a record; `None` where its dialogue is not planned.
    pub(crate) fn row(&self, ticket: u64, head: &RecordHead) -> Option<(Slot, Row)> {
        let slot = self.layout.slot_of(&head.key)?;
        let (_, task, _) = self.layout.place(slot);
        let outcome = headline::outcome(&head.outcome, self.tasks[task].class);
        Some((slot, Row { ticket, outcome, late: false }))
    }

    /// Takes durable records into account, none of which lies behind `place`; those that count now are handed to `counted`.
    /// `now` where they say something about the rate; what was in the log before does not.
    pub(crate) fn fold(
        &self,
        place: Position,
        records: Vec<Found>,
        now: Option<Duration>,
        mut counted: impl FnMut(Slot, Row, &Remark),
    ) {
        let mut guard = self.lock_table();
        let table = &mut *guard;
        let folded = table.folded.entry(place.segment).or_default();
        if folded.bytes < place.end.bytes {
            *folded = place.end;
        }
        for Found { row, remark, ticket, generation } in records {
            table.aggregate.note(ticket, generation);
            let Some((slot, row)) = row else { continue };
            let row = Row { late: table.seals.is_late(place, ticket), ..row };
            if table.aggregate.fold(slot, row) {
                let (model, ..) = self.layout.place(slot);
                table.remarks.counts(slot, model, &remark);
                if let (Some(now), Some(rate)) = (now, table.rates.get_mut(model)) {
                    rate.add(now, 1, remark.tokens);
                }
                counted(slot, row, &remark);
            }
        }
    }

    /// Takes note of seals. Whether the table still holds: else records were taken into account in another way than these
    /// seals say, and the log is to be read anew.
    pub(crate) fn learn(&self, seals: Seals) -> bool {
        let mut table = self.lock_table();
        if seals.next() <= table.seals.next() {
            return true; // Written by this coordinator.
        }
        let holds = seals.agree(&table.seals, &table.folded);
        table.seals = seals;
        holds
    }

    /// Fixes the records that count now, where every dialogue has one: the seal that says so, with its number. `None` where
    /// there is nothing to fix.
    pub(crate) fn close(&self) -> Option<(u32, SealEvent)> {
        let mut table = self.lock_table();
        if table.seals.is_closed() || !table.aggregate.is_complete() {
            return None;
        }
        let (number, event) = (table.seals.next(), SealEvent::Closed(table.folded.clone()));
        table.seals.push(event.clone());
        Some((number, event))
    }

    /// Lets records with a higher ticket count again, where they were fixed: the seal that says so, with its number.
    pub(crate) fn reopen(&self, ticket: u64) -> Option<(u32, SealEvent)> {
        let mut table = self.lock_table();
        if !table.seals.is_closed() {
            return None;
        }
        let (number, event) = (table.seals.next(), SealEvent::Reopened(ticket));
        table.seals.push(event.clone());
        Some((number, event))
    }

    /// Whether the records that count are fixed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock_table().seals.is_closed()
    }

    /// What the queue needs to know to build the run in this generation.
    pub(crate) fn spec(&self, config: &CoordinatorConfig, generation: u64) -> RunSpec {
        let ticket_floor = self.table(Aggregate::highest_ticket);
        RunSpec {
            run: self.id().clone(),
            plan_hash: self.manifest.plan_hash.clone(),
            lease_for: config.lease_for,
            max_strikes: config.max_strikes,
            generation,
            ticket_floor,
        }
    }

    /// The records that count among dialogues from `first` on, at most `limit` dialogues further, and where to go on;
    /// `None` at the end.
    pub(crate) fn winners(&self, first: Slot, limit: usize) -> (Vec<Commit>, Option<Slot>) {
        let end = (first + limit).min(self.layout.slots());
        let found: Vec<(Slot, Row)> =
            self.table(|table| (first..end).filter_map(|slot| Some((slot, table.get(slot)?))).collect());
        let commits = found.into_iter().map(|(slot, row)| self.commit(slot, row)).collect();
        (commits, (end < self.layout.slots()).then_some(end))
    }

    /// A record as the queue takes it.
    pub(crate) fn commit(&self, slot: Slot, row: Row) -> Commit {
        let record = Committed { scored: row.outcome.is_ok(), ticket: row.ticket };
        Commit { key: self.layout.key(slot), record }
    }

    /// The key of a dialogue of a unit.
    pub(crate) fn key(&self, model: usize, task: usize, iteration: Iteration) -> Option<DialogueKey> {
        self.layout.slot(model, task, iteration).map(|slot| self.layout.key(slot))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain values are whole at any moment, also where a panic passed through.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
