//! A Redis Cluster of two nodes under the conformance suite: every script must find all of its keys on one node.

use harness::redis::cluster_bench;
use queue::testing::Bench;

async fn open() -> Option<Bench> {
    cluster_bench()
}

queue::conformance_suite!(open);

#[test]
fn a_cluster_is_judged_node_by_node_and_not_as_a_single_server() {
    queue::testing::block_on(async {
        let Some(bench) = cluster_bench() else { return };
        let warnings = bench.store.check().await.unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    });
}
