//! The table of a run's dialogues: for each the record that counts, its headline score or its cause of failure.
//!
//! The table depends only on the *set* of records, not on their order or repetition. So do the means, which are summed in
//! the order of the plan. A coordinator that has followed a run from its first record therefore shows the same digits as
//! one that has just read its log.

use std::collections::BTreeMap;

use domain::control::CellView;
use domain::{FailureCause, Mean};
use results::log::{EntryLocation, WinnerRank};

use crate::plan::Plan;
use crate::plan::numbering::{Numbering, Slot};

/// The part of a record in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DialogueRow {
    /// Its place in the log.
    pub location: EntryLocation,
    /// Its headline score, if the scores have one, or why there are no scores.
    pub outcome: Result<Option<f64>, FailureCause>,
}

impl DialogueRow {
    /// Decides whether it counts.
    pub fn rank(&self) -> WinnerRank {
        WinnerRank::new(self.outcome.is_ok(), self.location)
    }
}

/// One slot per dialogue.
#[derive(Clone, Debug, PartialEq)]
pub struct DialogueTable {
    /// The record that counts for each dialogue.
    rows: Vec<Option<DialogueRow>>,
    scored: u64,
    /// In the order of [`FailureCause::ALL`].
    failed: [u64; FailureCause::ALL.len()],
    /// The last record of dialogues that failed more than once; the first one counts.
    repeated: BTreeMap<Slot, EntryLocation>,
    /// The highest generation seen, in winners and others.
    highest_generation: u64,
}

impl DialogueTable {
    /// A table of this many dialogues without records.
    pub fn new(slots: usize) -> Self {
        Self {
            rows: vec![None; slots],
            scored: 0,
            failed: [0; FailureCause::ALL.len()],
            repeated: BTreeMap::new(),
            highest_generation: 0,
        }
    }

    /// Adds a record; returns whether it counts now.
    pub fn fold(&mut self, slot: Slot, entry: DialogueRow) -> bool {
        if let Some(counted) = self.get(slot) {
            if counted.outcome.is_err() && entry.outcome.is_err() && entry.location != counted.location {
                let later = entry.location.max(counted.location);
                self.repeated.entry(slot).and_modify(|last| *last = later.max(*last)).or_insert(later);
            }
            if entry.rank() >= counted.rank() {
                return false;
            }
            *self.count(counted) -= 1;
        }
        *self.count(entry) += 1;
        self.rows[slot] = Some(entry);
        if entry.outcome.is_ok() {
            self.repeated.remove(&slot);
        }
        true
    }

    /// How many dialogues ended as this one.
    fn count(&mut self, row: DialogueRow) -> &mut u64 {
        match row.outcome {
            Ok(_) => &mut self.scored,
            Err(cause) => &mut self.failed[cause as usize],
        }
    }

    /// Notes the generation of a record, even of an unplanned dialogue: the queue must continue above it.
    pub fn note_generation(&mut self, generation: u64) {
        self.highest_generation = self.highest_generation.max(generation);
    }

    /// The record that counts for a dialogue.
    pub fn get(&self, slot: Slot) -> Option<DialogueRow> {
        self.rows[slot]
    }

    /// Whether a dialogue failed and has no record behind `asked`.
    pub fn is_to_ask_again(&self, slot: Slot, asked: EntryLocation) -> bool {
        let last =
            |row: DialogueRow| self.repeated.get(&slot).map_or(row.location, |last| *last.max(&row.location));
        self.get(slot).is_some_and(|row| row.outcome.is_err() && last(row) < asked)
    }

    /// Where the record lies that counts, for every dialogue.
    pub fn locations(&self) -> Vec<Option<EntryLocation>> {
        self.rows.iter().map(|row| row.map(|row| row.location)).collect()
    }

    /// Number of dialogues.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Dialogues whose record has scores.
    pub fn scored(&self) -> u64 {
        self.scored
    }

