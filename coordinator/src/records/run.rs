//! A loaded run: its plan, which never changes, and its state.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use benchmarks::names::benchmark_of;
use domain::control::RunPhase;
use domain::exchange::{RunMaterial, TaskUse};
use domain::model::ModelSpec;
use domain::{DialogueKey, Iteration, Priority, RunId};
use queue::{Commit, Committed, RunRef, RunSpec};
use results::log::{Ends, LogCipher, LogTail, Position, SealEvent, Seals, WriterId};
use results::{OutcomeSummary, RunManifest, Summary};
use tasks::TaskClass;

use crate::errors::{Result, conflict, internal};
use crate::options::CoordinatorOptions;
use crate::plan::Plan;
use crate::plan::configuration::cap::{Cap, tokens_of};
use crate::plan::numbering::{Numbering, Slot};
use crate::plan::planned::Planned;
use crate::plan::protection;
use crate::records::dialogues::{DialogueRow, DialogueTable};
use crate::records::log_handle::LogHandle;
use crate::records::positions::{LogSource, RecordPositions};
use crate::records::rate::{Rate, Speed};
use crate::records::remarks::Remarks;
use crate::records::retry::Rework;
use crate::records::usage::{SpendingTable, UsageTable};

/// A loaded run.
pub(crate) struct Run {
    /// Its manifest in the sink.
    pub manifest: RunManifest,
    /// The models, in the order of the plan.
    pub models: Vec<ModelSpec>,
    pub plan: Plan,
    /// The numbering of dialogues in tables.
    pub layout: Numbering,
    /// Classes and versions of the tasks, in the order of the plan.
    pub tasks: Vec<TaskRules>,
    /// What workers need to know.
    pub material: RunMaterial,
    /// The cap in its manifest; that of a judged benchmark may be another one by now.
    pub cap: Option<Cap>,
    /// The cipher of its record log.
    pub cipher: Option<LogCipher>,
    /// The name under which this coordinator writes the log.
    pub writer: WriterId,
    /// Records of this generation or a lower one belong to runs of the same name that were removed.
    pub after: u64,
    state: Mutex<State>,
    table: Mutex<Table>,
    /// Whether the queue holds every unit of the plan that is needed.
    filled: AtomicBool,
    attended: AtomicBool,
    /// Held while queue and coordinator are reconciled, so that one caller does it for all; with the generation that
    /// was claimed for a queue and not built, if any.
    pub joining: tokio::sync::Mutex<Option<u64>>,
    /// Held while units are added, for the whole plan or for a retry.
    pub filling: tokio::sync::Mutex<()>,
    /// Held while the records of other writers are read.
    pub tail: tokio::sync::Mutex<Option<LogTail>>,
    /// Where its records lie, once somebody has looked at one of them.
    pub places: Mutex<Option<RecordPositions>>,
    /// The commit path of the log, opened with the first record.
    pub log: tokio::sync::Mutex<LogHandle>,
}

/// The priority in the configuration of a manifest.
pub(crate) fn priority_of(configuration: &serde_json::Value) -> Priority {
    let number = configuration.get("priority").and_then(serde_json::Value::as_u64);
    number.and_then(|number| Priority::new(u32::try_from(number).ok()?)).unwrap_or_default()
}

/// The scoring rules of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskRules {
    pub class: TaskClass,
    /// Its name and version in records.
    pub name: String,
    /// Version of the class.
    pub version: String,
    /// Names of its cases: iteration `i` uses case `i` modulo their number.
    pub cases: Vec<String>,
}

#[derive(Clone, Debug)]
struct State {
    /// The current queue, once known.
    at: Option<RunRef>,
    phase: RunPhase,
    /// Why this coordinator cannot tend it.
    trouble: Option<String>,
    /// Places of its log that this coordinator found damaged.
    damaged: u64,
    /// Dialogues whose records this coordinator found to be lost, by what the queue remembered.
    lost: u64,
    rework: Rework,
}

