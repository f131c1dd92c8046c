//! Records that the coordinator does not accept.

use harness::gated_model::GatedModel;

use crate::at_work::{AtWork, config, one_model};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_record_gives_its_unit_back_and_parks_the_model() {
    let coordinator = one_model(0..2);
    coordinator.change(|state| state.refuse = true);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    let state = coordinator.until("the unit is back", |state| !state.released.is_empty()).await;
    assert_eq!(state.finished, []);
    let state = coordinator.until("a parking", |state| !state.parked.is_empty()).await;
    assert!(state.parked[0].reason.contains("no such dialogue"), "{}", state.parked[0].reason);
    let report = worker.drained().await;
    assert_eq!((report.unacknowledged, report.tally.released), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_record_of_a_lost_lease_parks_nothing() {
    let coordinator = one_model([0]);
    coordinator.change(|state| state.full = true);
    let worker = AtWork::start(config(GatedModel::answering().open(), 4), &coordinator);
    coordinator.until("a delivery", |state| state.failed_deliveries > 0).await;
    // Its run is removed, and another one of its name is there.
    coordinator.lose(0);
    coordinator.reports("the loss is known", |report| report.held.is_empty()).await;
    coordinator.change(|state| (state.full, state.refuse) = (false, true));
    coordinator.until("a refusal", |state| state.refused == 1).await;
    coordinator.change(|state| state.refuse = false);
    coordinator.unit("m", [1]);
    let state = coordinator.until("the other unit", |state| state.stored.len() == 1).await;
    assert_eq!(state.parked, []);
    worker.drained().await;
}
