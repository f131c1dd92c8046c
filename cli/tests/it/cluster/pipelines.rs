//! Judged benchmarks of a fleet: their records as files, and what is added to them.

use std::path::Path;

use domain::control::{BenchmarkView, RunPhase};
use rustix::process::Signal;

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, FACTS, Running, free_port, judged_facts};

/// A pipeline of simulated models with these tasks and iterations.
fn configuration(tasks: &[&str], iterations: u32) -> String {
    judged_facts(tasks, iterations, &[("middling", 0.5)])
}

const FRIENDS: &str = "RdfFriendCount-nt-1";

/// A pipeline of a fleet, and what answers it.
struct Fleet {
    cluster: Cluster,
    coordinator: Coordinator,
    _simulator: Running,
    _worker: Running,
    pipeline: String,
}

impl Fleet {
    /// Submits and waits for the end. The simulator knows the answers to `all`.
    fn start(submitted: &str, all: &str) -> Option<Self> {
        let cluster = Cluster::start()?;
        let (file, of_all) =
            (cluster.data.write("facts.toml", submitted), cluster.data.write("all.toml", all));
        let place = format!("127.0.0.1:{}", free_port());
        let simulator = cluster.data.start(&["simulate", "--benchmark", text(&of_all), "--listen", &place]);
        let coordinator = cluster.coordinator();
        let pipeline = cluster.kgfleet(&coordinator, &["submit", text(&file)]).expect(0).stdout;
        let worker = cluster.worker_with("w", coordinator.port, &format!("http://{place}"), &[]);
        let fleet = Self {
            pipeline: pipeline.trim().to_owned(),
            cluster,
            coordinator,
            _simulator: simulator,
            _worker: worker,
        };
        finished(&fleet.cluster, &fleet.coordinator, &fleet.pipeline);
        Some(fleet)
    }
}

fn finished(cluster: &Cluster, coordinator: &Coordinator, pipeline: &str) -> BenchmarkView {
    let (view, finished) = cluster.watch(coordinator, pipeline);
    assert_eq!((view.phase, view.failed), (RunPhase::Finished, 0), "{finished}");
    view
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What came out, by row and model.
fn cells(view: &BenchmarkView) -> Vec<(String, u64, u64, Option<f64>)> {
    let cell =
        |cell: &domain::control::CellView| (cell.task.to_string(), cell.scored, cell.planned, cell.mean);
    view.cells.iter().map(cell).collect()
}

#[test]
fn judging_runs_of_a_fleet_are_exported_in_every_format() {
    let small = configuration(&[FACTS], 6);
    let Some(fleet) = Fleet::start(&small, &small) else { return };
    let judging = format!("{}.grade.middling.1", fleet.pipeline);
    // Where nothing of the run lies: what is needed comes from the coordinator.
    let elsewhere = Data::new();
    let url = fleet.coordinator.url();
    let export = |run: &str, format: &str, out: &str| {
        elsewhere.kgfleet(&["export", run, "--format", format, "--out", out, "--coordinator", &url]).expect(0)
    };
    for format in ["result-json", "csv", "xlsx", "parquet", "jsonl"] {
        let file = elsewhere.path().join(format);
        export(&judging, format, text(&file)).says(&["dialogues)"]);
        assert!(std::fs::metadata(&file).unwrap().len() > 100, "{format}");
    }
    let results = std::fs::read_to_string(elsewhere.path().join("result-json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert!(!results.as_array().unwrap().is_empty(), "{results}");
    // All runs of the pipeline, a file each.
    let folder = elsewhere.path().join("all");
    export(&fleet.pipeline, "csv", text(&folder));
    for run in fleet.cluster.data.runs() {
        assert!(folder.join(format!("{}.csv", run.name())).is_file(), "{}", run.name());
    }

    // It comes to another machine whole.
    let file = elsewhere.path().join("whole.tar.zst");
    let archived = ["archive", &fleet.pipeline, "--out", text(&file), "--coordinator", &url];
    elsewhere.kgfleet(&archived).expect(0);
    elsewhere.unpack(&file);
    elsewhere.kgfleet(&["verify", &fleet.pipeline]).expect(0);
    let status = |run: &str| fleet.cluster.kgfleet(&fleet.coordinator, &["status", run, "--json"]).json();
    assert_eq!(status(&judging[..judging.len() - 3])["run"], judging.as_str());
    assert!(status(&fleet.pipeline)["runs"].as_array().unwrap().len() >= 2);

    // In the coordinators' folder the pack lies beside the run. Where it is lost, that is said, and tables are written still.
    let data = &fleet.cluster.data;
    let verified = data.kgfleet(&["verify", &judging]).expect(0);
    assert!(!verified.stdout.contains("not checked"), "{verified}");
    std::fs::rename(data.path().join("packs"), data.path().join("lost")).unwrap();
    data.kgfleet(&["verify", &judging]).expect(0).prints(&["not checked", "the pack of run", &judging]);
    let table = elsewhere.path().join("without.csv");
    data.kgfleet(&["export", &judging, "--format", "csv", "--out", text(&table)]).expect(0);
    let rows = |file: &Path| std::fs::read_to_string(file).unwrap().lines().count();
    assert_eq!(rows(&table), rows(&elsewhere.path().join("csv")));
    let refused = data.kgfleet(&["export", &judging, "--format", "result-json"]);
    assert_ne!(refused.code(), Some(0), "{refused}");
    refused.says(&["the pack of run", "tables and jsonl do without"]);
}

#[test]
fn a_pipeline_of_a_fleet_grows_and_comes_to_what_one_machine_comes_to() {
    let (small, large) = (configuration(&[FACTS], 5), configuration(&[FRIENDS, FACTS], 12));
    let Some(mut fleet) = Fleet::start(&small, &large) else { return };
    let alone = Data::new();
    let file = alone.write("small.toml", &small);
    let begun = alone.kgfleet(&["run", text(&file), "--json"]).json();
    let name = begun["run"].as_str().unwrap();
    assert_eq!(name, fleet.pipeline, "the same configuration is the same pipeline");
    let file = alone.write("large.toml", &large);
    let extended = alone.kgfleet(&["run", text(&file), "--resume", name, "--extend", "--json"]);
    let expected: BenchmarkView = serde_json::from_value(extended.json()).unwrap();
    extended.says(&["  - iterations = 5", "  + iterations = 12"]);
    assert_eq!((expected.phase, expected.planned), (RunPhase::Finished, 24));

    // The coordinator that is told dies at once, and the queue with it; another one goes on.
    let large = fleet.cluster.data.write("large.toml", &large);
    let arguments = ["submit", text(&large), "--extend", &fleet.pipeline];
    fleet.cluster.kgfleet(&fleet.coordinator, &arguments).expect(0).says(&["  + iterations = 12"]);
    let port = fleet.coordinator.port;
    fleet.coordinator.process.signal(Signal::KILL);
    fleet.coordinator.process.finish();
    fleet.cluster.redis.say::<()>("FLUSHALL");
    fleet.cluster.redis.restart();
    let coordinator = fleet.cluster.coordinator_at(port);
    let view = finished(&fleet.cluster, &coordinator, &fleet.pipeline);
    assert_eq!(cells(&view), cells(&expected));
    let done: Vec<&str> = view.history.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(done, ["submitted", "extended"]);
    let again = fleet.cluster.data.write("again.toml", &small);
    let refused = fleet.cluster.kgfleet(&coordinator, &["submit", text(&again), "--extend", &fleet.pipeline]);
    refused.expect(2).says(&["--extend only adds"]);
}
