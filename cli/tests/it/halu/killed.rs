//! A judged benchmark whose parts are killed in every stage gets the same numbers as an undisturbed one.
//!
//! The size is that of a test; the sizes of the paper are asked for by the environment:
//! `KGFLEET_HALU_MODELS=25 KGFLEET_HALU_ASSESSMENTS=10 KGFLEET_HALU_QUESTIONS=150`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::control::{BenchmarkView, RunPhase};
use rustix::process::Signal;

use super::{STAGES, configuration, pack, rows, with_skill};
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, free_port};

/// How long a stage may take to begin, for each thousand questions that models are asked.
const PATIENCE: Duration = Duration::from_secs(180);

fn size(name: &str, default: usize) -> usize {
    std::env::var(format!("KGFLEET_HALU_{name}")).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn a_pipeline_killed_in_every_stage_comes_to_the_same_numbers() {
    let (models, assessments) = (size("MODELS", 3), size("ASSESSMENTS", 2));
    let (questions, concurrency) = (size("QUESTIONS", 10), size("CONCURRENCY", 4).to_string());
    let asked = models * assessments * questions;
    let Some(mut cluster) = Cluster::start() else { return };
    let pack = pack(&cluster.data, questions, assessments);
    let skills: Vec<f64> = (0..models).map(|number| (number as f64 + 0.5) / models as f64).collect();
    // Only a classifier that errs leaves facts to the expert.
    let text = with_skill(&configuration(&pack, questions, &skills, 1.0), "classifier", 0.8);
    let file = cluster.data.write("halu.toml", &text);
    let file = file.to_str().unwrap();

    let place = format!("127.0.0.1:{}", free_port());
    let simulator = cluster.data.start(&["simulate", "--benchmark", file, "--listen", &place]);
    let address = format!("http://{place}");
    let mut coordinator = cluster.coordinator();
    let begun = Instant::now();
    let submitted = cluster.kgfleet(&coordinator, &["submit", file]).expect(0);
    let pipeline = submitted.stdout.trim().to_owned();
    let patience = PATIENCE * (1 + asked / 1_000) as u32;
    for (round, stage) in STAGES.into_iter().enumerate() {
        let arguments = ["--concurrency", &concurrency];
        let worker = cluster.worker_with(&format!("w{round}"), coordinator.port, &address, &arguments);
        let at = until_in(&cluster, &coordinator, &pipeline, stage, patience);
        println!("{stage}: killed at {at} of its dialogues, after {:.0} s", begun.elapsed().as_secs_f64());
        worker.signal(Signal::KILL);
        worker.finish();
        coordinator.process.signal(Signal::KILL);
        let port = coordinator.port;
        coordinator.process.finish();
        // Every other time the queue is lost with its data.
        if round % 2 == 0 {
            cluster.redis.say::<()>("FLUSHALL");
        }
        cluster.redis.restart();
        coordinator = cluster.coordinator_at(port);
    }
    let _worker = cluster.worker_with("last", coordinator.port, &address, &["--concurrency", &concurrency]);
    let (view, finished) = cluster.watch(&coordinator, &pipeline);
    assert_eq!(view.phase, RunPhase::Finished, "{finished}");
    assert_eq!((view.planned, view.scored), (asked as u64, asked as u64), "{finished}");
    // What models share stands in the column of each.
    let shared = |stage: &str| if stage == "facts" { models as u64 } else { 1 };
    let dialogues: u64 = stages(&view).iter().map(|((stage, _), scored)| scored / shared(stage)).sum();
    println!("{asked} answers, {dialogues} dialogues in {:.0} s", begun.elapsed().as_secs_f64());
    simulator.signal(Signal::KILL);

    every_question_was_asked_once(&cluster.data, &pipeline);
    // What the coordinator counted while it was killed is what the records say.
    let table = rows(&cluster.data, &pipeline, "halu");
    for row in &table {
        let model = row["model"].as_str().unwrap();
        for (column, task) in
            [("abstained %", "= abstention"), ("Halu_BOK %", "= halu-bok"), ("Halu_DOK %", "= halu-dok")]
        {
            let cell =
                view.cells.iter().find(|cell| cell.task.as_str() == task && cell.model.as_str() == model);
            let counted = cell.and_then(|cell| cell.mean).map(|mean| 100.0 * mean);
            let same = match (counted, row[column].as_f64()) {
                (Some(counted), Some(read)) => (counted - read).abs() < 1e-9,
                (counted, read) => counted == read,
            };
            assert!(same, "{column} of {model}: {counted:?} and {row}");
        }
    }
    let begun = Instant::now();
    let alone = Data::new();
    let expected = super::view(&alone.kgfleet(&["run", file, "--json"]).expect(0));
    println!("the same on one machine in {:.0} s", begun.elapsed().as_secs_f64());
    assert_eq!(expected.run.as_str(), pipeline);
    assert_eq!(stages(&view), stages(&expected));
    assert_eq!(table, rows(&alone, &pipeline, "halu"));
    assert_eq!(rows(&cluster.data, &pipeline, "halu-answers"), rows(&alone, &pipeline, "halu-answers"));
}

/// The scored dialogues of each stage and model.
fn stages(view: &BenchmarkView) -> BTreeMap<(String, String), u64> {
    let of_stages = view.cells.iter().filter(|cell| STAGES.contains(&cell.task.as_str()));
    of_stages.map(|cell| ((cell.task.to_string(), cell.model.to_string()), cell.scored)).collect()
}

/// Waits until a stage has records, or is over; how many there are.
fn until_in(
    cluster: &Cluster,
    coordinator: &Coordinator,
    pipeline: &str,
    stage: &str,
    patience: Duration,
) -> u64 {
    let begun = Instant::now();
    loop {
        let view = cluster.status(coordinator, pipeline);
        let scored = stages(&view).iter().filter(|((of, _), _)| of == stage).map(|(_, scored)| scored).sum();
        if scored > 0 || view.phase == RunPhase::Finished {
            return scored;
        }
        assert!(begun.elapsed() < patience, "stage {stage} does not begin: {view:?}");
    }
}

/// No question to a judge stands in two dialogues about the same model.
fn every_question_was_asked_once(data: &Data, pipeline: &str) {
    let of_pipeline = format!("{pipeline}.");
    let mut asked = BTreeMap::new();
    let of_ask = format!("{pipeline}.ask.");
    let judges = |name: &str| name.starts_with(&of_pipeline) && !name.starts_with(&of_ask);
    for run in data.runs().iter().filter(|run| judges(run.name())) {
        let stage = run.name().rsplit_once('.').unwrap().0.to_owned();
        for entry in run.entries() {
            let record = entry;
            assert!(record.outcome.is_scored(), "{} {}", run.name(), record.key);
            let uid = record.provenance.task.case;
            let dialogue = (run.name().to_owned(), record.key);
            // A late record of the same dialogue is kept and changes nothing.
            let known = asked.entry((stage.clone(), uid)).or_insert_with(|| dialogue.clone());
            assert_eq!(*known, dialogue, "a question was asked twice");
        }
    }
    assert!(!asked.is_empty());
}
