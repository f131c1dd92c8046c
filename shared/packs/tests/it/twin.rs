//! A declared task judges as the class does whose twin it is: Text2Sparql, whose score is 0.2 for a query that can be read and
//! 0.8 times the F1 of all cells of its result.

use tasks::{Effort, EvaluationLimits, Task};

fn score(task: &Task, number: usize, answer: &str, name: &str) -> f64 {
    let exercise = task.cases()[number].exercise();
    exercise.prepare().unwrap();
    let verdict = exercise.judge(answer, &Effort::full(EvaluationLimits::default()));
    verdict.scores[name].as_f64().unwrap()
}

#[test]
fn a_declared_twin_scores_the_answers_of_text_to_sparql_as_the_class_does() {
    let twins = crate::twins::all();
    let mut answers = 0;
    for crate::twins::Twins { own, declared, cases } in &twins {
        for (place, number) in cases.iter().enumerate() {
            let case = &own.cases()[*number].data;
            for answer in [&case.reference_answer, &case.wrong_answer, &case.malformed_answer] {
                let answer = answer.as_deref().unwrap();
                let (ours, theirs) =
                    (score(own, *number, answer, "combined"), score(declared, place, answer, "score"));
                assert!(
                    (ours - theirs).abs() < 1e-12,
                    "{} {}: {ours} {theirs}: {answer}",
                    own.label,
                    case.uid
                );
                answers += 1;
            }
        }
    }
    assert!(twins.len() >= 6 && answers >= 90, "{answers} answers of {} tasks", twins.len());
}
