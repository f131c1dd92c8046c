//! What people need to know about records besides scores: why dialogues failed, with the message, and the rules by which
//! the others were scored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use domain::control::RefusalView;
use domain::{FailureCause, ModelLabel, ModelUsage, Oddities, Oddity};
use jiff::Timestamp;
use results::log::{OutcomeHead, RecordHead};

use crate::plan::numbering::Slot;

/// Maximum number of different messages counted in a run; further ones are ignored.
const MESSAGES_KEPT_MAX: usize = 1024;

/// Maximum number of scorer versions listed for a model.
const SCORERS_KEPT_MAX: usize = 8;

/// Maximum number of different failures shown for a run.
const REFUSALS_SHOWN_MAX: usize = 20;

/// The remarks of one record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Remark {
    /// Tokens that its model generated.
    pub tokens: u64,
    /// What its dialogue used.
    pub usage: ModelUsage,
    /// When its dialogue ended.
    pub ended: Timestamp,
    failure: Option<(FailureCause, String)>,
    scorer: Option<String>,
    /// What is odd about its answers.
    oddities: Oddities,
}

impl Remark {
    /// Of a record.
    pub(crate) fn of(head: &RecordHead) -> Self {
        let failure = match &head.outcome {
            OutcomeHead::Scored(_) => None,
            OutcomeHead::Unscored { cause, message } | OutcomeHead::Failed { cause, message } => {
                Some((*cause, message.clone()))
            }
        };
        // An unscored record has no scores to compare.
        let scorer = failure.is_none().then(|| head.scorer.clone());
        let (tokens, usage) = (head.completion_tokens(), head.usage());
        let oddities = head.oddities();
        Self { tokens, usage, ended: head.ended_at, failure, scorer, oddities }
    }
}

type Message = (usize, FailureCause, Arc<str>);

/// The remarks of the records that count. Within the bounds they depend only on the set of records, like the table of
/// scores.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    messages: Vec<(Message, u64)>,
    numbers: HashMap<Message, usize>,
    of_slot: HashMap<Slot, usize>,
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
    pub(crate) fn counts(&mut self, slot: Slot, model: usize, remark: &Remark) {
        if let Some(before) = self.of_slot.remove(&slot) {
            self.messages[before].1 -= 1;
        }
        if let (Some(scorer), Some(known)) = (&remark.scorer, self.scorers.get_mut(model))
            && !scorer.is_empty()
            && known.len() < SCORERS_KEPT_MAX
            && !known.contains(scorer)
        {
            known.insert(scorer.clone());
        }
        match remark.oddities {
            none if none.is_empty() => self.odd.remove(&slot),
            oddities => self.odd.insert(slot, oddities),
        };
        let Some((cause, message)) = &remark.failure else { return };
        let message: Message = (model, *cause, message.as_str().into());
        let number = match self.numbers.get(&message) {
            Some(number) => *number,
            None if self.messages.len() < MESSAGES_KEPT_MAX => {
                self.numbers.insert(message.clone(), self.messages.len());
                self.messages.push((message, 0));
                self.messages.len() - 1
            }
            None => return,
        };
        self.messages[number].1 += 1;
        self.of_slot.insert(slot, number);
    }

    /// The failures, the most frequent first.
    pub(crate) fn refusals(&self, label: impl Fn(usize) -> ModelLabel) -> Vec<RefusalView> {
        let mut told: Vec<&(Message, u64)> = self.messages.iter().filter(|(_, count)| *count > 0).collect();
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
    use super::*;

    fn failed(message: &str) -> Remark {
        Remark { failure: Some((FailureCause::BadRequest, message.to_owned())), ..Remark::default() }
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
        let scored = Remark { scorer: Some("2".to_owned()), ..Remark::default() };
        remarks.counts(5, 0, &scored);
        remarks.counts(9, 1, &scored);
        assert_eq!(told(&remarks), [of("m0", "no such route", 5)]);
        assert_eq!(remarks.scorers(0).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn odd_answers_are_counted_until_better_ones_replace_them() {
        let mut remarks = Remarks::new(2);
        let odd = Remark { oddities: [Oddity::NoFinishReason].into_iter().collect(), ..Remark::default() };
        (0..3).for_each(|slot| remarks.counts(slot, 1, &odd));
        remarks.counts(1, 1, &Remark::default());
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
