//! The table at the end of a run: mean headline score per task and model, and what failed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use coordinator::plan::Plan;
use domain::{DialogueKey, FailureCause, Outcome, Record, Scores};
use tasks::TaskClass;
use worker::TaskList;

use crate::output::{Align, Table};

/// Scores of one model on one task so far.
#[derive(Clone, Debug, Default)]
struct Cell {
    scored: u64,
    sum: f64,
    failed: u64,
}

/// Scores and failures by task and model, added up as records come.
#[derive(Debug, Default)]
pub struct Summary {
    cells: BTreeMap<(String, String), Cell>,
    failures: BTreeMap<FailureCause, u64>,
    scored: u64,
    failed: u64,
}

/// What the summary keeps of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Which dialogue.
    pub key: DialogueKey,
    /// Its headline score, or why it has none.
    pub outcome: Result<f64, FailureCause>,
}

impl Digest {
    /// Of a record of a task of this class.
    pub fn of(record: &Record, class: TaskClass) -> Self {
        let outcome = match &record.outcome {
            Outcome::Scored { scores, .. } => Ok(headline(scores, class).unwrap_or(0.0)),
            Outcome::Failed { cause, .. } => Err(*cause),
        };
        Self { key: record.key.clone(), outcome }
    }
}

impl Summary {
    /// Adds the winning record of a dialogue.
    pub fn add(&mut self, digest: &Digest) {
        let key = (digest.key.task.to_string(), digest.key.model.to_string());
        let cell = self.cells.entry(key).or_default();
        match digest.outcome {
            Ok(score) => {
                self.scored += 1;
                cell.scored += 1;
                cell.sum += score;
            }
            Err(cause) => {
                self.failed += 1;
                cell.failed += 1;
                *self.failures.entry(cause).or_default() += 1;
            }
        }
    }

    /// Dialogues with scores.
    pub fn scored(&self) -> u64 {
        self.scored
    }

    /// Dialogues that failed.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Failed dialogues by cause.
    pub fn failures(&self) -> impl Iterator<Item = (FailureCause, u64)> + '_ {
        self.failures.iter().map(|(cause, count)| (*cause, *count))
    }

    /// Writes the table in the order of the plan.
    pub fn write(&self, plan: &Plan, tasks: &TaskList, out: &mut dyn Write) -> io::Result<()> {
        let mut columns = vec![("task".to_owned(), Align::Left), ("score".to_owned(), Align::Left)];
        columns.extend(plan.models.iter().map(|model| (model.label.to_string(), Align::Right)));
        let columns: Vec<(&str, Align)> =
            columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
        let mut table = Table::new(&columns);
        let mut totals = vec![Vec::new(); plan.models.len()];
        for (task, built) in plan.tasks.iter().zip(tasks.iter()) {
            let mut row = vec![task.label.to_string(), built.class.headline().join(".")];
            for (model, totals) in plan.models.iter().zip(&mut totals) {
                let cell = self.cells.get(&(task.label.to_string(), model.label.to_string()));
                row.push(cell.map_or_else(|| "-".to_owned(), Cell::show));
                totals.extend(cell.and_then(Cell::mean));
            }
            table.row(row);
        }
        let mean = |means: &Vec<f64>| match means.len() {
            0 => "-".to_owned(),
            n => format!("{:.3}", means.iter().sum::<f64>() / n as f64),
        };
        let mut row = vec!["mean of tasks".to_owned(), String::new()];
        row.extend(totals.iter().map(mean));
        table.total(row);
        table.write(out)?;
        for (cause, count) in self.failures() {
            writeln!(out, "not scored: {count} dialogues ({cause})")?;
        }
        Ok(())
    }
}

impl Cell {
    fn mean(&self) -> Option<f64> {
        (self.scored > 0).then(|| self.sum / self.scored as f64)
    }

    fn show(&self) -> String {
        let mean = self.mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"));
        if self.failed > 0 { format!("{mean} ({} failed)", self.failed) } else { mean }
    }
}

/// The score that stands for a dialogue in tables.
pub fn headline(scores: &Scores, class: TaskClass) -> Option<f64> {
    let (first, rest) = class.headline().split_first()?;
    rest.iter().try_fold(scores.get(*first)?, |value, key| value.get(key))?.as_f64()
}
