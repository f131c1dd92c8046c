//! A Redis Cluster of two nodes: every script finds all of its keys on one node.

use harness::redis::cluster_bench;

use crate::conformance;

#[test]
fn a_cluster_keeps_the_queue_and_is_judged_node_by_node() {
    queue::testing::block_on(async {
        let Some(bench) = cluster_bench() else { return };
        let warnings = bench.store.check().await.unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        conformance::counts_add_up(bench).await;
    });
}
