//! What it takes to know the means of a plan's tasks as well as somebody wants, by what other dialogues about them show.

use report::Dialogues;
use report::analysis::cells::totals;
use report::stats::Estimate;
use report::words;
use serde_json::{Value, json};

/// How well the mean of a model is known.
pub struct Width {
    model: String,
    estimate: Estimate,
    dialogues: u64,
}

/// Every model that has a mean.
pub fn widths(all: &Dialogues) -> Vec<Width> {
    let headings = all.headings();
    let width = |total: &report::analysis::cells::ColumnStatistics| {
        Some(Width {
            model: headings[total.column].clone(),
            estimate: total.estimate?,
            dialogues: total.contender.covered,
        })
    };
    totals(all).iter().filter_map(width).collect()
}

impl Width {
    /// For people.
    pub fn told(&self, within: f64) -> String {
        format!("{}: the mean is {}", self.model, words::known(&self.estimate, self.dialogues, "", within))
    }

    /// For programs; `needs` is null where nothing more is needed.
    pub fn value(&self, within: f64) -> Value {
        let needs = self.estimate.need(within).map(|need| {
            json!({
                "exercises": need.exercises * self.estimate.exercises as u64,
                "dialogues": need.dialogues.map(|times| times * self.dialogues),
            })
        });
        json!({
            "model": self.model, "known_within": self.estimate.reach(), "exercises": self.estimate.exercises,
            "dialogues": self.dialogues, "needs": needs,
        })
    }
}
