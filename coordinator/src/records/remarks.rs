//! What people need to know about records besides scores: why dialogues failed, with the message, and the rules by which
//! the others were scored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use domain::control::RefusalView;
use domain::cut_text::ShortName;
use domain::{FailureCause, ModelLabel, Oddities, Oddity};
use results::Summary;

use crate::plan::numbering::Slot;

/// Maximum number of different messages counted in a run; further ones are ignored.
const MESSAGES_KEPT_MAX: usize = 1024;

/// Maximum number of scorer versions listed for a model.
const SCORERS_KEPT_MAX: usize = 8;

/// Maximum number of different failures shown for a run.
const REFUSALS_SHOWN_MAX: usize = 20;

type Message = (usize, FailureCause, Arc<str>);

/// The remarks of the records that count. Within the bounds they depend only on the set of records, like the table of
/// scores.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// How many dialogues failed with each.
    messages: HashMap<Message, u64>,
    of_slot: HashMap<Slot, Message>,
    scorers: Vec<BTreeSet<String>>,
    /// The dialogues with odd answers.
    odd: BTreeMap<Slot, Oddities>,
}

impl Remarks {
    /// For this number of models.
    pub(crate) fn new(models: usize) -> Self {
        Self { scorers: vec![BTreeSet::new(); models], ..Self::default() }
    }

    /// A record of this model now counts for its dialogue, replacing an earlier one.
    pub(crate) fn counts(&mut self, slot: Slot, model: usize, record: &Summary) {
        if let Some(count) = self.of_slot.remove(&slot).and_then(|before| self.messages.get_mut(&before)) {
            *count -= 1;
        }
        match record.oddities() {
            none if none.is_empty() => self.odd.remove(&slot),
            oddities => self.odd.insert(slot, oddities),
        };
        let Some((cause, message)) = record.outcome.why() else {
            // An unscored record has no scores to compare.
            let scorer = &record.provenance.task.scorer;
            if let Some(known) = self.scorers.get_mut(model)
                && !scorer.is_empty()
                && known.len() < SCORERS_KEPT_MAX
                && !known.contains(scorer)
            {
                known.insert(ShortName::from(scorer.as_str()).0);
            }
            return;
        };
        let message: Message = (model, cause, message.into());
        let known = self.messages.get_key_value(&message).map(|(known, _)| known.clone());
        if known.is_some() || self.messages.len() < MESSAGES_KEPT_MAX {
            // Dialogues that failed alike share the words.
            let message = known.unwrap_or(message);
            *self.messages.entry(message.clone()).or_default() += 1;
            self.of_slot.insert(slot, message);
        }
    }

    /// The failures, the most frequent first.
    pub(crate) fn refusals(&self, label: impl Fn(usize) -> ModelLabel) -> Vec<RefusalView> {
        let mut told: Vec<(&Message, &u64)> = self.messages.iter().filter(|(_, count)| **count > 0).collect();
        told.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let shown = told.into_iter().take(REFUSALS_SHOWN_MAX);
        shown
            .map(|((model, cause, message), dialogues)| RefusalView {
                model: label(*model),
                cause: *cause,
                message: message.to_string(),
                dialogues: *dialogues,
            })
            .collect()
    }

    /// How many of these dialogues have answers that are odd in each way.
    pub(crate) fn odd(&self, slots: Range<Slot>) -> Vec<(Oddity, u64)> {
        Oddities::count(self.odd.range(slots).map(|(_, oddities)| *oddities))
    }

    /// The scorer versions of a model's dialogues.
    pub(crate) fn scorers(&self, model: usize) -> impl Iterator<Item = &str> {
        self.scorers.get(model).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use results::OutcomeSummary;

    use super::*;

    fn record(outcome: OutcomeSummary, oddities: Vec<Oddity>) -> Summary {
        let mut record = Summary::of(&results::testing::record("m", 0, true));
        record.rounds[0].answer.oddities = oddities;
        record.provenance.task.scorer = "2".to_owned();
        Summary { outcome, ..record }
    }

    fn scored(oddities: Vec<Oddity>) -> Summary {
        record(OutcomeSummary::Scored(domain::Scores::new()), oddities)
    }

    fn failed(message: &str) -> Summary {
        let (cause, message) = (FailureCause::BadRequest, message.to_owned());
        record(OutcomeSummary::Failed { cause, message }, Vec::new())
    }

    fn told(remarks: &Remarks) -> Vec<(String, String, u64)> {
        let refusals = remarks.refusals(|model| format!("m{model}").as_str().into());
        refusals.into_iter().map(|r| (r.model.to_string(), r.message, r.dialogues)).collect()
    }

    #[test]
    fn the_commonest_message_comes_first_and_a_score_takes_one_away() {
        let mut remarks = Remarks::new(2);
        for slot in 0..5 {
            remarks.counts(slot, 0, &failed("no such route"));
        }
        remarks.counts(9, 1, &failed("no such route"));
        remarks.counts(5, 0, &failed("odd"));
        remarks.counts(5, 0, &failed("odd"));
        let of = |model: &str, message: &str, count| (model.to_owned(), message.to_owned(), count);
        assert_eq!(
            told(&remarks),
            [of("m0", "no such route", 5), of("m0", "odd", 1), of("m1", "no such route", 1)]
        );
        remarks.counts(5, 0, &scored(Vec::new()));
        remarks.counts(9, 1, &scored(Vec::new()));
        assert_eq!(told(&remarks), [of("m0", "no such route", 5)]);
        assert_eq!(remarks.scorers(0).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn odd_answers_are_counted_until_better_ones_replace_them() {
        let mut remarks = Remarks::new(2);
        let odd = scored(vec![Oddity::NoFinishReason]);
        (0..3).for_each(|slot| remarks.counts(slot, 1, &odd));
        remarks.counts(1, 1, &scored(Vec::new()));
        assert_eq!(remarks.odd(0..3), [(Oddity::NoFinishReason, 2)]);
        assert_eq!(remarks.odd(1..2), []);
    }

    #[test]
    fn servers_that_never_say_the_same_twice_take_bounded_room() {
        let mut remarks = Remarks::new(1);
        for slot in 0..2 * MESSAGES_KEPT_MAX {
            remarks.counts(slot, 0, &failed(&slot.to_string()));
        }
        assert_eq!((remarks.messages.len(), told(&remarks).len()), (MESSAGES_KEPT_MAX, REFUSALS_SHOWN_MAX));
    }
}
