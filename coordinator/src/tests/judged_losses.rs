//! Judged benchmarks whose runs have finished, and whose logs have lost records since.

use std::fs;

use benchmarks::RunName;
use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase};

use super::ground::{Ground, Started};
use super::pipelines::{Asked, ROUNDS_MAX, finish, submission, work_off};

/// Questions of the benchmark; the answers of model `n` to them want reviews.
const PLANNED: u64 = 4;

const STAGES: [&str; 3] = ["ask", "grade", "review"];

fn stage_run(name: &RunId, stage: &str) -> RunId {
    RunName::new(name.as_str(), stage, &"n".into(), 1).run()
}

/// Takes every segment of a run's log away, below coordinators that are gone.
async fn lose_log(ground: &Ground, coordinator: std::sync::Arc<Started>, run: &RunId) {
    coordinator.close_logs().await;
    drop(coordinator);
    let log = ground.data.path().join("runs").join(run.as_str()).join("log");
    let segments = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let segments: Vec<_> = segments.filter(|path| path.extension().is_some_and(|is| is == "kglog")).collect();
    assert!(!segments.is_empty(), "{run} has records");
    segments.iter().for_each(|path| fs::remove_file(path).unwrap());
}

async fn assert_all_scored(coordinator: &Started, name: &RunId, asked: &mut Asked) {
    let view = finish(coordinator, name, asked).await;
    assert_eq!((view.planned, view.scored, view.failed), (PLANNED, PLANNED, 0), "{:?}", view.notes);
    for stage in STAGES {
        let view = coordinator.view(&stage_run(name, stage)).await.unwrap();
        assert_eq!(
            (view.phase, view.scored),
            (RunPhase::Finished, view.planned),
            "{stage}: {:?}",
            view.trouble
        );
    }
}

#[tokio::test]
async fn what_a_stage_lost_while_its_benchmark_goes_on_is_asked_again() {
    for stage in ["ask", "grade"] {
        let ground = Ground::new();
        let coordinator = ground.coordinator();
        let name = coordinator.submit(submission(&["n"])).await.unwrap().run;
        let (mut asked, run) = (Asked::default(), stage_run(&name, stage));
        let mut rounds = 0..ROUNDS_MAX;
        while coordinator.view(&run).await.map_or(true, |view| view.phase != RunPhase::Finished) {
            rounds.next().expect("the stage finishes");
            work_off(&coordinator, &mut asked).await;
            coordinator.tend().await.unwrap();
        }
        assert_eq!(coordinator.view(&name).await.unwrap().phase, RunPhase::Active, "{stage}");
        lose_log(&ground, coordinator, &run).await;
        assert_all_scored(&ground.coordinator(), &name, &mut asked).await;
    }
}

#[tokio::test]
async fn a_finished_benchmark_that_is_resumed_asks_for_what_its_runs_lost() {
    for stage in STAGES {
        for is_by_run in [false, true] {
            let ground = Ground::new();
            let coordinator = ground.coordinator();
            let name = coordinator.submit(submission(&["n"])).await.unwrap().run;
            let (mut asked, run) = (Asked::default(), stage_run(&name, stage));
            finish(&coordinator, &name, &mut asked).await;
            lose_log(&ground, coordinator, &run).await;
            let coordinator = ground.coordinator();
            let resumed = if is_by_run { &run } else { &name };
            coordinator.command(resumed, BenchmarkCommand::Resume).await.unwrap();
            assert_all_scored(&coordinator, &name, &mut asked).await;
        }
    }
}
