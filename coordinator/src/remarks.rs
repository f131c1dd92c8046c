//! What records say to people beside their scores: why dialogues failed, in whose words, and by which rules the others were
//! scored.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::control::RefusalView;
use domain::{FailureCause, ModelLabel};
use results::log::{OutcomeHead, RecordHead};

use crate::layout::Slot;

/// Different messages that are counted in a run. Servers that never say the same twice are heard no further.
const MESSAGES_KEPT_MAX: usize = 1024;

/// Different rules of scoring that are named of a model.
const SCORERS_KEPT_MAX: usize = 8;

/// Different failures that are shown of a run.
const REFUSALS_SHOWN_MAX: usize = 20;

/// What one record says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Remark {
    /// Tokens that its model generated.
    pub tokens: u64,
    failure: Option<(FailureCause, String)>,
    scorer: Option<String>,
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
        // Who did not score has nothing to compare.
        let scorer = failure.is_none().then(|| head.scorer.clone());
        Self { tokens: head.completion_tokens, failure, scorer }
    }
}

type Message = (usize, FailureCause, Arc<str>);

/// What the records that count say. Like the table of scores it is a function of their set, as long as the bounds hold.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    messages: Vec<(Message, u64)>,
    numbers: HashMap<Message, usize>,
    of_slot: HashMap<Slot, usize>,
    scorers: Vec<BTreeSet<String>>,
}

impl Remarks {
    /// Of so many models.
    pub(crate) fn new(models: usize) -> Self {
        Self { scorers: vec![BTreeSet::new(); models], ..Self::default() }
    }

    /// A record of this model counts now for its dialogue, instead of what counted before.
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

    /// Why dialogues failed, the commonest first.
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

    /// The rules that dialogues of a model were scored by.
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
    fn servers_that_never_say_the_same_twice_take_bounded_room() {
        let mut remarks = Remarks::new(1);
        for slot in 0..2 * MESSAGES_KEPT_MAX {
            remarks.counts(slot, 0, &failed(&slot.to_string()));
        }
        assert_eq!((remarks.messages.len(), told(&remarks).len()), (MESSAGES_KEPT_MAX, REFUSALS_SHOWN_MAX));
    }
}
