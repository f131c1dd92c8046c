//! What is added to a judged benchmark of a fleet.

use std::path::Path;

use domain::control::{BenchmarkView, RunPhase};
use rustix::process::Signal;

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, FACTS, free_port, judged_facts};

/// A pipeline of simulated models with these tasks and iterations.
fn configuration(tasks: &[&str], iterations: u32) -> String {
    judged_facts(tasks, iterations, &[("middling", 0.5)])
}

const FRIENDS: &str = "RdfFriendCount-nt-1";

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
fn a_pipeline_of_a_fleet_grows_and_comes_to_what_one_machine_comes_to() {
    let (small, large) = (configuration(&[FACTS], 5), configuration(&[FRIENDS, FACTS], 12));
    let Some(mut cluster) = Cluster::start() else { return };
    // The simulator knows the answers to all that will be asked.
    let files =
        [("small.toml", &small), ("large.toml", &large)].map(|(name, text)| cluster.data.write(name, text));
    let place = format!("127.0.0.1:{}", free_port());
    let _simulator = cluster.data.start(&["simulate", "--benchmark", text(&files[1]), "--listen", &place]);
    let coordinator = cluster.coordinator();
    let submitted = cluster.kgfleet(&coordinator, &["submit", text(&files[0])]).expect(0);
    let pipeline = submitted.stdout.trim();
    let _worker = cluster.worker_with("w", coordinator.port, &format!("http://{place}"), &[]);
    finished(&cluster, &coordinator, pipeline);
    let alone = Data::new();
    let file = alone.write("small.toml", &small);
    let begun = alone.kgfleet(&["run", text(&file), "--json"]).json();
    let name = begun["run"].as_str().unwrap();
    assert_eq!(name, pipeline, "the same configuration is the same pipeline");
    let file = alone.write("large.toml", &large);
    let extended = alone.kgfleet(&["run", text(&file), "--resume", name, "--extend", "--json"]);
    let expected: BenchmarkView = serde_json::from_value(extended.json()).unwrap();
    extended.says(&["  - iterations = 5", "  + iterations = 12"]);
    assert_eq!((expected.phase, expected.planned), (RunPhase::Finished, 24));

    // The coordinator that is told dies at once, and the queue with it; another one goes on.
    let extend = ["submit", text(&files[1]), "--extend", pipeline];
    cluster.kgfleet(&coordinator, &extend).expect(0).says(&["  + iterations = 12"]);
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    cluster.redis.say::<()>("FLUSHALL");
    cluster.redis.restart();
    let coordinator = cluster.coordinator_at(port);
    let view = finished(&cluster, &coordinator, pipeline);
    assert_eq!(cells(&view), cells(&expected));
    let done: Vec<&str> = view.history.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(done, ["submitted", "extended"]);
    let again = ["submit", text(&files[0]), "--extend", pipeline];
    cluster.kgfleet(&coordinator, &again).expect(2).says(&["--extend only adds"]);
}
