//! One run in the memory model: its units, the place of each, and the sets that index them.

use std::collections::{BTreeMap, BTreeSet};

use domain::{ModelLabel, WorkerId};

use crate::run::{Parked, RunStatus};
use crate::unit::{Death, FREE_DEATHS, Fence, Lease, NewUnit, Reaped, Suspect, UnitId};

#[derive(Clone, Debug)]
pub(crate) struct MemoryRun {
    pub(crate) status: RunStatus,
    /// Whether a next leader is told of changes.
    is_kept: bool,
    /// Whether its status has changed since the last leader was told.
    pub(crate) is_touched: bool,
    /// The units that have.
    pub(crate) touched: BTreeSet<UnitId>,
    pub(crate) models: BTreeMap<ModelLabel, Model>,
    /// Units that are not done.
    pub(crate) units: BTreeMap<UnitId, MemoryUnit>,
    /// Suspects that are leased, by the worker that holds nothing else.
    pub(crate) alone: BTreeMap<WorkerId, UnitId>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) added: u64,
    /// Pending units that are not suspects.
    pub(crate) pending: BTreeSet<UnitId>,
    /// Pending suspects, by their number of deaths.
    pub(crate) suspects: BTreeSet<(usize, UnitId)>,
    pub(crate) leased: BTreeSet<UnitId>,
    pub(crate) dead: BTreeSet<UnitId>,
    /// Dialogues of the pending and leased units.
    pub(crate) backlog_dialogues: u64,
    pub(crate) parked: Option<Parked>,
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryUnit {
    pub(crate) content: NewUnit,
    /// Times leased so far.
    pub(crate) attempt: u32,
    pub(crate) deaths: Vec<Death>,
    pub(crate) place: UnitPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitPlace {
    Pending,
    Leased { worker: WorkerId, deadline_ms: u64 },
    Dead,
}

impl MemoryRun {
    /// A run without units.
    pub(crate) fn new(status: RunStatus, is_kept: bool) -> Self {
        Self {
            status,
            is_kept,
            is_touched: is_kept,
            touched: BTreeSet::new(),
            models: BTreeMap::new(),
            units: BTreeMap::new(),
            alone: BTreeMap::new(),
        }
    }

    /// Notes that its status has changed.
    pub(super) fn touch(&mut self) {
        self.is_touched = self.is_kept;
    }

    fn touch_unit(&mut self, id: UnitId) {
        if self.is_kept {
            self.touched.insert(id);
        }
    }

    /// Takes a unit in, at its place.
    pub(crate) fn insert(&mut self, id: UnitId, unit: MemoryUnit) {
        self.model(&unit.content.model.clone()).set(id, &unit, true);
        if let UnitPlace::Leased { worker, .. } = &unit.place
            && unit.is_suspect()
        {
            self.alone.insert(worker.clone(), id);
        }
        self.units.insert(id, unit);
        self.touch_unit(id);
    }

    pub(super) fn model(&mut self, label: &ModelLabel) -> &mut Model {
        self.models.entry(label.clone()).or_default()
    }

    pub(super) fn model_leased(&self, label: &ModelLabel) -> BTreeSet<UnitId> {
        self.models.get(label).map(|model| model.leased.clone()).unwrap_or_default()
    }

    /// Whether the fence belongs to a current lease.
    pub(super) fn holds(&self, fence: &Fence) -> bool {
        fence.generation == self.status.at.generation
            && self.units.get(&fence.unit).is_some_and(|unit| {
                unit.content.model == fence.model
                    && unit.attempt == fence.attempt
                    && matches!(unit.place, UnitPlace::Leased { .. })
            })
    }

    pub(super) fn lease_of(&self, id: UnitId, unit: &MemoryUnit, deadline_ms: u64) -> Lease {
        Lease {
            fence: Fence {
                generation: self.status.at.generation,
                model: unit.content.model.clone(),
                unit: id,
                attempt: unit.attempt,
            },
            dialogues: unit.content.dialogues,
            payload: unit.content.payload.clone(),
            suspect: unit.is_suspect(),
            deadline_ms,
        }
    }

    /// Whether the worker holds nothing of this run.
    pub(super) fn holds_nothing(&self, worker: &WorkerId) -> bool {
        let held = |id: &UnitId| {
            self.units.get(id).is_some_and(
                |unit| matches!(&unit.place, UnitPlace::Leased { worker: holder, .. } if holder == worker),
            )
        };
        !self.models.values().any(|model| model.leased.iter().any(held))
    }

    /// Moves a unit to a new place, applies further changes, and updates the sets.
    pub(super) fn place(&mut self, id: UnitId, place: UnitPlace, change: impl FnOnce(&mut MemoryUnit)) {
        let Some(unit) = self.units.get_mut(&id) else { return };
        let model = self.models.entry(unit.content.model.clone()).or_default();
        model.set(id, unit, false);
        if let UnitPlace::Leased { worker, .. } = &unit.place
            && self.alone.get(worker) == Some(&id)
        {
            self.alone.remove(worker);
        }
        unit.place = place;
        change(unit);
        model.set(id, unit, true);
        if let UnitPlace::Leased { worker, .. } = &unit.place
            && unit.is_suspect()
        {
            self.alone.insert(worker.clone(), id);
        }
        self.touch_unit(id);
    }

    /// Removes a leased unit for good.
    pub(super) fn remove(&mut self, id: UnitId) {
        // Made pending first, so that no worker holds it any more.
        self.place(id, UnitPlace::Pending, |_| {});
        if let Some(unit) = self.units.remove(&id) {
            self.model(&unit.content.model).set(id, &unit, false);
        }
    }

    /// Hands a pending unit to a worker.
    pub(super) fn hand_out(&mut self, id: UnitId, worker: &WorkerId, deadline_ms: u64) -> Option<Lease> {
        self.place(id, UnitPlace::Leased { worker: worker.clone(), deadline_ms }, |unit| unit.attempt += 1);
        self.units.get(&id).map(|unit| self.lease_of(id, unit, deadline_ms))
    }

    /// Ends a lease by the death of its worker.
    pub(super) fn take_over(&mut self, now_ms: u64, id: UnitId, cause: &str, reaped: &mut Reaped) {
        let Some(unit) = self.units.get(&id) else { return };
        let UnitPlace::Leased { worker, .. } = &unit.place else { return };
        let death =
            Death { worker: worker.clone(), attempt: unit.attempt, cause: cause.to_owned(), at_ms: now_ms };
        // The death that makes it a suspect is not a strike.
        let (place, list) = match unit.deaths.len().checked_sub(FREE_DEATHS) {
            None => (UnitPlace::Pending, &mut reaped.returned),
            Some(0) => (UnitPlace::Pending, &mut reaped.suspected),
            Some(strikes) if strikes < self.status.max_strikes as usize => {
                (UnitPlace::Pending, &mut reaped.struck)
            }
            Some(_) => (UnitPlace::Dead, &mut reaped.dead),
        };
        list.push(id);
        self.place(id, place, |unit| unit.deaths.push(death));
    }

    pub(super) fn suspect(&self, id: UnitId) -> Option<Suspect> {
        let unit = self.units.get(&id).filter(|unit| unit.is_suspect())?;
        Some(Suspect {
            unit: id,
            model: unit.content.model.clone(),
            dialogues: unit.content.dialogues,
            payload: unit.content.payload.clone(),
            deaths: unit.deaths.clone(),
            dead: unit.place == UnitPlace::Dead,
        })
    }
}

impl MemoryUnit {
    /// Whether it is a suspect or a dead letter.
    pub(crate) fn is_suspect(&self) -> bool {
        self.deaths.len() > FREE_DEATHS
    }
}

impl Model {
    /// Puts a unit into the set of its place, or takes it out.
    pub(super) fn set(&mut self, id: UnitId, unit: &MemoryUnit, into: bool) {
        let set = match &unit.place {
            UnitPlace::Pending if unit.is_suspect() => {
                let rank = (unit.deaths.len(), id);
                let changed = if into { self.suspects.insert(rank) } else { self.suspects.remove(&rank) };
                debug_assert!(changed, "unit {id} was not in the set of its place");
                return self.count(unit, into);
            }
            UnitPlace::Pending => &mut self.pending,
            UnitPlace::Leased { .. } => &mut self.leased,
            UnitPlace::Dead => &mut self.dead,
        };
        let changed = if into { set.insert(id) } else { set.remove(&id) };
        debug_assert!(changed, "unit {id} was not in the set of its place");
        self.count(unit, into);
    }

    pub(super) fn count(&mut self, unit: &MemoryUnit, into: bool) {
        if unit.place == UnitPlace::Dead {
            return;
        }
        let dialogues = u64::from(unit.content.dialogues);
        if into { self.backlog_dialogues += dialogues } else { self.backlog_dialogues -= dialogues }
    }

    pub(super) fn is_parked(&self, now_ms: u64) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.until_ms > now_ms)
    }
}
