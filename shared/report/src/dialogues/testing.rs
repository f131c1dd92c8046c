//! Invented dialogues for the tests of this crate.

use serde_json::json;

use super::{Column, ColumnId, Dialogues, Exercises, Origin, ReportedDialogue, TaskId};
use crate::costs::Prices;

/// A column on the published exercises.
pub fn column(model: &str, origin: Origin) -> Column {
    Column {
        model: model.to_owned(),
        name: model.to_owned(),
        family: model.to_owned(),
        size: None,
        active: None,
        origin,
        exercises: Exercises::Published,
    }
}

/// A dialogue with one round.
pub fn entry(column: ColumnId, task: TaskId, iteration: u32) -> ReportedDialogue {
    let mut dialogue = ReportedDialogue::of(column, task, iteration);
    (dialogue.rounds, dialogue.seconds) = (1, Some(1.5));
    (dialogue.prompt_tokens, dialogue.completion_tokens) = (Some(10), Some(5));
    dialogue
}

/// Models × tasks × iterations with the headline `f1`.
pub fn matrix(
    models: &[&str],
    tasks: &[&str],
    iterations: u32,
    score: impl Fn(usize, usize, u32) -> f64,
) -> Dialogues {
    let mut all = Dialogues::default();
    for (m, model) in models.iter().enumerate() {
        let column = all.column(column(model, Origin::Published));
        for (t, label) in tasks.iter().enumerate() {
            let task = all.task(label, "RdfFriendCount", &["f1"]);
            for iteration in 0..iterations {
                let scores = json!({ "f1": score(m, t, iteration) });
                let case = format!("c{}", iteration % 5);
                let scores = scores.as_object().cloned().unwrap_or_default();
                all.add(entry(column, task, iteration), &case, Ok(&scores));
            }
        }
    }
    all
}

/// Models with two dialogues each, asked at a provider; `paid` has a price.
pub fn priced(models: &[&str]) -> Dialogues {
    let mut all = matrix(models, &["t"], 2, |_, _, n| f64::from(n));
    for (column, model) in models.iter().enumerate() {
        all.setup_of(column).billed_as = Some((*model).to_owned());
    }
    let prices = "currency = 'EUR'\n[[tokens]]\nmodels = ['paid']\ninput = 2\noutput = 10\nas_of = '2026-01-02'\n\
                  source = 'https://a.example'\n";
    all.prices = Prices::parse(prices).unwrap_or_default().into();
    all
}
