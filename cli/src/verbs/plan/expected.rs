//! How many tokens the dialogues of a plan are expected to use.

use coordinator::plan::{Plan, PlannedModel};
use domain::ModelUsage;
use report::Dialogues;
use report::analysis::cells::statistics;

/// The published means of 3 120 dialogues of six hosted models: 3 671 characters of prompts, what is sent again included, and 440
/// of answers, at four characters a token.
const PUBLISHED: ExpectedTokens = ExpectedTokens { prompt: 920.0, answer: 110.0 };

/// ExpectedTokens of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedTokens {
    pub prompt: f64,
    pub answer: f64,
}

impl ExpectedTokens {
    fn mean(all: impl Iterator<Item = Self>) -> Option<Self> {
        let all: Vec<Self> = all.collect();
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        (!all.is_empty())
            .then(|| Self { prompt: mean(|found| found.prompt), answer: mean(|found| found.answer) })
    }
}

/// What is known of other dialogues.
pub struct Known<'a> {
    /// ExpectedTokens of each model on each task, by labels.
    cells: Vec<(&'a str, &'a str, ExpectedTokens)>,
}

impl<'a> Known<'a> {
    /// The dialogues whose tokens servers counted.
    pub fn of(like: Option<&'a Dialogues>) -> Self {
        let tokens = |all: &'a Dialogues| {
            statistics(all).iter().filter_map(|cell| {
                let (prompt, answer) = cell.prompt_tokens.zip(cell.completion_tokens)?;
                let (model, task) = (&all.columns[cell.column].model, &all.tasks[cell.task].label);
                Some((model.as_str(), task.as_str(), ExpectedTokens { prompt, answer }))
            })
        };
        Self { cells: like.into_iter().flat_map(tokens).collect() }
    }

    /// Whether nothing is known, so that published means count.
    pub fn is_nothing(&self) -> bool {
        self.cells.is_empty()
    }

    /// The tokens of a model's dialogue on a task: its own on the task, or those of all models on it, or those of all.
    fn on(&self, model: &str, task: &str) -> ExpectedTokens {
        let of = |fits: &dyn Fn(&str, &str) -> bool| {
            ExpectedTokens::mean(
                self.cells.iter().filter(|(model, task, _)| fits(model, task)).map(|found| found.2),
            )
        };
        of(&|known, about| known == model && about == task)
            .or_else(|| of(&|_, about| about == task))
            .or_else(|| of(&|_, _| true))
            .unwrap_or(PUBLISHED)
    }

    /// What all dialogues of a planned model will use. How much of the prompts a provider will find in its cache is not known.
    pub fn usage(&self, plan: &Plan, model: &PlannedModel) -> ModelUsage {
        let (mut dialogues, mut prompt, mut answer) = (0, 0.0, 0.0);
        for (number, task) in plan.tasks.iter().enumerate() {
            let (count, tokens) =
                (model.iterations_of(number), self.on(model.label.as_str(), task.label.as_str()));
            dialogues += u64::from(count);
            prompt += tokens.prompt * f64::from(count);
            answer += tokens.answer * f64::from(count);
        }
        ModelUsage {
            dialogues,
            prompt_tokens: prompt.round() as u64,
            completion_tokens: answer.round() as u64,
            ..ModelUsage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_dialogues_count() {
        let tokens = |prompt: f64| ExpectedTokens { prompt, answer: 1.0 };
        let known = Known {
            cells: vec![("a", "s", tokens(10.0)), ("b", "s", tokens(30.0)), ("b", "t", tokens(80.0))],
        };
        assert_eq!(known.on("a", "s").prompt, 10.0);
        assert_eq!(known.on("c", "s").prompt, 20.0);
        assert_eq!(known.on("a", "u").prompt, 40.0);
        assert_eq!(Known::of(None).on("a", "s"), PUBLISHED);
    }
}
