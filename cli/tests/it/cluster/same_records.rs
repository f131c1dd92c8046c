//! The same configuration and seed, on one machine and through a cluster: the same records.

use std::collections::BTreeMap;
use std::path::Path;

use domain::{DialogueKey, Record};

use crate::determinism::timeless;
use crate::harness::{Cluster, Data, Running};

const CONFIGURATION: &str = "name = 'same'\nseed = 11\niterations = 2\n\
    [[models]]\nlabel = 'sim-a'\nconnector = 'simulated'\nskill = 0.7\n\
    [[models]]\nlabel = 'sim-b'\nconnector = 'simulated'\nskill = 0.3\n";
const DIALOGUES: usize = 104;

/// The records of an export, without what may differ: beside times and attempts, the servers' addresses and where records were made.
fn records(file: &Path) -> BTreeMap<DialogueKey, Record> {
    let mut records = timeless(file);
    for record in records.values_mut() {
        record.provenance.model.endpoint = None;
        record.provenance.made_at = None;
    }
    records
}

#[test]
fn one_machine_and_a_cluster_record_the_same() {
    let Some(cluster) = Cluster::start() else { return };
    let configuration = cluster.data.write("same.toml", CONFIGURATION);
    let configuration = configuration.to_str().unwrap();

    let alone = Data::new();
    alone.kgfleet(&["run", configuration, "--export", "jsonl"]).expect(0);
    let run = alone.run();
    let alone = records(&run.dir.exports().join(format!("{}.jsonl", run.name())));
    assert_eq!(alone.len(), DIALOGUES);

    let simulator_port = crate::harness::free_port();
    let listen = format!("127.0.0.1:{simulator_port}");
    let simulator: Running =
        cluster.data.start(&["simulate", "--benchmark", configuration, "--listen", &listen]);
    let coordinator = cluster.coordinator();
    let endpoint = format!("http://{listen}/v1");
    let _workers: Vec<Running> = ["one", "two"]
        .into_iter()
        .map(|name| cluster.worker_with(name, coordinator.port, &endpoint, &[]))
        .collect();
    let submitted = cluster.kgfleet(&coordinator, &["submit", configuration]).expect(0);
    let (view, finished) = cluster.watch(&coordinator, submitted.stdout.trim());
    finished.expect(0);
    assert_eq!((view.planned, view.scored, view.failed), (DIALOGUES as u64, DIALOGUES as u64, 0));

    // Over the wire, as its user would; and the coordinator's own folder says the same.
    let file = cluster.data.path().join("fleet.jsonl");
    let out = file.to_str().unwrap();
    let run = view.run.to_string();
    cluster.kgfleet(&coordinator, &["export", &run, "--format", "jsonl", "--out", out]).expect(0);
    assert_eq!(records(&file), alone);
    cluster.data.kgfleet(&["export", &run, "--format", "jsonl", "--out", out]).expect(0);
    assert_eq!(records(&file), alone);

    // On another machine, out of an archive.
    let other = Data::new();
    let archive = other.path().join("run.tar.zst").to_str().unwrap().to_owned();
    cluster.kgfleet(&coordinator, &["archive", &run, "--out", &archive]).expect(0);
    other.kgfleet(&["export", &archive, "--format", "jsonl", "--out", out]).expect(0);
    assert_eq!(records(&file), alone);
    drop(simulator);
}
