//! The scores of a model, question by question, to pair them with those of another model.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue, TaskId};

/// What was asked within a task: the case, and how often it had come before. Equal questions of two models are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionKey {
    pub case: u32,
    pub turn: u32,
}

/// The dialogues of a model on a task with their questions, in the order in which they were asked.
pub fn asked(all: &Dialogues, column: ColumnId, task: TaskId) -> Vec<(QuestionKey, &ReportedDialogue)> {
    let mut dialogues: Vec<&ReportedDialogue> = all.of(column, task).collect();
    dialogues.sort_by_key(|dialogue| dialogue.iteration);
    let mut turns: HashMap<u32, u32> = HashMap::new();
    let question = |dialogue: &ReportedDialogue| {
        let turn = turns.entry(dialogue.case).or_default();
        *turn += 1;
        QuestionKey { case: dialogue.case, turn: *turn - 1 }
    };
    let questions: Vec<QuestionKey> = dialogues.iter().copied().map(question).collect();
    questions.into_iter().zip(dialogues).collect()
}

/// The headline scores of a model: of each task those of its questions, in the order of the questions.
#[derive(Clone, Debug)]
pub struct Answers(Vec<Vec<(QuestionKey, f64)>>);

impl Answers {
    pub fn of(all: &Dialogues, column: ColumnId) -> Self {
        let of_task = |task: TaskId| {
            let scored = asked(all, column, task).into_iter();
            let mut scored: Vec<(QuestionKey, f64)> =
                scored.filter_map(|(question, dialogue)| Some((question, dialogue.headline?))).collect();
            scored.sort_by_key(|(question, _)| *question);
            scored
        };
        Self((0..all.tasks.len()).map(of_task).collect())
    }

    /// How many questions of a task have a score.
    pub fn number(&self, task: TaskId) -> usize {
        self.0[task].len()
    }

    /// The questions of a task that both answered, with both scores, in the order of the questions.
    pub fn paired(&self, other: &Self, task: TaskId) -> impl Iterator<Item = (QuestionKey, f64, f64)> {
        let (mut ours, mut theirs) = (self.0[task].iter().peekable(), other.0[task].iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let (a, b) = (*ours.peek()?, *theirs.peek()?);
                match a.0.cmp(&b.0) {
                    Ordering::Less => _ = ours.next(),
                    Ordering::Greater => _ = theirs.next(),
                    Ordering::Equal => {
                        ours.next();
                        theirs.next();
                        return Some((a.0, a.1, b.1));
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn questions_are_paired_by_case_and_turn() {
        let all = matrix(&["a", "b"], &["t"], 10, |model, _, n| f64::from(n) / 10.0 + model as f64 / 100.0);
        let some = matrix(&["a"], &["t"], 7, |_, _, n| f64::from(n) / 10.0);
        let (a, b) = (Answers::of(&all, 0), Answers::of(&all, 1));
        let pairs: Vec<(QuestionKey, f64, f64)> = a.paired(&b, 0).collect();
        assert_eq!((pairs.len(), pairs[1].0), (10, QuestionKey { case: 0, turn: 1 }));
        assert!(pairs.iter().all(|(_, a, b)| (b - a - 0.01).abs() < 1e-12));
        // Seven of ten: the last three cases were asked once there.
        assert_eq!(Answers::of(&some, 0).paired(&a, 0).count(), 7);
    }
}
