//! Whole dialogues of the built-in pack, from the first prompt to the scores: `cargo bench -p packs`.
//!
//! One measurement is one dialogue with one answer, right or wrong. The bound to hold beside it: 2 000 dialogues per
//! second and core, 500 µs each, with graphs loaded.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use packs::Pack;
use tasks::{Dialogue, Effort, EvaluationLimits, Task};

fn benches(criterion: &mut Criterion) {
    let tasks = Pack::builtin().and_then(|pack| pack.build()).expect("the built-in pack is usable");
    let effort = Effort::full(EvaluationLimits::default());
    for task in &tasks {
        let mut iteration = 0;
        criterion.bench_function(task.label.as_str(), |bencher| {
            bencher.iter(|| {
                iteration += 1;
                dialogue(task, iteration, &effort);
            });
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

criterion_group! {
    name = dialogues;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    targets = benches
}
criterion_main!(dialogues);
