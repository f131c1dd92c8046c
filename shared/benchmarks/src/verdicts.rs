//! Which verdict of a question counts, where several records know one.

use std::collections::HashMap;

use domain::{CaseUid, FailureCause, Infos, Scores};

/// What a judge said of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It has a verdict.
    Scored {
        /// The verdict.
        scores: Scores,
        /// What explains it.
        infos: Infos,
        /// How long it took, from the prompt to the last reply.
        seconds: f64,
    },
    /// It has none: what was said fits nothing, or nothing was said.
    Not(FailureCause),
}

impl Ruling {
    /// A number of the verdict.
    pub fn number(&self, score: &str) -> Option<f64> {
        match self {
            Self::Scored { scores, .. } => scores.get(score)?.as_f64(),
            Self::Not(_) => None,
        }
    }

    /// How long the verdict took; `None` where there is none.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Self::Scored { seconds, .. } => Some(*seconds),
            Self::Not(_) => None,
        }
    }

    fn is_scored(&self) -> bool {
        matches!(self, Self::Scored { .. })
    }
}

/// The verdicts of one stage for one model, by question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts(HashMap<CaseUid, (u32, Ruling)>);

impl Verdicts {
    /// Takes a record of the n-th run into account: the scored one of the first run that has one counts, else the one of the first
    /// run. Of several of one run, the first that is added.
    pub fn add(&mut self, number: u32, uid: CaseUid, ruling: Ruling) {
        let rank = |number: u32, ruling: &Ruling| (!ruling.is_scored(), number);
        match self.0.get_mut(&uid) {
            Some((known, of_known)) if rank(*known, of_known) <= rank(number, &ruling) => {}
            Some(known) => *known = (number, ruling),
            None => {
                self.0.insert(uid, (number, ruling));
            }
        }
    }

    /// The verdict of a question; `None` where no record knows it.
    pub fn of(&self, uid: &CaseUid) -> Option<&Ruling> {
        self.0.get(uid).map(|(.., ruling)| ruling)
    }

    /// Number of questions with a record.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scored_record_of_the_first_run_counts_in_any_order() {
        let uid = CaseUid::read("u");
        let scored = |grade: f64| Ruling::Scored {
            scores: Scores::from_iter([("grade".to_owned(), grade.into())]),
            infos: Infos::new(),
            seconds: 1.0,
        };
        let records = [
            (1, Ruling::Not(FailureCause::JudgeUnparseable)),
            (2, Ruling::Not(FailureCause::Timeout)),
            (3, scored(1.0)),
            (4, scored(0.0)),
        ];
        for shift in 0..records.len() {
            let mut verdicts = Verdicts::default();
            for (number, ruling) in records.iter().cycle().skip(shift).take(records.len()) {
                verdicts.add(*number, uid.clone(), ruling.clone());
            }
            assert_eq!(verdicts.of(&uid).and_then(|ruling| ruling.number("grade")), Some(1.0));
        }
        let mut none = Verdicts::default();
        for (number, ruling) in &records[..2] {
            none.add(*number, uid.clone(), ruling.clone());
        }
        assert_eq!(none.of(&uid), Some(&Ruling::Not(FailureCause::JudgeUnparseable)));
    }
}
