//! What the dialogues that count have used, by model, and when the last of them ended; and what all records have used.
//!
//! Like the table of scores, the sums depend only on the set of records: what a record that no longer counts had used is taken
//! off again. So each dialogue keeps its own numbers, in few bytes.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use domain::control::MINUTES_MAX;
use domain::{ModelUsage, RecordId};
use jiff::Timestamp;

use crate::plan::numbering::Slot;

/// Seconds in a minute.
const MINUTE_S: i64 = 60;

/// What one dialogue used. Larger numbers than fit are cut off: they are no numbers of a dialogue.
#[derive(Clone, Copy, Debug, Default)]
struct SlotUsage {
    prompt_tokens: u32,
    cached_tokens: u32,
    completion_tokens: u32,
    answer_ms: u32,
    failed_calls: u16,
    answers: u8,
    /// Bits: it has an answer; a server did not count its tokens.
    marks: u8,
}

const ANSWERED: u8 = 1;
const UNCOUNTED: u8 = 2;

impl SlotUsage {
    fn of(used: &ModelUsage) -> Self {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            prompt_tokens: small(used.prompt_tokens),
            cached_tokens: small(used.cached_tokens),
            completion_tokens: small(used.completion_tokens),
            answer_ms: small(used.answer_ms),
            failed_calls: u16::try_from(used.failed_calls).unwrap_or(u16::MAX),
            answers: u8::try_from(used.answers).unwrap_or(u8::MAX),
            marks: ANSWERED * u8::from(used.dialogues > 0) + UNCOUNTED * u8::from(used.uncounted > 0),
        }
    }

    fn whole(self) -> ModelUsage {
        ModelUsage {
            dialogues: u64::from(self.marks & ANSWERED != 0),
            uncounted: u64::from(self.marks & UNCOUNTED != 0),
            prompt_tokens: self.prompt_tokens.into(),
            cached_tokens: self.cached_tokens.into(),
            completion_tokens: self.completion_tokens.into(),
            answers: self.answers.into(),
            answer_ms: self.answer_ms.into(),
            failed_calls: self.failed_calls.into(),
        }
    }
}

/// The sums of a run.
#[derive(Debug, Default)]
pub(crate) struct UsageTable {
    slots: Vec<SlotUsage>,
    models: Vec<ModelUsage>,
    /// Dialogues by the minute in which they ended, since the Unix epoch: the last [`MINUTES_MAX`] before the latest, and that.
    minutes: BTreeMap<i64, u64>,
    latest: Option<Timestamp>,
}

impl UsageTable {
    /// For this number of dialogues and models.
    pub(crate) fn new(slots: usize, models: usize) -> Self {
        Self {
            slots: vec![SlotUsage::default(); slots],
            models: vec![ModelUsage::default(); models],
            ..Self::default()
        }
    }

    /// A record of this model now counts for its dialogue, replacing an earlier one.
    pub(crate) fn counts(&mut self, slot: Slot, model: usize, used: &ModelUsage, ended: Timestamp) {
        let (Some(own), Some(sum)) = (self.slots.get_mut(slot), self.models.get_mut(model)) else { return };
        let now = SlotUsage::of(used);
        *sum -= &std::mem::replace(own, now).whole();
        *sum += &now.whole();
        self.latest = self.latest.max(Some(ended));
        let last = self.latest.map_or(0, minute_of);
        *self.minutes.entry(minute_of(ended)).or_default() += 1;
        let first = last - MINUTES_MAX as i64;
        if self.minutes.first_key_value().is_some_and(|(minute, _)| *minute < first) {
            self.minutes = self.minutes.split_off(&first);
        }
    }

    /// What the dialogues of a model used.
    pub(crate) fn of_model(&self, model: usize) -> ModelUsage {
        self.models.get(model).copied().unwrap_or_default()
    }

