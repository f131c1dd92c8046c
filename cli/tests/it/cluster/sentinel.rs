//! A real Sentinel promotes a replica that lacks writes which the old primary had acknowledged.

use super::winners;
use crate::harness::{
    Cluster, NT_TASK, RedisServer, SentinelServer, Server, TURTLE_TASK, free_port, wait_until,
};

const ITERATIONS: u32 = 40;
const DIALOGUES: usize = 80;

/// Records before the replica is cut off, and records that it never hears of.
const KNOWN: usize = 10;
const UNKNOWN: usize = 10;

#[test]
fn a_failover_by_sentinel_that_loses_acknowledged_writes_loses_no_record() {
    let Some(mut cluster) = Cluster::start() else { return };
    let Some(replica) = RedisServer::start_with(&["--appendonly", "yes", "--save", ""]) else { return };
    replica.say::<()>(&format!("REPLICAOF 127.0.0.1 {}", cluster.redis.port()));
    wait_until("the replica has the data of the primary", || replica.replicates("master_link_status:up"));
    let sentinel = SentinelServer::start(cluster.redis.port());
    wait_until("the sentinel knows the replica", || sentinel.knows_a_replica());
    let server = Server::start();
    let coordinator = cluster.coordinator_with(free_port(), &["--queue", &sentinel.url()]);
    server.gate().close_after(2 * KNOWN);
    let run = cluster.submit(&coordinator, &[NT_TASK, TURTLE_TASK], ITERATIONS);
    let mut worker = cluster.worker("worker", &coordinator, &server);
    cluster.data.until_recorded(&mut worker, KNOWN);

    // From here on the primary acknowledges what the replica never sees.
    replica.cut_off();
    wait_until("the replica is cut off", || replica.replicates("master_link_status:down"));
    let before = cluster.data.run().entries().len();
    server.gate().open();
    server.gate().close_after(2 * UNKNOWN);
    cluster.data.until_recorded(&mut worker, before + UNKNOWN);
    cluster.redis.kill();
    wait_until("the sentinel makes the replica the primary", || replica.replicates("role:master"));

    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    winners(&cluster, DIALOGUES);
}