/// What a model of a run has left to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelLeft {
    /// Dialogues without a record.
    pub unrecorded: u64,
    /// Dialogues with a record that are to be asked again.
    pub again: u64,
}

struct Table {
    aggregate: DialogueTable,
    /// By model, in the order of the plan.
    rates: Vec<Rate>,
    /// Dialogues with a record, by model.
    recorded: Vec<u64>,
    remarks: Remarks,
    usage: UsageTable,
    /// `None` where no cap can count it.
    spending: Option<SpendingTable>,
    /// The seals, as far as they were read.
    seals: Seals,
    /// The positions up to which the log's segments are in the table.
    folded: Ends,
}

/// A record of the log.
pub(crate) struct FoldedRecord {
    pub ticket: u64,
    pub summary: Summary,
}

/// Maximum valid generation. Redis counts exactly up to 2^53, and no run comes near this.
const GENERATION_MAX: u64 = 1 << 52;

/// A seal that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct PendingSeal {
    pub number: u32,
    pub event: SealEvent,
    /// The positions up to which the log's segments were in the table.
    folded: Ends,
}

impl PendingSeal {
    fn of(table: &Table, event: SealEvent) -> Self {
        Self { number: table.seals.next(), event, folded: table.folded.clone() }
    }
}

impl Run {
    /// Assembles a run from its manifest and plan. Reads the pack's tasks, so do not call it from async code.
    pub(crate) fn of(manifest: RunManifest, planned: Planned, writer: WriterId, after: u64) -> Result<Self> {
        let Planned { configuration, pack, plan } = planned;
        let kind = |index: usize| {
            let task = &pack.tasks()[index];
            let class = TaskClass::resolve(&task.class, &task.version)
                .map_err(|error| conflict(format!("run {}: {error}", manifest.run)))?;
            let cases = task.cases.iter().map(|case| case.uid.clone()).collect();
            Ok(TaskRules { class, name: task.class.clone(), version: task.version.clone(), cases })
        };
        let tasks = plan.tasks.iter().map(|task| kind(task.index)).collect::<Result<Vec<_>>>()?;
        let uses = plan.tasks.iter().map(|task| TaskUse {
            label: task.label.clone(),
            pack_label: pack.tasks()[task.index].label.clone(),
        });
        let material = RunMaterial {
            run: manifest.run.clone(),
            seed: configuration.seed,
            pack_hash: pack.hash().as_str().to_owned(),
            tasks: uses.collect(),
            models: configuration.models.clone(),
            protected: manifest.protected,
            about: manifest.about.clone(),
        };
        let cipher = protection::cipher(&manifest).map_err(internal)?;
        let layout = Numbering::of(&plan);
        let cap = configuration.cap;
        // A judged benchmark may get a cap while its runs go on.
        let is_counted = cap.is_some() || benchmark_of(&manifest.run) != manifest.run;
        Ok(Self {
            models: configuration.models,
            state: Mutex::new(State {
                at: None,
                phase: RunPhase::Active,
                trouble: None,
                damaged: 0,
                lost: 0,
                rework: Rework::Nothing,
            }),
            table: Mutex::new(Table {
                aggregate: DialogueTable::new(layout.slots()),
                rates: vec![Rate::default(); plan.models.len()],
                recorded: vec![0; plan.models.len()],
                remarks: Remarks::new(plan.models.len()),
                usage: UsageTable::new(layout.slots(), plan.models.len()),
                spending: is_counted.then(|| SpendingTable::new(plan.models.len())),
                seals: Seals::default(),
                folded: Ends::new(),
            }),
            filled: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            joining: tokio::sync::Mutex::default(),
            filling: tokio::sync::Mutex::default(),
            tail: tokio::sync::Mutex::default(),
            places: Mutex::default(),
            log: tokio::sync::Mutex::default(),
            manifest,
            plan,
            layout,
            tasks,
            material,
            cap,
            cipher,
            writer,
            after,
        })
    }

