//! What a scrape of a large fleet is like: 1 000 workers, and a run of 41 models on 26 tasks.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::{Coordinator, CoordinatorOptions};
use domain::control::{Control, RunPhase, Submission};
use domain::exchange::{
    Delivery, Grant, LeaseEnd, LeaseId, Offer, Receipt, Registration, Report, Serves, WorkExchange,
    WorkerStatus,
};
use domain::{DialogueKey, InstanceId, Record, RecordId, WorkerId};
use serde_json::json;
use service_kit::metrics::Metrics;

const WORKERS: usize = 1_000;
const MODELS: usize = 41;
const TASKS: usize = 26;

/// Series that no metric may exceed.
const SERIES_MAX: usize = 5_000;

fn submission() -> Submission {
    let model = |number: usize| json!({"label": format!("model-{number}"), "connector": "openai-compatible"});
    let models: Vec<_> = (0..MODELS).map(model).collect();
    let configuration = json!({"name": "large", "seed": 7, "iterations": 2, "models": models});
    Submission { configuration, pack: None }
}

fn report(worker: usize, room: u32, finished: Vec<LeaseId>) -> Report {
    let serves: Vec<String> = (0..MODELS).map(|number| format!("model-{number}")).collect();
    let offer = |name: &String| Offer { serves: Serves::Model(name.clone()), room };
    Report {
        worker: WorkerId::new(format!("worker-{worker}")),
        instance: InstanceId::default(),
        offers: serves.iter().map(offer).collect(),
        held: Vec::new(),
        ended: finished.into_iter().map(|lease| (lease, LeaseEnd::Finished)).collect(),
        parked: Vec::new(),
        draining: false,
        wait: Duration::ZERO,
        status: WorkerStatus { serves, ..WorkerStatus::default() },
        until: None,
    }
}

/// A scored record of the first of a grant's dialogues; the others stay open, so that the run goes on.
fn record(lease: &LeaseId, key: &DialogueKey) -> Record {
    serde_json::from_value(json!({
        "key": key,
        "attempt": {
            "id": RecordId::random(), "generation": lease.generation, "number": lease.attempt, "worker": "w",
        },
        "started_at": "2025-01-01T00:00:00Z",
        "ended_at": "2025-01-01T00:00:01Z",
        "rounds": [],
        "outcome": {"state": "scored", "infos": {}, "scores": {
            "f1": 0.5, "combinedF1": 0.5, "listTrimF1": 0.5, "normAnswerF1Score": 0.5, "norm_f-measure": 0.5,
            "persons_relative_error": 0.5, "max": {"combined": 0.5, "f1": 0.5},
        }},
        "provenance": {
            "kgfleet": "0", "sampling": {}, "seed": 1,
            "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s"},
            "model": {"connector": "played", "requested": "m"},
        },
    }))
    .unwrap()
}

fn first_of(grant: &Grant) -> Option<DialogueKey> {
    let iteration = grant.iterations.iter().copied().find(|iteration| *iteration == 0)?;
    Some(DialogueKey { model: grant.lease.model.clone(), task: grant.task.clone(), iteration })
}

#[tokio::test]
async fn a_scrape_of_a_large_fleet_is_small_and_quick() {
    let metrics = Metrics::install().unwrap();
    metrics.introduce("coordinator", "0");
    coordinator::metrics::begin(&metrics);
    let data = tempfile::tempdir().unwrap();
    // No worker is lost while the test is at work, however slow the machine is.
    let lease_for = Duration::from_secs(3_600);
    let config = CoordinatorOptions { tends: false, lease_for, ..CoordinatorOptions::fleet() };
    let queue = queue::open("memory", None).unwrap();
    let coordinator = Coordinator::start(config, queue, results::sink::folder(data.path().to_owned()));
    let access = coordinator.unnamed();
    let run = access.submit(submission()).await.unwrap();
    for worker in 0..WORKERS {
        let registration = Registration {
            worker: WorkerId::new(format!("worker-{worker}")),
            instance: InstanceId::default(),
            predecessors: Vec::new(),
            kgfleet: "0".into(),
            host: "h".into(),
        };
        access.register(registration).await.unwrap();
        access.exchange(report(worker, 0, Vec::new())).await.unwrap();
    }
    let mut cells = 0;
    while cells < MODELS * TASKS {
        let orders = access.exchange(report(0, 200, Vec::new())).await.unwrap();
        let granted = orders.grants.iter().filter_map(|grant| Some((grant, first_of(grant)?)));
        let deliver = |(grant, key): (&Grant, DialogueKey)| {
            Delivery::of(grant.lease.run.clone(), &record(&grant.lease, &key)).unwrap()
        };
        let deliveries: Vec<Delivery> = granted.map(deliver).collect();
        assert!(!orders.grants.is_empty(), "{cells} cells have a record");
        for delivery in deliveries.chunks(500) {
            let receipts = access.deliver(delivery.to_vec()).await.unwrap();
            cells += receipts.iter().filter(|receipt| **receipt == Receipt::Stored).count();
        }
    }
    let tending = Instant::now();
    coordinator.tend().await.unwrap();
    let tended = tending.elapsed();
    let rendering = Instant::now();
    let page = metrics.render();
    let rendered = rendering.elapsed();

    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        *families.entry(line.split(['{', ' ']).next().unwrap()).or_default() += 1;
    }
    let series: usize = families.values().sum();
    eprintln!(
        "{WORKERS} workers, {MODELS} models x {TASKS} tasks: {} KiB and {series} series, made in {:.1} ms after a round of {:.0} ms",
        page.len() >> 10,
        rendered.as_secs_f64() * 1e3,
        tended.as_secs_f64() * 1e3,
    );
    let (largest, of_largest) = families.iter().max_by_key(|(_, series)| **series).unwrap();
    assert!(*of_largest <= SERIES_MAX, "{largest} has {of_largest} series");
    for family in ["kgfleet_run_cell_score", "kgfleet_run_cell_done_ratio", "kgfleet_dialogues_total"] {
        assert_eq!(families[family], MODELS * TASKS, "{family}");
    }
    assert!(page.contains("\nkgfleet_workers 1000\n") && page.contains("\nkgfleet_dropped_series 0\n"));
    ends_with_its_run(&coordinator, &metrics, &run.run).await;
}

/// The series of a run end with it; what was counted stays.
async fn ends_with_its_run(coordinator: &Arc<Coordinator>, metrics: &Metrics, run: &domain::RunId) {
    let named = format!("run=\"{run}\"");
    assert!(metrics.render().contains(&named));
    let cancelled =
        coordinator.unnamed().command(run, domain::control::BenchmarkCommand::Cancel).await.unwrap();
    assert_eq!(cancelled.phase, RunPhase::Cancelled);
    coordinator.tend().await.unwrap();
    let page = metrics.render();
    assert!(!page.contains(&named), "nothing of it is told any more");
    assert!(page.contains("\nkgfleet_runs 0\n"));
    assert!(page.contains("\nkgfleet_dialogues_total{model=\"model-1\""), "counters stay");
}