    /// Dialogues whose record is a failure.
    pub fn failed(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Failed dialogues by cause, those that occur.
    pub fn failures(&self) -> Vec<(FailureCause, u64)> {
        FailureCause::ALL.into_iter().zip(self.failed).filter(|(_, count)| *count > 0).collect()
    }

    /// Whether every dialogue has a record.
    pub fn is_complete(&self) -> bool {
        self.scored + self.failed() == self.len() as u64
    }

    /// The highest generation of all records; 0 if there are none.
    pub fn highest_generation(&self) -> u64 {
        self.highest_generation
    }

    /// Scores by task and model in the order of the plan. Sums follow the order of the dialogues, because floating-point
    /// sums depend on it.
    pub fn cells(&self, plan: &Plan, layout: &Numbering) -> Vec<CellView> {
        let mut cells = Vec::with_capacity(plan.tasks.len() * plan.models.len());
        for (t, task) in plan.tasks.iter().enumerate() {
            for (m, model) in plan.models.iter().enumerate() {
                let rows = || layout.cell(m, t).map(|slot| self.rows[slot]);
                let Mean { value: mean, covered, planned } =
                    Mean::of(rows().map(|row| row.and_then(|row| row.outcome.ok().flatten())));
                let scored = rows().flatten().filter(|row| row.outcome.is_ok()).count() as u64;
                let missing = scored - covered;
                let failed = rows().flatten().count() as u64 - scored;
                let (task, model) = (task.label.clone(), model.label.clone());
                let odd = Vec::new();
                cells.push(CellView { task, model, scored, failed, planned, mean, missing, odd });
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use results::log::SegmentId;

    use super::*;
    use crate::plan::{PlannedModel, PlannedTask};

    fn plan() -> Plan {
        let model =
            |label: &str| PlannedModel { label: label.into(), iterations: 3, of_task: BTreeMap::default() };
        let task = |label: &str| PlannedTask { label: label.into(), index: 0, cases: 1, weight: 1 };
        Plan { models: vec![model("a"), model("b")], tasks: vec![task("s"), task("t")] }
    }

    fn at(place: u64) -> EntryLocation {
        EntryLocation { segment: SegmentId::first(1), offset: place, line: 0 }
    }

    /// The rule in words, with nothing in common with the table but the plan: the first scored record of the log, else the first
    /// failed one.
    fn recomputed(records: &[(Slot, DialogueRow)], slot: Slot) -> Option<DialogueRow> {
        let of_slot = || records.iter().filter(|(at, _)| *at == slot).map(|(_, entry)| *entry);
        let first = |scored: bool| {
            of_slot().filter(|entry| entry.outcome.is_ok() == scored).min_by_key(|entry| entry.location)
        };
        first(true).or(first(false))
    }

    #[test]
    fn a_failure_is_to_be_asked_again_until_there_is_a_later_record() {
        let failed = |place| DialogueRow { location: at(place), outcome: Err(FailureCause::Timeout) };
        let mut table = DialogueTable::new(2);
        table.fold(0, failed(5));
        assert!(
            table.is_to_ask_again(0, at(6))
                && !table.is_to_ask_again(0, at(5))
                && !table.is_to_ask_again(1, at(6))
        );
        // In any order, and however often.
        for place in [9, 3, 9, 7] {
            table.fold(0, failed(place));
        }
        assert_eq!(table.get(0), Some(failed(3)));
        assert!(!table.is_to_ask_again(0, at(8)) && table.is_to_ask_again(0, at(10)));
        table.fold(0, DialogueRow { location: at(11), outcome: Ok(Some(1.0)) });
        assert!(!table.is_to_ask_again(0, at(20)));
    }

    proptest! {
        #[test]
        fn any_order_and_any_repetition_gives_what_a_recompute_gives(
            outcomes in prop::collection::vec(
                (0..12_usize, prop_oneof![
                    prop::option::of(0.0..1.0_f64).prop_map(Ok),
                    (0..FailureCause::ALL.len()).prop_map(|at| Err(FailureCause::ALL[at])),
                ]),
                0..60,
            ),
            order in prop::collection::vec(0..60_usize, 0..180),
        ) {
            let records: Vec<(Slot, DialogueRow)> = outcomes
                .into_iter()
                .enumerate()
                .map(|(place, (slot, outcome))| (slot, DialogueRow { location: at(place as u64 * 7 % 61), outcome }))
                .collect();
            let plan = plan();
            let layout = Numbering::of(&plan);
            let mut table = DialogueTable::new(layout.slots());
            // Some of them several times in a random order, then all of them backwards.
            let repeated = order.iter().filter_map(|at| records.get(*at));
            for (slot, entry) in repeated.chain(records.iter().rev()) {
                table.fold(*slot, *entry);
            }
            let mut fresh = DialogueTable::new(layout.slots());
            for slot in 0..layout.slots() {
                let expected = recomputed(&records, slot);
                prop_assert_eq!(table.get(slot), expected);
                if let Some(entry) = expected {
                    fresh.fold(slot, entry);
                }
            }
            let mut causes = BTreeMap::new();
            for slot in 0..layout.slots() {
                if let Some(DialogueRow { outcome: Err(cause), .. }) = table.get(slot) {
                    *causes.entry(cause).or_insert(0_u64) += 1;
                }
            }
            prop_assert_eq!(table.failures(), causes.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(table.cells(&plan, &layout), fresh.cells(&plan, &layout));
            prop_assert_eq!((table.scored(), table.failed()), (fresh.scored(), fresh.failed()));
        }
    }

    #[test]
    fn a_missing_headline_is_missing_from_the_mean_and_no_zero_in_it() {
        let plan = plan();
        let layout = Numbering::of(&plan);
        let mut table = DialogueTable::new(layout.slots());
        let outcomes = [Ok(Some(0.5)), Ok(None), Err(FailureCause::JudgeUnparseable)];
        for (slot, outcome) in outcomes.into_iter().enumerate() {
            table.fold(slot, DialogueRow { location: at(slot as u64), outcome });
            assert_eq!(table.get(slot).unwrap().outcome, outcome);
        }
        let cell = &table.cells(&plan, &layout)[0];
        assert_eq!((cell.scored, cell.missing, cell.failed, cell.mean), (2, 1, 1, Some(0.5)));
        assert_eq!(cell.covered_mean().to_string(), "0.500 (1/3)");
    }

    #[test]
    fn a_dialogue_takes_40_bytes() {
        assert_eq!(size_of::<Option<DialogueRow>>(), 40);
    }

    #[test]
    fn a_fold_says_whether_the_record_counts_now() {
        let mut table = DialogueTable::new(1);
        let failed = |place| DialogueRow { location: at(place), outcome: Err(FailureCause::Timeout) };
        let scored = |place| DialogueRow { location: at(place), outcome: Ok(Some(0.5)) };
        assert!(table.fold(0, failed(5)) && !table.fold(0, failed(5)) && table.is_complete());
        assert!(table.fold(0, failed(4)) && table.fold(0, scored(9)) && !table.fold(0, failed(1)));
        assert!(table.fold(0, scored(8)) && !table.fold(0, scored(9)));
        assert_eq!((table.scored(), table.failed()), (1, 0));
    }
}
