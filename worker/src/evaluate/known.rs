//! A cache of verdicts.
//!
//! Judging is a pure function of task, case and answer, and models repeat themselves: a task has few cases, and a
//! correct count or list has one spelling. So verdicts are cached, within a size limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tasks::Verdict;

use super::Judgement;

/// Bytes of answers and verdicts (as text) per cache generation. There are two; in memory a verdict takes about four
/// times its text, so this is at most 8 MB.
const GENERATION_BYTES_MAX: usize = 1 << 20;

/// Maximum size of an answer with its verdict. Longer answers hardly ever repeat.
const ENTRY_BYTES_MAX: usize = 64 << 10;

/// Caches verdicts by task, case and answer. The answer itself is compared, not only its hash.
#[derive(Debug, Default)]
pub(super) struct KnownVerdicts(Mutex<Generations>);

/// An entry that is used moves from the old cache generation to the young one. When the young one is full, it becomes
/// the old one, and the old one is dropped. This keeps used entries without an ordered list.
#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    verdicts: HashMap<Judgement, CachedVerdict>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct CachedVerdict {
    verdict: Arc<Verdict>,
    bytes: usize,
}

impl KnownVerdicts {
    /// The cached verdict on an equal answer.
    pub(super) fn recall(&self, judgement: &Judgement) -> Option<Verdict> {
        if judgement.answer.len() > ENTRY_BYTES_MAX {
            return None;
        }
        let mut generations = self.generations();
        let kept = match generations.young.verdicts.get(judgement) {
            Some(kept) => kept.clone(),
            None => {
                let (judgement, kept) = generations.old.verdicts.remove_entry(judgement)?;
                generations.old.bytes -= kept.bytes;
                generations.keep(judgement, kept.clone());
                kept
            }
        };
        // Copied outside the lock.
        drop(generations);
        Some(Verdict::clone(&kept.verdict))
    }

    /// Stores a verdict of `verdict_bytes` as text.
    pub(super) fn keep(&self, judgement: &Judgement, verdict: &Verdict, verdict_bytes: usize) {
        let bytes = judgement.answer.len() + verdict_bytes;
        if bytes <= ENTRY_BYTES_MAX {
            let kept = CachedVerdict { verdict: Arc::new(verdict.clone()), bytes };
            self.generations().keep(judgement.clone(), kept);
        }
    }

    fn generations(&self) -> std::sync::MutexGuard<'_, Generations> {
        // A panic elsewhere cannot leave the maps inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn keep(&mut self, judgement: Judgement, kept: CachedVerdict) {
        if self.young.bytes + kept.bytes > GENERATION_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.bytes += kept.bytes;
        if let Some(before) = self.young.verdicts.insert(judgement, kept) {
            self.young.bytes -= before.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(task: usize, case: usize, answer: &str) -> Judgement {
        Judgement { task, case, answer: answer.into() }
    }

    fn verdict(score: f64) -> Verdict {
        let mut verdict = Verdict::default();
        verdict.scores.insert("combined".into(), score.into());
        verdict
    }

    #[test]
    fn a_verdict_belongs_to_its_task_case_and_answer() {
        let known = KnownVerdicts::default();
        known.keep(&judgement(1, 2, "x"), &verdict(0.5), 10);
        assert_eq!(known.recall(&judgement(1, 2, "x")), Some(verdict(0.5)));
        for other in [judgement(0, 2, "x"), judgement(1, 1, "x"), judgement(1, 2, "y")] {
            assert_eq!(known.recall(&other), None);
        }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten_within_the_bound() {
        let known = KnownVerdicts::default();
        let used = judgement(0, 0, "used");
        known.keep(&used, &verdict(1.0), 10);
        let entry = ENTRY_BYTES_MAX / 2;
        for number in 0..10 * GENERATION_BYTES_MAX / entry {
            known.keep(&judgement(0, 0, &number.to_string()), &verdict(0.0), entry);
            assert_eq!(known.recall(&used), Some(verdict(1.0)), "after {number}");
            let generations = known.generations();
            for generation in [&generations.young, &generations.old] {
                assert!(generation.bytes <= GENERATION_BYTES_MAX);
                assert_eq!(
                    generation.bytes,
                    generation.verdicts.values().map(|kept| kept.bytes).sum::<usize>()
                );
            }
        }
        assert_eq!(known.recall(&judgement(0, 0, "0")), None);
    }

    #[test]
    fn what_is_long_is_not_kept() {
        let known = KnownVerdicts::default();
        let long = judgement(0, 0, &"x".repeat(ENTRY_BYTES_MAX));
        known.keep(&long, &verdict(1.0), 1);
        assert_eq!(known.recall(&long), None);
    }
}
