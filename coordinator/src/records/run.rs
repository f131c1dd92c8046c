//! A loaded run: its plan, which never changes, and its state.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use benchmarks::names::benchmark_of;
use domain::control::RunPhase;
use domain::exchange::{RunMaterial, TaskUse};
use domain::model::ModelSpec;
use domain::{DialogueKey, Iteration, Priority, RunId};
use queue::{RunRef, RunSpec};
use results::log::{EntryLocation, LogCipher, PlaceReader, ReadPosition};
use results::{OutcomeSummary, RunManifest, Summary};
use serde::de::DeserializeOwned;
use tasks::TaskClass;

use crate::errors::{Result, conflict, internal};
use crate::options::CoordinatorOptions;
use crate::plan::Plan;
use crate::plan::configuration::cap::{Cap, tokens_of};
use crate::plan::numbering::{Numbering, Slot};
use crate::plan::planned::Planned;
use crate::plan::protection;
use crate::records::dialogues::{DialogueRow, DialogueTable};
use crate::records::events::{Retries, RunEvent, RunStateFile};
use crate::records::log_handle::LogHandle;
use crate::records::rate::{Rate, Speed};
use crate::records::remarks::Remarks;
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
    /// Up to where its log was read.
    pub read_to: Mutex<Option<ReadPosition>>,
    /// Held while its state is changed.
    pub changing: tokio::sync::Mutex<()>,
    /// The log, once it is open for writing.
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
    /// What its log said last of its state, where, and how often it said something.
    known: Option<(EntryLocation, RunStateFile)>,
    changes: u64,
    /// Whether the sink has this state for lists.
    is_listed: bool,
    /// Why this coordinator cannot tend it.
    trouble: Option<String>,
    /// Places of its log that this coordinator found damaged.
    damaged: u64,
    /// Dialogues with neither record nor unit, which this coordinator found.
    lost: u64,
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
    retries: Retries,
}

/// Maximum valid generation. Redis counts exactly up to 2^53, and no run comes near this.
const GENERATION_MAX: u64 = 1 << 52;

