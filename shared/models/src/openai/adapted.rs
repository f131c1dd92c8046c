//! What was learnt about a server: how its requests differ from those that were meant. Races between calls are harmless: each
//! learns the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::quirks::FIELDS;

/// What was learnt of a model at its server: what it refuses, and how long its context is. Clones share it, so that a connector
/// with another key, or for another run, need not learn it again.
#[derive(Clone, Debug, Default)]
pub struct Learnt(pub(super) Arc<Adapted>);

/// What was learnt about a server.
#[derive(Debug, Default)]
pub(super) struct Adapted {
    /// The context in tokens; 0 while unknown.
    pub(super) context_tokens: AtomicU32,
    /// System messages are merged into the user's, and neighbours with one role into one.
    pub(super) fold_roles: AtomicBool,
    /// The token limit is called `max_completion_tokens`.
    pub(super) completion_tokens: AtomicBool,
    /// The model generates at most so many tokens; 0 if unknown.
    pub(super) most_tokens: AtomicU32,
    /// There is no `/tokenize`.
    pub(super) no_tokenize: AtomicBool,
    /// It has answered.
    pub(super) has_answered: AtomicBool,
    /// How often it broke off before it said anything, while it had not answered yet.
    mute: AtomicU32,
    /// How many steps were taken with each field.
    fields: [AtomicUsize; FIELDS.len()],
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestForm {
    pub(super) fold_roles: bool,
    pub(super) completion_tokens: bool,
    /// Fewer tokens than were meant may be asked for.
    pub(super) is_limited: bool,
    pub(super) fields: FieldUse,
}

impl RequestForm {
    /// What differs from the request that was meant, for records and people, of the parts that are changed.
    pub(super) fn words(&self, is_changed: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let taken = FIELDS.iter().zip(self.fields.0);
        let fields =
            taken.filter_map(|(field, taken)| Some((field.name, *field.steps.get(taken.checked_sub(1)?)?)));
        let others = [
            ("messages", self.fold_roles, "system message in the user's"),
            ("max_tokens", self.completion_tokens, "max_completion_tokens for max_tokens"),
            ("fewer", self.is_limited, "fewer max_tokens"),
        ];
        let others = others.into_iter().filter(|(_, is_so, _)| *is_so).map(|(part, _, words)| (part, words));
        fields.chain(others).filter(|(part, _)| is_changed(part)).map(|(_, words)| words).collect()
    }
}

/// How many steps were taken with each of [`FIELDS`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldUse([usize; FIELDS.len()]);

impl FieldUse {
    /// Whether the field is left out.
    pub(super) fn lacks(&self, name: &str) -> bool {
        FIELDS.iter().zip(self.0).any(|(field, taken)| field.name == name && taken == field.steps.len())
    }

    /// The seed as this server takes it.
    pub(super) fn seed(&self, seed: u64) -> Option<u64> {
        /// As many bits as a signed number of 32 has. They are as random as all of it.
        const NARROW: u64 = (1 << 31) - 1;
        let (at, steps) = Adapted::NARROW_SEED;
        let sent = if self.0[at] >= steps { seed & NARROW } else { seed };
        (!self.lacks("seed")).then_some(sent)
    }
}

impl Adapted {
    /// The server broke off before it said anything; whether that may be due to the numbers in the request. Once it may be by chance.
    pub(super) fn is_mute(&self) -> bool {
        const BY_CHANCE_MAX: u32 = 1;
        let before = self.mute.fetch_add(1, Ordering::Relaxed);
        before >= BY_CHANCE_MAX && !self.has_answered.load(Ordering::Relaxed)
    }

    /// The number of seeds among the fields, and the steps that make them narrow.
    pub(super) const NARROW_SEED: (usize, usize) = (0, 1);

    /// Takes at least so many steps with a field, and one more than the refused request had. Returns whether that is news;
    /// `None` if nothing is left to do.
    pub(super) fn refused(&self, field: usize, steps: usize, sent: &FieldUse) -> Option<bool> {
        let known = FIELDS.get(field)?;
        let taken = sent.0[field];
        if taken >= known.steps.len() {
            return None;
        }
        let steps = (taken + 1).max(steps).min(known.steps.len());
        Some(self.fields[field].fetch_max(steps, Ordering::Relaxed) < steps)
    }

    /// How requests are sent at present.
    pub(super) fn form(&self) -> RequestForm {
        RequestForm {
            fold_roles: self.fold_roles.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            is_limited: self.most_tokens.load(Ordering::Relaxed) > 0,
            fields: FieldUse(std::array::from_fn(|at| self.fields[at].load(Ordering::Relaxed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_narrowed_before_it_is_left_out_and_never_twice() {
        let learnt = Adapted::default();
        let whole = learnt.form().fields;
        assert_eq!(whole.seed(u64::MAX), Some(u64::MAX));
        assert_eq!(learnt.refused(0, 1, &whole), Some(true));
        assert_eq!(learnt.form().words(|_| true), ["seed in 31 bits"]);
        assert_eq!(learnt.refused(0, 1, &whole), Some(false), "another call, sent before that");
        let narrow = learnt.form().fields;
        assert_eq!(narrow.seed(u64::MAX), Some(0x7fff_ffff));
        assert_eq!(learnt.refused(0, 1, &narrow), Some(true));
        let without = learnt.form().fields;
        assert_eq!((without.seed(1), without.lacks("stream_options")), (None, false));
        assert_eq!(learnt.refused(0, 1, &without), None);
        assert_eq!(learnt.form().words(|_| true), ["without seed"]);
    }
}
