//! Records that the coordinator does not accept.

use harness::failing_coordinator::{FailingCoordinator, FailingState};
use harness::gated_model::GatedModel;
use worker::Stop;

use crate::at_work::{AtWork, config, model};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_record_gives_its_unit_back_and_parks_the_model() {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    coordinator.unit("m", 0..2);
    coordinator.change(|state| state.refuse = true);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    let state = coordinator.until("the unit is back", |state| !state.released.is_empty()).await;
    assert_eq!(state.finished, []);
    let state = coordinator.until("a parking", |state| !state.parked.is_empty()).await;
    assert!(state.parked[0].reason.contains("no such dialogue"), "{}", state.parked[0].reason);
    worker.stop(Stop::Drain);
    let report = worker.ended().await.unwrap();
    assert_eq!((report.unacknowledged, report.tally.released), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_record_of_a_lost_lease_parks_nothing() {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    let unit = coordinator.unit("m", [0]);
    coordinator.change(|state| state.full = true);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    coordinator.until("a delivery", |state| state.failed_deliveries > 0).await;
    // Its run is removed, and another one of its name is there.
    coordinator.lose(unit);
    let holds_nothing = |state: &FailingState| state.last_report.as_ref().is_some_and(|r| r.held.is_empty());
    coordinator.until("the loss is known", holds_nothing).await;
    coordinator.change(|state| (state.full, state.refuse) = (false, true));
    coordinator.until("a refusal", |state| state.refused == 1).await;
    coordinator.change(|state| state.refuse = false);
    coordinator.unit("m", [1]);
    let state = coordinator.until("the other unit", |state| state.stored.len() == 1).await;
    assert_eq!(state.parked, []);
    worker.stop(Stop::Drain);
    worker.ended().await.unwrap();
}
