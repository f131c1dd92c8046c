//! What a coordinator has begun and died over is finished by another one.

use std::sync::Arc;

use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase};

use super::ground::*;
use super::pipelines::killed_after;
use super::worker::*;
use super::{extending, pipelines};

async fn phase(coordinator: &Started, run: &RunId) -> RunPhase {
    coordinator.view(run).await.unwrap().phase
}

/// A run with a record for each of its dialogues, of which one coordinator has heard; and what the other one tends.
async fn worked_off(ground: &Ground) -> (Arc<Started>, RunId) {
    let one = ground.coordinator();
    let run = one.submit(submission(1)).await.unwrap().run;
    Worker::new("w").work_off(&one, &mut Vec::new()).await;
    (one, run)
}

#[tokio::test]
async fn a_command_whose_coordinator_dies_over_it_reaches_all_runs_of_a_judged_benchmark() {
    for command in [BenchmarkCommand::Pause, BenchmarkCommand::Cancel, BenchmarkCommand::Resume] {
        for polls in (1..).step_by(5) {
            let ground = Ground::new();
            let (one, two) = ground.two_users();
            let name = one.submit(pipelines::submission(&["m", "n"])).await.unwrap().run;
            if command == BenchmarkCommand::Resume {
                one.command(&name, BenchmarkCommand::Cancel).await.unwrap();
            }
            two.tend().await.unwrap();
            let whole = killed_after(polls, one.command(&name, command)).await;
            two.tend().await.unwrap();
            let phase = phase(&two, &name).await;
            for run in two.parts().benchmarks.own_runs(&name).await.unwrap() {
                let state = two.parts().loaded.state(&run).await.unwrap().unwrap();
                assert_eq!(state.phase, phase, "{run} after {polls} polls of {command:?}");
            }
            if whole {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_finished_run_whose_extension_was_cut_short_goes_on() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, run) = worked_off(&ground).await;
        one.tend().await.unwrap();
        assert_eq!(phase(&one, &run).await, RunPhase::Finished);
        let whole = killed_after(polls, one.extend(&run, extending::more())).await;
        let two = ground.coordinator();
        two.tend().await.unwrap();
        let view = two.view(&run).await.unwrap();
        assert_eq!(
            view.phase == RunPhase::Finished,
            view.scored == view.planned,
            "after {polls} polls: {view:?}"
        );
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn a_run_that_is_over_is_over_in_the_queue_whoever_died_over_its_end() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, run) = worked_off(&ground).await;
        let whole = killed_after(polls, one.tend()).await;
        let two = ground.coordinator();
        two.tend().await.unwrap();
        assert_eq!(phase(&two, &run).await, RunPhase::Finished, "after {polls} polls");
        let queued = ground.queue.run(&run).await.unwrap().map(|status| status.state);
        assert!(
            queued.is_none_or(|state| state == queue::RunState::Finished),
            "{queued:?} after {polls} polls"
        );
        if whole {
            return;
        }
    }
}
