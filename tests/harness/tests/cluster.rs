//! Coordinators and workers around a real Redis, in one process.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;

use domain::control::{Control, ExportItem};
use domain::{DialogueKey, Record, RunId};
use futures::TryStreamExt;
use harness::cluster::{Cluster, Served};

/// Dialogues of a submission with this many iterations.
const TASKS: u64 = 2;

/// The records that count, over the wire: one of each dialogue, every one scored.
async fn exported(served: &Served, run: &RunId) -> Vec<Record> {
    let client = served.client();
    let items: Vec<ExportItem> = client.records(run).try_collect().await.unwrap();
    let records = items.into_iter().filter_map(|item| match item {
        ExportItem::Record { json, .. } => Some(serde_json::from_str::<Record>(&json).unwrap()),
        ExportItem::Documents(_) | ExportItem::Manifest(_) => None,
    });
    let records: Vec<Record> = records.collect();
    let keys: BTreeSet<&DialogueKey> = records.iter().map(|record| &record.key).collect();
    assert_eq!(keys.len(), records.len(), "one record of each dialogue counts");
    assert!(records.iter().all(|record| record.outcome.is_scored()));
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_worked_off_by_several_workers_of_two_coordinators() {
    let Some(cluster) = Cluster::on_redis().await else { return };
    let (one, two) = (cluster.coordinator().await, cluster.coordinator().await);
    let run = one.client().submit(cluster.submission(100)).await.unwrap().run;
    let workers = [
        cluster.worker("a", one.address),
        cluster.worker("b", two.address),
        cluster.worker("c", one.address),
    ];
    let view = one.until_over(&run).await;
    assert_eq!((view.scored, view.failed), (100 * TASKS, 0));
    let mut held = 0;
    for worker in workers {
        let report = worker.drain().await;
        assert_eq!(report.unacknowledged, 0);
        held += report.dialogues;
    }
    assert_eq!(held, 100 * TASKS, "nothing was asked twice");
    let (seen_by_one, seen_by_two) = (one.client().view(&run).await.unwrap(), two.until_over(&run).await);
    assert_eq!(seen_by_one.cells, seen_by_two.cells);
    assert_eq!(exported(&one, &run).await, exported(&two, &run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_vanishes_in_the_middle_is_replaced() {
    for redis in [true, false] {
        let cluster = if redis { Cluster::on_redis().await } else { Some(Cluster::in_memory().await) };
        let Some(cluster) = cluster else { return };
        let first = cluster.coordinator().await;
        let run = first.client().submit(cluster.submission(300)).await.unwrap().run;
        let worker = cluster.worker("a", first.address);
        first.until_recorded(&run, 20).await;
        let address = first.kill().await;
        let second = cluster.coordinator_at(address).await;
        let view = second.until_over(&run).await;
        assert_eq!((view.scored, view.failed), (300 * TASKS, 0));
        worker.drain().await;
        assert_eq!(exported(&second, &run).await.len() as u64, 300 * TASKS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_vanishes_leaves_its_units_to_others() {
    let Some(cluster) = Cluster::on_redis().await else { return };
    let served = cluster.coordinator().await;
    let run = served.client().submit(cluster.submission(200)).await.unwrap().run;
    let vanishing = cluster.worker("a", served.address);
    served.until_recorded(&run, 20).await;
    vanishing.kill().await;
    let staying = cluster.worker("b", served.address);
    let view = served.until_over(&run).await;
    assert_eq!((view.scored, view.failed), (200 * TASKS, 0));
    staying.drain().await;
    let records = exported(&served, &run).await;
    assert!(records.iter().any(|record| record.attempt.worker.as_str() == "b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_extended_while_workers_of_two_coordinators_hold_its_dialogues() {
    let Some(cluster) = Cluster::on_redis().await else { return };
    let (one, two) = (cluster.coordinator().await, cluster.coordinator().await);
    let run = one.client().submit(cluster.submission(200)).await.unwrap().run;
    let workers = [cluster.worker("a", one.address), cluster.worker("b", two.address)];
    one.until_recorded(&run, 20).await;
    let mut more = cluster.submission(250);
    let tasks = more.configuration["tasks"].as_array_mut().unwrap();
    tasks.insert(0, "RdfFriendCount-xml-1".into());
    let extended = two.client().extend(&run, more).await.unwrap();
    let planned = 250 * (TASKS + 1);
    assert_eq!(extended.planned, planned);
    assert!(extended.notes.iter().any(|note| note == "  + iterations = 250"), "{:?}", extended.notes);
    let view = one.until_over(&run).await;
    assert_eq!((view.planned, view.scored, view.failed), (planned, planned, 0));
    for worker in workers {
        assert_eq!(worker.drain().await.unacknowledged, 0);
    }
    assert_eq!(exported(&one, &run).await.len() as u64, planned);
    assert_eq!(exported(&one, &run).await, exported(&two, &run).await);
}