    /// Its record log in this folder.
    pub(crate) fn log_source<'a>(&'a self, folder: &'a Path) -> LogSource<'a> {
        LogSource { run: self.id(), folder, cipher: self.cipher.as_ref(), numbering: &self.layout }
    }

    /// Its name.
    pub(crate) fn id(&self) -> &RunId {
        &self.manifest.run
    }

    /// Its share beside others of its submitter.
    pub(crate) fn priority(&self) -> Priority {
        priority_of(&self.manifest.configuration)
    }

    /// The current queue, if known.
    pub(crate) fn at(&self) -> Option<RunRef> {
        self.state().at.clone()
    }

    /// Notes that its queue was built. It has no units yet.
    pub(crate) fn set_at(&self, at: RunRef) {
        let mut state = self.state();
        if state.at.as_ref() != Some(&at) {
            self.filled.store(false, Ordering::Release);
            state.at = Some(at);
        }
    }

    pub(crate) fn phase(&self) -> RunPhase {
        self.state().phase
    }

    pub(crate) fn set_phase(&self, phase: RunPhase) {
        self.state().phase = phase;
    }

    /// Notes how a run has ended that was over: another coordinator may have let it go on to another end meanwhile.
    pub(crate) fn end_as(&self, phase: RunPhase) {
        let mut state = self.state();
        if state.phase.is_over() && phase.is_over() {
            state.phase = phase;
        }
    }

