//! How long deriving takes: a pipeline of one model with 5 000 answers, before the first stage and after the last one.

use std::hint::black_box;
use std::time::{Duration, Instant};

use benchmarks::{Asked, Derivation, JudgeWordings, Ruling, Settings, StageRecords, Subject, kinds};
use domain::{CaseUid, DialogueKey, Infos, ModelSpec, Scores};
use serde_json::json;

/// Answers of the model.
const ANSWERS: u32 = 5_000;

/// How long deriving them may take.
const BOUND: Duration = Duration::from_secs(1);

/// Repetitions; the longest is printed.
const REPETITIONS: usize = 10;

fn subject(iteration: u32) -> Subject {
    // Lengths of published prompts and answers.
    let text = |what: &str, characters: usize| format!("{what} {iteration} ").repeat(characters / 10);
    Subject {
        key: DialogueKey { model: "m".into(), task: "t".into(), iteration },
        question: text("question", 2_278),
        answer: text("answer", 1_050),
        case: [("referenceTurtle".to_owned(), json!(text("reference", 1_000)))].into_iter().collect(),
        scores: Scores::new(),
    }
}

/// The longest of some repetitions.
fn longest<T>(mut work: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        black_box(work());
        begun.elapsed()
    };
    (0..REPETITIONS).map(once).max().unwrap_or_default()
}

fn tell(what: &str, took: Duration) {
    let held = if took < BOUND { "held" } else { "NOT held" };
    println!("{what}: {:.0} ms; bound {} ms, {held}", took.as_secs_f64() * 1e3, BOUND.as_millis());
}

fn main() {
    let subjects: Vec<Subject> = (0..ANSWERS).map(subject).collect();
    let judge: ModelSpec =
        serde_json::from_value(json!({"label": "j", "connector": "simulated"})).expect("a model");
    let model = "m".into();
    for kind in kinds::judged() {
        let Some(judging) = kind.judging else { continue };
        let judges = vec![&judge; kind.stages().len()];
        let derivation = Derivation {
            pipeline: "p",
            judging,
            judges: &judges,
            settings: &Settings::new(),
            wordings: &JudgeWordings::new(),
        };
        let finished = || StageRecords { finished: true, ..StageRecords::default() };
        let mut stages: Vec<StageRecords> = kind.stages().iter().map(|_| finished()).collect();
        let asked = Asked { model: &model, subjects: &subjects, stages: &stages };
        let took = longest(|| derivation.new_runs(&asked));
        tell(&format!("{}: the first runs of {ANSWERS} answers", kind.name), took);
        // Every question is answered so that the next stage asks something, until nothing is left.
        for _ in 0..=kind.stages().len() {
            let asked = Asked { model: &model, subjects: &subjects, stages: &stages };
            let cases: Vec<_> = subjects.iter().map(|subject| subject.case.clone()).collect();
            let runs = [derivation.shared_runs(&cases, &stages), derivation.new_runs(&asked)].concat();
            for run in runs {
                for case in &run.task.cases {
                    let scores = [("grade", json!(0.5)), ("cosine", json!(0.9)), ("written", json!(1.0))];
                    let scores = scores.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                    let uid = CaseUid::read(&case.uid);
                    stages[run.stage].held.insert(uid.clone());
                    stages[run.stage].verdicts.add(
                        1,
                        uid,
                        Ruling::Scored { scores, infos: Infos::new(), seconds: 1.0 },
                    );
                }
                stages[run.stage].runs += 1;
            }
        }
        let asked = Asked { model: &model, subjects: &subjects, stages: &stages };
        let judged = derivation.judged(&asked);
        let scored = judged
            .iter()
            .filter(|judged| matches!(judged.outcome, benchmarks::report::JudgedOutcome::Scored(_)));
        if scored.count() < subjects.len() {
            println!("{}: its later stages need other answers than those made up here", kind.name);
            continue;
        }
        let took = longest(|| derivation.new_runs(&asked));
        tell(&format!("{}: that nothing is left to ask about {ANSWERS} answers", kind.name), took);
        let took = longest(|| derivation.judged(&asked));
        tell(&format!("{}: the scores of {ANSWERS} answers", kind.name), took);
    }
}
