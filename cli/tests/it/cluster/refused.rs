//! Servers of a fleet that refuse some or all of their requests.

use domain::control::ModelView;
use rustix::process::Signal;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::{Cluster, NT_TASK, Server, free_port, wait_until};

/// A key that is refused: nothing of that is repeated.
const REFUSED: FaultKind = FaultKind::Status { code: 401, retry_after_s: None };

#[test]
fn a_server_that_refuses_two_of_ten_at_once_is_asked_on_while_it_writes_its_first_answers() {
    let Some(cluster) = Cluster::start() else { return };
    let rules = (1..=40).map(|n| FaultRule::new(FaultWhen::Request(5 * n), REFUSED)).collect();
    let server = Server::with_faults(rules);
    server.gate().close_after(1);
    let coordinator = cluster.lone_coordinator_at(free_port());
    let run = cluster.submit(&coordinator, &[NT_TASK], 100);
    let url = server.url();
    let worker = cluster.worker_with("worker", coordinator.port, &url, &["--concurrency", "32"]);
    // As many are refused as park a model that answers nobody; the others are not answered yet.
    wait_until("some are refused", || server.faults() >= u64::from(worker::breaker::STREAK_MAX));
    server.gate().until_held(20);
    server.gate().open();
    wait_until("all have an end", || cluster.status(&coordinator, &run).done() == 100);
    let view = cluster.status(&coordinator, &run);
    assert_eq!((view.scored, view.failed), (80, 20), "{view:?}");
    assert_eq!(server.faults(), 20, "what is refused is recorded, and asked once");
    worker.signal(Signal::TERM);
    let worker = worker.finish().expect(0);
    assert!(!worker.stderr.contains("is not asked for a while"), "{worker}");
}

#[test]
fn a_model_that_all_its_servers_refuse_is_shown_as_blocked() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::with_faults(vec![FaultRule::new(FaultWhen::Always, REFUSED)]);
    let coordinator = cluster.lone_coordinator_at(free_port());
    let run = cluster.submit(&coordinator, &[NT_TASK], 40);
    let _worker = cluster.worker("worker", &coordinator, &server);
    // Before there is a worker, it is blocked for that.
    let is_parked = |model: &ModelView| model.blocked.as_ref().is_some_and(|why| why.contains("parked"));
    wait_until("it is parked", || cluster.status(&coordinator, &run).models.iter().all(is_parked));
    let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    status.prints(&["blocked: sim (parked: unauthorized: HTTP 401"]);
}