impl Run {
    /// Assembles a run from its manifest and plan. Reads the pack's tasks, so do not call it from async code.
    pub(crate) fn of(manifest: RunManifest, planned: Planned, after: u64) -> Result<Self> {
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
                known: None,
                changes: 0,
                is_listed: true,
                trouble: None,
                damaged: 0,
                lost: 0,
            }),
            table: Mutex::new(Table {
                aggregate: DialogueTable::new(layout.slots()),
                rates: vec![Rate::default(); plan.models.len()],
                recorded: vec![0; plan.models.len()],
                remarks: Remarks::new(plan.models.len()),
                usage: UsageTable::new(layout.slots(), plan.models.len()),
                spending: is_counted.then(|| SpendingTable::new(plan.models.len())),
                retries: Retries::default(),
            }),
            filled: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            joining: tokio::sync::Mutex::default(),
            filling: tokio::sync::Mutex::default(),
            read_to: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            log: tokio::sync::Mutex::default(),
            manifest,
            plan,
            layout,
            tasks,
            material,
            cap,
            cipher,
            after,
        })
    }

    /// Its name.
    pub(crate) fn id(&self) -> &RunId {
        &self.manifest.run
    }

    /// A record of its log, or a part of it, and its JSON. Blocks.
    pub(crate) fn read<'r, R: DeserializeOwned>(
        &self,
        reader: &'r mut PlaceReader,
        location: EntryLocation,
    ) -> Result<(R, Cow<'r, str>)> {
        let found = reader.read(location).map_err(internal)?;
        found.ok_or_else(|| internal(format!("a record of run {} has moved", self.id())))
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

    /// What its log says of its state; `None` before it was begun.
    pub(crate) fn known_state(&self) -> Option<RunStateFile> {
        self.state().known.as_ref().map(|(_, state)| state.clone())
    }

    /// The same, with a number that rises with every change.
    pub(crate) fn numbered_state(&self) -> Option<(u64, RunStateFile)> {
        let state = self.state();
        state.known.as_ref().map(|(_, known)| (state.changes, known.clone()))
    }

    /// A state with the counts of this run, for lists.
    pub(crate) fn summed_up(&self, state: RunStateFile) -> RunStateFile {
        self.table(|table| RunStateFile { scored: table.scored(), failures: table.failures(), ..state })
    }

    /// Its phase. A run that was never begun is as its records are.
    pub(crate) fn phase(&self) -> RunPhase {
        let known = self.state().known.as_ref().map(|(_, state)| state.phase);
        let is_complete = || self.table(DialogueTable::is_complete);
        known.unwrap_or_else(|| if is_complete() { RunPhase::Finished } else { RunPhase::Active })
    }

    /// Takes in an event that is durable in its log. Returns the number of a retry.
    pub(crate) fn fold_event(&self, location: EntryLocation, event: RunEvent) -> Option<u64> {
        match event {
            RunEvent::State(known) => {
                let mut state = self.state();
                if state.known.as_ref().is_none_or(|(before, _)| *before < location) {
                    state.known = Some((location, known));
                    state.changes += 1;
                }
                None
            }
            RunEvent::Retried(units) => Some(self.lock_table().retries.note(location, &units, &self.layout)),
        }
    }

    /// Whether the sink has its state for lists.
    pub(crate) fn is_listed(&self) -> bool {
        self.state().is_listed
    }

    /// Notes whether it has.
    pub(crate) fn set_listed(&self, is_listed: bool) {
        self.state().is_listed = is_listed;
    }

    /// Why this coordinator cannot tend it, as last seen.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Notes why this coordinator cannot tend it.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        self.state().trouble = trouble;
    }

    /// Whether its log has lost something.
    pub(crate) fn is_damaged(&self) -> bool {
        self.state().damaged > 0
    }

    /// Notes a damaged place of its log.
    pub(crate) fn note_damage(&self) {
        self.state().damaged += 1;
    }

    /// Notes that so many dialogues have neither record nor unit.
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

    /// The dialogues with a pending retry, with its number.
    pub(crate) fn pending_retries(&self) -> BTreeMap<Slot, u64> {
        let table = self.lock_table();
        table.retries.pending(&table.aggregate)
    }

    /// What each model has left, in the order of the plan.
    pub(crate) fn left(&self) -> Vec<ModelLeft> {
        let is_reworked = self.known_state().is_some_and(|state| state.rework);
        let table = self.lock_table();
        let planned = self.plan.models.iter().map(|model| model.dialogues(self.plan.tasks.len()));
        let unrecorded =
            planned.zip(&table.recorded).map(|(planned, recorded)| planned.saturating_sub(*recorded));
        let mut left: Vec<ModelLeft> =
            unrecorded.map(|unrecorded| ModelLeft { unrecorded, again: 0 }).collect();
        if is_reworked {
            for slot in table.retries.pending(&table.aggregate).into_keys() {
                let (model, ..) = self.layout.place(slot);
                left[model].again += 1;
            }
        }
        left
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
        self.filled.store(false, Ordering::Release);
    }

    /// Whether this coordinator tends it. Other runs are only displayed.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Acquire)
    }

    /// Tends it from now on.
    pub(crate) fn attend(&self) {
        self.attended.store(true, Ordering::Release);
    }

    /// Reads the table of its dialogues, and its retries.
    pub(crate) fn asked<T>(&self, read: impl FnOnce(&DialogueTable, &Retries) -> T) -> T {
        let table = self.lock_table();
        read(&table.aggregate, &table.retries)
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
    fn row(&self, location: EntryLocation, summary: &Summary) -> Option<(Slot, DialogueRow)> {
        let slot = self.layout.slot_of(&summary.key)?;
        let (_, task, _) = self.layout.place(slot);
        // Scores may lack their headline, which is no zero.
        let outcome = match &summary.outcome {
            OutcomeSummary::Scored(scores) => Ok(self.tasks[task].class.headline_of(scores)),
            OutcomeSummary::Unscored { cause, .. } | OutcomeSummary::Failed { cause, .. } => Err(*cause),
        };
        Some((slot, DialogueRow { location, outcome }))
    }

    /// Adds durable records, and passes those that count now to `counted`. `now` is given if they contribute to the rate; records
    /// already in the log do not.
    pub(crate) fn fold(
        &self,
        records: impl IntoIterator<Item = (EntryLocation, impl Borrow<Summary>)>,
        now: Option<Duration>,
        mut counted: impl FnMut(Slot, DialogueRow, &Summary),
    ) {
        let mut guard = self.lock_table();
        let table = &mut *guard;
        for (location, summary) in records {
            let summary = summary.borrow();
            // An invalid generation says nothing about the queue; the record itself counts as for every reader.
            let generation = Some(summary.attempt.generation).filter(|given| *given <= GENERATION_MAX);
            table.aggregate.note_generation(generation.unwrap_or_default());
            let Some((slot, row)) = self.row(location, summary) else { continue };
            let used = summary.usage();
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

    /// The specification with which the queue creates the run in this generation.
    pub(crate) fn spec(&self, config: &CoordinatorOptions, generation: u64) -> RunSpec {
        RunSpec {
            run: self.id().clone(),
            plan_hash: self.manifest.plan_hash.clone(),
            lease_for: config.lease_for,
            max_strikes: config.max_strikes,
            generation,
        }
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
