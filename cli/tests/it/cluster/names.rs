//! Two workers under one name.

use rustix::process::Signal;

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server};

#[test]
fn a_worker_that_another_one_has_replaced_ends_and_says_why() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(4);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &[NT_TASK], 40);
    let first = cluster.worker("twin", &coordinator, &server);
    server.gate().until_held(4);
    first.signal(Signal::STOP);
    // Redis forgets who has the name, and somebody else takes it.
    cluster.redis.say::<()>("FLUSHALL");
    let mut second = cluster.twin("twin", &coordinator, &server);
    second.until_it_says("registered");
    first.signal(Signal::CONT);
    server.gate().open();
    first.finish().expect(2).says(&["twin", "name in use by instance"]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (40, 0));
    winners(&cluster, 40);
}
