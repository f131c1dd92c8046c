//! Two workers under one name.

use rustix::process::Signal;

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server};

const USAGE: i32 = 2;

#[test]
fn a_second_worker_of_the_same_name_is_refused_and_a_restart_takes_over() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(4);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &[NT_TASK], 40);
    let first = cluster.worker("twin", &coordinator, &server);
    server.gate().until_held(4);
    let mut second = cluster.twin("twin", &coordinator, &server);
    second.until_it_says("name in use by instance");
    // Killed and started again where its spool is, the first one is known, and goes on without waiting.
    first.signal(Signal::KILL);
    first.finish();
    let mut first = cluster.worker("twin", &coordinator, &server);
    first.until_it_says("registered");
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (40, 0));
    winners(&cluster, 40);
    cluster.data.kgfleet(&["verify", "latest"]).expect(0);
    // The name never falls silent, so the second one gives up and says why.
    second.finish().expect(USAGE).says(&["twin", "name in use by instance", "--name"]);
}
