//! A value of each message with nothing left at its default, so that a field that the wire forgets shows.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::sync::Arc;
use std::time::Duration;

use domain::control::{
    BenchmarkView, CellView, DeadLetterView, HistoryEntry, ModelView, Pace, RunPhase, StrikeView, WorkerView,
};
use domain::exchange::{Delivery, Grant, LeaseId, RunMaterial, TaskUse, WorkerStatus};
use domain::{About, Connector, DialogueKey, FailureCause, Mean, ModelSpec, Sampling};

pub fn lease(unit: u64) -> LeaseId {
    LeaseId { run: "r".into(), generation: 1 << 40, model: "tiny".into(), unit, attempt: 1 }
}

pub fn grant(unit: u64) -> Grant {
    Grant {
        lease: lease(unit),
        task: "t".into(),
        iterations: vec![0, 4],
        lease_for: Duration::from_secs(30),
        retry: Some(7),
    }
}

pub fn delivery(iteration: u32) -> Delivery {
    let key = DialogueKey { model: "tiny".into(), task: "t".into(), iteration };
    let failure = iteration.is_multiple_of(3).then_some(FailureCause::Server);
    Delivery { run: "r".into(), key, failure, json: format!("{{\"i\":{iteration}}}").into() }
}

pub fn material() -> RunMaterial {
    let model = ModelSpec {
        endpoint: Some("http://h:8000/v1".to_owned()),
        key: Some("KEY".to_owned()),
        key_env: Some("KEY".to_owned()),
        key_file: Some("/keys/house".into()),
        iterations: Some(3),
        task_iterations: [("T-*".to_owned(), 2)].into(),
        sampling: Sampling { temperature: Some(0.7), ..Sampling::default() },
        send_seed: Some(false),
        calls_per_minute: Some(60),
        concurrency: Some(4),
        stream: Some(false),
        skill: Some(0.1 + 0.2),
        recorded: vec!["a.json".into()],
        ..ModelSpec::new("tiny", Connector::Simulated)
    };
    RunMaterial {
        run: "r".into(),
        seed: u64::MAX,
        pack_hash: "00ff".into(),
        tasks: vec![TaskUse { label: "t".into(), pack_label: "p".into() }],
        models: vec![model],
        protected: true,
        about: Some(About { pipeline: "p".into(), stage: "s".into(), model: "m".into(), number: 2 }),
    }
}

pub fn run_view() -> BenchmarkView {
    let model = ModelView {
        model: "tiny".into(),
        planned: 10,
        scored: 5,
        failed: 1,
        units_pending: 2,
        units_leased: 3,
        units_dead: 4,
        units_suspect: 1,
        workers: 6,
        parked: Some("quota".to_owned()),
        pace: Pace::default(),
        blocked: None,
        mean: Mean::default(),
        ..ModelView::default()
    };
    BenchmarkView {
        run: "r".into(),
        name: "quick".to_owned(),
        phase: RunPhase::Active,
        created_at: "2026-11-21T16:00:00.000000001Z".parse().unwrap(),
        generation: 7,
        planned: 10,
        scored: 5,
        failed: 1,
        failures: vec![(FailureCause::Timeout, 1)],
        rate: 0.1 + 0.2,
        eta_s: Some(1e-300),
        trouble: Some("slow".to_owned()),
        models: vec![model],
        cells: vec![CellView {
            task: "t".into(),
            model: "tiny".into(),
            scored: 5,
            failed: 1,
            planned: 10,
            mean: None,
            missing: 2,
            odd: Vec::new(),
        }],
        tokens_per_second: 1e300,
        refusals: Vec::new(),
        notes: vec!["a note".to_owned()],
        headline: Default::default(),
        rows: Vec::new(),
        runs: Vec::new(),
        history: vec![HistoryEntry {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            who: "alice".into(),
            what: "submitted".into(),
        }],
        ..BenchmarkView::default()
    }
}

pub fn worker_view() -> WorkerView {
    let status = WorkerStatus { serves: vec!["tiny".to_owned()], in_flight: 3, ..WorkerStatus::default() };
    WorkerView { worker: "w".into(), status: Arc::new(status), seen_ms_ago: 12, draining: true }
}

pub fn dead_letter() -> DeadLetterView {
    let strike = StrikeView {
        worker: "w".into(),
        attempt: 3,
        cause: "lease expired".to_owned(),
        at: "2026-11-21T16:00:00Z".parse().unwrap(),
    };
    DeadLetterView {
        run: "r".into(),
        unit: 9,
        dialogues: vec![delivery(0).key],
        strikes: vec![strike],
        suspect: true,
    }
}
