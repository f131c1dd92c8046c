//! Whole dialogues of the built-in pack, from the first prompt to the scores: `cargo bench -p packs`.
//!
//! One measurement is one dialogue with one answer, right or wrong.

use std::hint::black_box;
use std::time::Duration;

use harness::timing::timed;
use packs::Pack;
use tasks::{Dialogue, Effort, EvaluationLimits, Task};

/// Most time of a dialogue with graphs loaded: 2 000 per second and core.
const DIALOGUE_MAX: Duration = Duration::from_micros(500);

fn main() {
    let tasks = Pack::builtin().and_then(|pack| pack.build()).expect("the built-in pack is usable");
    let effort = Effort::full(EvaluationLimits::default());
    for task in &tasks {
        let mut iteration = 0;
        timed(task.label.as_str(), Some(DIALOGUE_MAX), || {
            iteration += 1;
            dialogue(task, iteration, &effort);
        });
    }
}

/// Asks once and judges the right answer, or the wrong one every second time.
fn dialogue(task: &Task, iteration: u32, effort: &Effort) {
    let case = &task.case(iteration).data;
    let answer = if iteration.is_multiple_of(2) { &case.reference_answer } else { &case.wrong_answer };
    let seed = u64::from(iteration);
    let exercise = task.case(iteration).exercise();
    let mut dialogue = Dialogue::new(exercise.shots());
    let prompt = task.next_prompt(iteration, seed, &dialogue);
    dialogue.take(exercise.judge(answer.as_deref().unwrap_or(""), effort));
    let reply = task.next_prompt(iteration, seed, &dialogue);
    let _ = black_box((prompt, reply, dialogue.into_evaluation()));
}
