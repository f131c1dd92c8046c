//! The answers of a pack, found by the first prompt, for simulated models. `kgfleet run` and `kgfleet simulate` fill it before
//! the simulator starts, and hold every first prompt in memory. To a prompt that is not in it, a simulated model says that it
//! does not know.

use std::collections::HashMap;
use std::sync::Arc;

use domain::seed::question_seed;
use domain::{Iteration, TaskLabel};
use tasks::Task;
use vllm_sim::{AnswerKey, KnownCase};

/// First prompts of planned dialogues, with their answers.
#[derive(Default)]
pub struct PackKey {
    /// By the whole first prompt: exact, even if graphs are serialised differently in each iteration.
    by_prompt: HashMap<String, Arc<KnownCase>>,
    /// By the first paragraph, for prompts of another seed, whose graphs are serialised differently below it. `None` stands for a
    /// paragraph of several cases with different answers, because it does not say which of them is meant.
    by_request: HashMap<String, Option<Arc<KnownCase>>>,
}

impl PackKey {
    /// Adds the first prompts of a task in a run with this seed. `label` is the task's label in the run.
    pub fn learn(&mut self, task: &Task, label: &TaskLabel, run_seed: u64, iterations: Iteration) {
        let known: Vec<Option<Arc<KnownCase>>> = task.cases().iter().map(known).collect();
        for iteration in 0..iterations {
            let Some(known) = &known[task.case_index(iteration)] else { continue };
            let Ok(prompt) = task.first_prompt(iteration, question_seed(run_seed, label, iteration)) else {
                continue; // The run itself reports a prompt that cannot be rendered.
            };
            self.by_request
                .entry(request(&prompt.text).to_owned())
                .and_modify(|shared| {
                    if shared.as_ref().is_some_and(|shared| shared.right != known.right) {
                        *shared = None;
                    }
                })
                .or_insert_with(|| Some(Arc::clone(known)));
            self.by_prompt.insert(prompt.text, Arc::clone(known));
        }
    }
}

/// What simulated models know of a case; `None` if it lacks one of the answers.
fn known(case: &tasks::Case) -> Option<Arc<KnownCase>> {
    let data = &case.data;
    Some(Arc::new(KnownCase {
        right: data.reference_answer.clone()?,
        wrong: data.wrong_answer.clone()?,
        malformed: data.malformed_answer.clone()?,
    }))
}

/// The first paragraph of a prompt.
fn request(prompt: &str) -> &str {
    prompt.split_once("\n\n").map_or(prompt, |(request, _)| request)
}

impl AnswerKey for PackKey {
    fn solve(&self, first_prompt: &str) -> Option<KnownCase> {
        let known = match self.by_prompt.get(first_prompt) {
            Some(known) => known,
            None => self.by_request.get(request(first_prompt))?.as_ref()?,
        };
        Some(KnownCase::clone(known))
    }
}