    /// Why this coordinator cannot tend it, as last seen.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Notes why this coordinator cannot tend it.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        self.state().trouble = trouble;
    }

    /// Notes a damaged place of its log.
    pub(crate) fn note_damage(&self) {
        self.state().damaged += 1;
    }

    /// Notes that the records of so many dialogues are lost.
    pub(crate) fn note_lost(&self, dialogues: u64) {
        self.state().lost += dialogues;
    }

    /// What its log has lost, in words; `None` once every dialogue has a record again.
    pub(crate) fn loss(&self) -> Option<String> {
        if self.table(DialogueTable::is_complete) {
            return None;
        }
        let State { damaged, lost, .. } = *self.state();
        let damaged = (damaged > 0).then(|| format!("the record log is damaged in {damaged} places"));
        let lost = (lost > 0).then(|| format!("the records of {lost} dialogues are lost"));
        let told: Vec<String> = [damaged, lost].into_iter().flatten().collect();
        (!told.is_empty()).then(|| format!("{}: what has no record is asked again", told.join(", ")))
    }

    /// What of it is to be asked again.
    pub(crate) fn rework(&self) -> Rework {
        self.state().rework.clone()
    }

    /// Notes what of it is to be asked again.
    pub(crate) fn set_rework(&self, rework: Rework) {
        self.state().rework = rework;
    }

    /// What each model has left, in the order of the plan; `None` if that cannot be said before its retries are read.
    pub(crate) fn left(&self) -> Option<Vec<ModelLeft>> {
        let rework = self.rework();
        let table = self.lock_table();
        let planned = self.plan.models.iter().map(|model| model.dialogues(self.plan.tasks.len()));
        let unrecorded =
            planned.zip(&table.recorded).map(|(planned, recorded)| planned.saturating_sub(*recorded));
        let mut left: Vec<ModelLeft> =
            unrecorded.map(|unrecorded| ModelLeft { unrecorded, again: 0 }).collect();
        match rework {
            Rework::Nothing => {}
            Rework::Unread => return None,
            Rework::Read { asked, .. } => {
                for (slot, asked) in asked {
                    let (model, ..) = self.layout.place(slot);
                    left[model].again += u64::from(table.aggregate.is_to_ask_again(slot, asked));
                }
            }
        }
        Some(left)
    }

    /// Whether the queue holds every unit of the plan that is needed.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Notes that the queue holds every unit.
    pub(crate) fn set_filled(&self) {
        self.filled.store(true, Ordering::Release);
    }

    /// Forgets its queue: it was removed.
    pub(crate) fn clear_at(&self) {
        self.state().at = None;
        self.set_filled_no_more();
    }

    /// Whether this coordinator tends it. Other runs are only displayed.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Acquire)
    }

    /// Tends it from now on.
    pub(crate) fn attend(&self) {
        self.attended.store(true, Ordering::Release);
    }

    /// Notes that the queue may lack units, because it was lost.
    pub(crate) fn set_filled_no_more(&self) {
        self.filled.store(false, Ordering::Release);
    }

    /// Reads the table of its dialogues.
    pub(crate) fn table<T>(&self, read: impl FnOnce(&DialogueTable) -> T) -> T {
        read(&self.lock_table().aggregate)
    }

    /// The rate of a model, by its index in the plan; `in_hand` tells whether any of its work is leased.
    pub(crate) fn speed(&self, model: usize, in_hand: bool, now: Duration) -> Speed {
        let mut table = self.lock_table();
        let Some(rate) = table.rates.get_mut(model) else { return Speed::default() };
        rate.working(now, in_hand);
        rate.per_second(now)
    }

    /// Reads the remarks of its records.
    pub(crate) fn remarks<T>(&self, read: impl FnOnce(&Remarks) -> T) -> T {
        read(&self.lock_table().remarks)
    }

    /// Reads what its dialogues used.
    pub(crate) fn usage<T>(&self, read: impl FnOnce(&UsageTable) -> T) -> T {
        read(&self.lock_table().usage)
    }

    /// Tokens that its records have used; nothing where no cap can count them.
    pub(crate) fn spent(&self) -> u64 {
        let table = self.lock_table();
        let used = table.spending.as_ref().map_or(&[][..], SpendingTable::of_models);
        used.iter().map(tokens_of).fold(0, u64::saturating_add)
    }

    /// The row of a record; `None` if its dialogue is not planned.
    fn row(&self, place: Position, record: &FoldedRecord, seals: &Seals) -> Option<(Slot, DialogueRow)> {
        let FoldedRecord { ticket, summary } = record;
        let slot = self.layout.slot_of(&summary.key)?;
        let (_, task, _) = self.layout.place(slot);
        // Scores may lack their headline, which is no zero.
        let outcome = match &summary.outcome {
            OutcomeSummary::Scored(scores) => Ok(self.tasks[task].class.headline_of(scores)),
            OutcomeSummary::Unscored { cause, .. } | OutcomeSummary::Failed { cause, .. } => Err(*cause),
        };
        Some((slot, DialogueRow { ticket: *ticket, outcome, late: seals.is_late(place, *ticket) }))
    }

    /// Adds durable records, all of which are before `place`, and passes those that count now to `counted`. `now` is given if
    /// they contribute to the rate; records already in the log do not.
    pub(crate) fn fold(
        &self,
        place: Position,
        records: Vec<FoldedRecord>,
        now: Option<Duration>,
        mut counted: impl FnMut(Slot, DialogueRow, &Summary),
    ) {
        let mut guard = self.lock_table();
        let table = &mut *guard;
        let folded = table.folded.entry(place.segment).or_default();
        if folded.bytes < place.end.bytes {
            *folded = place.end;
        }
        for record in records {
            // An invalid generation says nothing about the queue; the record itself counts as for every reader.
            let generation = Some(record.summary.attempt.generation).filter(|given| *given <= GENERATION_MAX);
            table.aggregate.note(record.ticket, generation.unwrap_or_default());
            let Some((slot, row)) = self.row(place, &record, &table.seals) else { continue };
            let (summary, used) = (&record.summary, record.summary.usage());
            let (model, ..) = self.layout.place(slot);
            if let Some(spending) = &mut table.spending {
                spending.add(&summary.attempt.id, model, &used);
            }
            table.recorded[model] += u64::from(table.aggregate.get(slot).is_none());
            if table.aggregate.fold(slot, row) {
                table.remarks.counts(slot, model, summary);
                table.usage.counts(slot, model, &used, summary.ended_at);
                if let (Some(now), Some(rate)) = (now, table.rates.get_mut(model)) {
                    rate.add(now, summary.ended_at, 1, summary.completion_tokens());
                }
                counted(slot, row, summary);
            }
        }
    }

    /// Notes seals. Returns whether the table is still valid; if not, it disagrees with these seals, and the log must be read
    /// again.
    pub(crate) fn learn(&self, seals: Seals) -> bool {
        let mut table = self.lock_table();
        if seals.next() <= table.seals.next() {
            return true; // Written by this coordinator.
        }
        let holds = seals.agree(&table.seals, &table.folded);
        table.seals = seals;
        holds
    }

    /// The seal that fixes which records count; `None` if that is fixed, or a dialogue has no record. It holds only once it is
    /// [written](Self::seal): nobody may take a run for closed whose seal could not be.
    pub(crate) fn closing(&self) -> Option<PendingSeal> {
        let table = self.lock_table();
        if table.seals.is_closed() || !table.aggregate.is_complete() {
            return None;
        }
        Some(PendingSeal::of(&table, SealEvent::Closed(table.folded.clone())))
    }

    /// The seal from which on records with a higher ticket count again; `None` if the run is not closed.
    pub(crate) fn reopening(&self, ticket: u64) -> Option<PendingSeal> {
        let table = self.lock_table();
        table.seals.is_closed().then(|| PendingSeal::of(&table, SealEvent::Reopened(ticket)))
    }

    /// Notes that a seal was written. `false` if records came, or other seals were read, since it was made: what they were judged
    /// by is not what is written now, and the log must be read anew.
    pub(crate) fn seal(&self, written: PendingSeal) -> bool {
        let mut table = self.lock_table();
        if table.seals.next() != written.number || table.folded != written.folded {
            return false;
        }
        table.seals.push(written.event);
        true
    }

    /// Whether the records that count are fixed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock_table().seals.is_closed()
    }

    /// The specification with which the queue creates the run in this generation.
    pub(crate) fn spec(&self, config: &CoordinatorOptions, generation: u64) -> RunSpec {
        let ticket_floor = self.table(DialogueTable::highest_ticket);
        RunSpec {
            run: self.id().clone(),
            plan_hash: self.manifest.plan_hash.clone(),
            lease_for: config.lease_for,
            max_strikes: config.max_strikes,
            generation,
            ticket_floor,
        }
    }

    /// The winners among `limit` dialogues from `first` on, and where to continue; `None` at the end.
    pub(crate) fn winners(&self, first: Slot, limit: usize) -> (Vec<Commit>, Option<Slot>) {
        let end = (first + limit).min(self.layout.slots());
        let found: Vec<(Slot, DialogueRow)> =
            self.table(|table| (first..end).filter_map(|slot| Some((slot, table.get(slot)?))).collect());
        let commits = found.into_iter().map(|(slot, row)| self.commit(slot, row)).collect();
        (commits, (end < self.layout.slots()).then_some(end))
    }

    /// The commit of a record for the queue.
    pub(crate) fn commit(&self, slot: Slot, row: DialogueRow) -> Commit {
        let record = Committed { scored: row.outcome.is_ok(), ticket: row.ticket };
        Commit { key: self.layout.key(slot), record }
    }

    /// The key of a dialogue of a unit.
    pub(crate) fn key(&self, model: usize, task: usize, iteration: Iteration) -> Option<DialogueKey> {
        self.layout.slot(model, task, iteration).map(|slot| self.layout.key(slot))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // These are plain values, consistent even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