    /// When the last dialogue ended.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        self.latest
    }

    /// Dialogues in each whole minute before this time, at most [`MINUTES_MAX`] and none from before `since`, the oldest first.
    pub(crate) fn per_minute(&self, since: Timestamp, until: Timestamp) -> Vec<u64> {
        let end = minute_of(until);
        let first = minute_of(since).max(end - MINUTES_MAX as i64);
        (first..end).map(|minute| self.minutes.get(&minute).copied().unwrap_or(0)).collect()
    }
}

fn minute_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(MINUTE_S)
}

/// What all records of a run have used, by model: what was paid for, whether a record counts or not. A record may be read more
/// than once, and it stands in the log more than once if a worker delivered it again. It was paid for once.
#[derive(Debug)]
pub(crate) struct SpendingTable {
    /// Hashes of the records in the sums: names would take five times as much room.
    seen: HashSet<u64>,
    hasher: RandomState,
    models: Vec<ModelUsage>,
}

impl SpendingTable {
    /// For this number of models.
    pub(crate) fn new(models: usize) -> Self {
        Self { seen: HashSet::new(), hasher: RandomState::new(), models: vec![ModelUsage::default(); models] }
    }

    /// Adds what a record of this model used, unless it is in the sums.
    pub(crate) fn add(&mut self, record: &RecordId, model: usize, used: &ModelUsage) {
        let Some(sum) = self.models.get_mut(model) else { return };
        if self.seen.insert(self.hasher.hash_one(record)) {
            *sum += used;
        }
    }

    /// What each model used, in the order of the plan.
    pub(crate) fn of_models(&self) -> &[ModelUsage] {
        &self.models
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(prompt_tokens: u64) -> ModelUsage {
        ModelUsage { dialogues: 1, prompt_tokens, answers: 1, answer_ms: 1500, ..ModelUsage::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_no_longer_counts_is_taken_off() {
        let mut table = UsageTable::new(2, 2);
        let failed = ModelUsage { failed_calls: 8, ..ModelUsage::default() };
        table.counts(0, 1, &failed, at(60));
        table.counts(0, 1, &used(700), at(120));
        table.counts(1, 1, &used(u64::MAX), at(90));
        table.counts(1, 1, &used(300), at(90));
        table.counts(9, 1, &used(1), at(90));
        assert_eq!(table.of_model(1), ModelUsage { dialogues: 2, answers: 2, answer_ms: 3000, ..used(1000) });
        assert_eq!((table.of_model(0), table.latest()), (ModelUsage::default(), Some(at(120))));
    }

    #[test]
    fn the_curve_has_whole_minutes_of_the_last_hour() {
        let mut table = UsageTable::new(1000, 1);
        for second in 0..300 {
            table.counts(second as usize, 0, &used(1), at(7200 + second));
        }
        assert_eq!(table.per_minute(at(7200), at(7200 + 299)), [60, 60, 60, 60]);
        assert_eq!(table.per_minute(at(0), at(7200 + 300)).len(), MINUTES_MAX);
        assert_eq!(table.per_minute(at(0), at(7200 + 3600)).iter().sum::<u64>(), 300);
        // A clock that is days ahead.
        table.counts(999, 0, &used(1), at(900_000));
        assert_eq!(table.minutes.len(), 1);
        assert!(table.per_minute(at(900_000), at(0)).is_empty());
    }

    #[test]
    fn a_million_dialogues_take_20_bytes_each() {
        assert_eq!(size_of::<SlotUsage>(), 20);
    }

    #[test]
    fn every_record_is_paid_for_once() {
        let used = |prompt_tokens| ModelUsage { dialogues: 1, prompt_tokens, ..ModelUsage::default() };
        let mut table = SpendingTable::new(2);
        let [first, again] = ["first", "again"].map(RecordId::new);
        for _ in 0..3 {
            table.add(&first, 1, &used(700));
            table.add(&again, 1, &used(300));
        }
        table.add(&RecordId::new("of no model"), 2, &used(1));
        let sums: Vec<u64> = table.of_models().iter().map(|sum| sum.prompt_tokens).collect();
        assert_eq!(sums, [0, 1000]);
    }
}
