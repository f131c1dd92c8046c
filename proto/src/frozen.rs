//! Messages as first written, by the version of the wire, decoded by every build. They are never rewritten: a change that
//! decodes them differently breaks every cluster that is updated one process at a time.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::control::{
    BenchmarkCommand, BenchmarkView, Better, CellView, DeadLetterView, ExportItem, HeadlineView,
    HistoryEntry, ModelNeed, ModelView, Pace, RefusalView, RowKind, RowView, RunLine, RunPhase, StrikeView,
    WorkerView,
};
use domain::exchange::{
    Delivery, Departure, Grant, LeaseEnd, LeaseId, ModelLimit, Offer, Orders, Outlook, Parking, RateBudget,
    Receipt, Registered, Registration, Report, RunMaterial, Serves, TaskUse, Until, WorkerPhase,
    WorkerStatus,
};
use domain::reach::{KeyReach, Place, Reach};
use domain::{
    CallMode, Connector, DialogueKey, ErrorCode, FailureCause, InstanceId, Mean, ModelSpec, ModelUsage,
    RequestSettings, RunId, Sampling, ServiceError,
};
use prost::Message;

use crate::convert::{all, causes_from_wire, causes_to_wire, every};
use crate::convert::{
    configuration_from_wire, receipts_from_wire, receipts_to_wire, wait_from_wire, wait_to_wire,
};
use crate::wire::{self, batch_outcome::Outcome, submit_part::Part};

mod pools;

/// Reads the frozen bytes of a message. With `KGFLEET_BLESS=1`, a missing file is written first.
fn thawed<W: Message + Default>(name: &str, message: W) -> W {
    // Version 1 is the first; messages that came with a later one stand in its folder.
    let name = if name.contains('/') { name.to_owned() } else { format!("v1/{name}") };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("{name}.bin"));
    if !path.exists() && std::env::var_os("KGFLEET_BLESS").is_some() {
        std::fs::write(&path, message.encode_to_vec()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // A field from the future: number 2047, three bytes. It must be ignored.
    let with_unknown_field: Vec<u8> = bytes.iter().copied().chain([0xfa, 0x7f, 3, 1, 2, 3]).collect();
    let message = W::decode(bytes.as_slice()).unwrap();
    let same = W::decode(with_unknown_field.as_slice()).unwrap();
    assert_eq!(message.encode_to_vec(), same.encode_to_vec(), "{name}");
    message
}

/// Checks that the frozen bytes decode to this value.
fn frozen<D, W>(name: &str, value: D)
where
    D: Clone + Debug + PartialEq + TryFrom<W>,
    <D as TryFrom<W>>::Error: Debug,
    W: Message + Default + TryFrom<D>,
    <W as TryFrom<D>>::Error: Debug,
{
    let thawed = thawed(name, W::try_from(value.clone()).unwrap());
    assert_eq!(D::try_from(thawed).unwrap(), value, "{name}");
}

fn lease(unit: u64) -> LeaseId {
    LeaseId { run: "2026-autumn".into(), generation: 3, model: "tiny".into(), unit, attempt: 2 }
}

fn key() -> DialogueKey {
    DialogueKey { model: "tiny".into(), task: "count-friends".into(), iteration: 7 }
}

fn status() -> WorkerStatus {
    WorkerStatus {
        kgfleet: "0.1.0".into(),
        host: "node-1".into(),
        serves: vec!["tiny".into(), "large".into()],
        in_flight: 12,
        limit: 64,
        dialogues: 4096,
        unacknowledged: 5,
        parked_records: 0,
        trouble: Some("the server is full".into()),
        ..WorkerStatus::default()
    }
}

#[test]
fn registrations() {
    frozen::<_, wire::Registration>(
        "registration",
        Registration {
            worker: "node-1-a".into(),
            instance: InstanceId::default(),
            predecessors: Vec::new(),
            kgfleet: "0.1.0".into(),
            host: "node-1".into(),
        },
    );
    frozen::<_, wire::Registered>(
        "registered",
        Registered { kgfleet: "0.1.0".into(), report_every: Duration::from_millis(10_500), taken: None },
    );
}

#[test]
fn what_workers_may_ask() {
    let place = Place::parse("https://llm.example.org/v1").unwrap();
    let key = KeyReach {
        name: "house".into(),
        connector: Connector::OpenaiCompatible,
        places: vec![place.clone()],
    };
    frozen::<_, wire::WorkerStatus>(
        "worker_status_with_reach",
        WorkerStatus {
            reach: Some(Reach { keys: vec![key], places: vec![place] }),
            lacks: vec!["claude: environment variable ANTHROPIC_API_KEY is not set".into()],
            sandbox: vec!["Landlock".into()],
            ..status()
        },
    );
}

#[test]
fn histories() {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    frozen::<_, wire::HistoryEntry>(
        "history_entry",
        HistoryEntry { at, who: "alice".into(), what: "submitted".into() },
    );
}

#[test]
fn reports() {
    let parking = Parking {
        run: "2026-autumn".into(),
        model: "large".into(),
        parked_for: Duration::from_secs(900),
        reason: "quota".into(),
    };
    frozen::<_, wire::Report>(
        "report",
        Report {
            worker: "node-1-a".into(),
            instance: InstanceId::default(),
            offers: vec![
                Offer { serves: Serves::Model("tiny".into()), room: 8 },
                Offer { serves: Serves::Connector(Connector::Gemini), room: 0 },
            ],
            held: vec![lease(1), lease(2)],
            ended: BTreeMap::from([(lease(3), LeaseEnd::Finished), (lease(4), LeaseEnd::Released)]),
            parked: vec![parking],
            draining: true,
            wait: Duration::from_secs(20),
            status: status(),
            until: None,
        },
    );
}

#[test]
fn orders() {
    let grant = Grant {
        lease: lease(5),
        task: "count-friends".into(),
        iterations: vec![0, 1, 9],
        lease_for: Duration::from_secs(30),
        retry: None,
    };
    frozen::<_, wire::Orders>(
        "orders",
        Orders { grants: vec![grant], lost: vec![lease(6)], noted: true, drain: true, ..Orders::default() },
    );
    frozen::<_, wire::Orders>(
        "v2/orders_of_a_run_that_is_over",
        Orders { lost: vec![lease(6)], over: vec!["2026-autumn".into()], ..Orders::default() },
    );
}

#[test]
fn workers_that_end_when_nothing_is_left() {
    let status = WorkerStatus {
        pool: "large".into(),
        node: "h100-3".into(),
        gpus: 8,
        phase: Some(WorkerPhase::Loading),
        phase_s: 90,
        loaded_s: Some(1_200),
        ..status()
    };
    frozen::<_, wire::WorkerStatus>("v2/worker_status_of_a_pool", status.clone());
    let loading = WorkerStatus { expects: vec!["large".into()], ..status.clone() };
    frozen::<_, wire::WorkerStatus>("v2/worker_status_that_expects", loading);
    let report = Report {
        worker: "node-1-a".into(),
        instance: "i".into(),
        offers: Vec::new(),
        held: Vec::new(),
        ended: BTreeMap::new(),
        parked: Vec::new(),
        draining: false,
        wait: Duration::ZERO,
        status,
        until: Some(Until { expects: vec!["large".into()] }),
    };
    frozen::<_, wire::Report>("v2/report_until", report);
    for outlook in Outlook::ALL {
        let orders = Orders { noted: true, outlook: Some(outlook), ..Orders::default() };
        frozen::<_, wire::Orders>(&format!("v2/orders_{outlook}"), orders);
    }
    let why = "done".to_owned();
    let leaving = wire::WorkerReference { worker: "node-1-a".into(), instance: "i".into(), why };
    assert_eq!(Departure::named(&thawed("v2/deregister", leaving).why), Some(Departure::Done));
    frozen::<_, wire::ModelNeed>(
        "v2/model_need",
        ModelNeed { model: "large".into(), outlook: Outlook::Work, dialogues: 520, rate: 2.5, workers: 1 },
    );
}

#[test]
fn records() {
    let delivery = |failure| Delivery {
        run: "2026-autumn".into(),
        key: key(),
        failure,
        json: r#"{"outcome":"ü","score":0.30000000000000004}"#.into(),
    };
    let deliveries = vec![delivery(None), delivery(Some(FailureCause::ContextExceeded))];
    for (name, takes_later) in [("delivery_batch", false), ("delivery_batch_later", true)] {
        let batch = wire::DeliveryBatch { sequence: 300, deliveries: every(deliveries.clone()), takes_later };
        let batch = thawed(name, batch);
        assert_eq!((batch.sequence, batch.takes_later), (300, takes_later));
        let found: Vec<Delivery> = all(batch.deliveries).unwrap();
        assert_eq!(found, deliveries);
    }

    let taken = |name: &str, receipts: wire::Receipts| {
        let expected = receipts.receipts.len();
        let outcome = Some(Outcome::Receipts(receipts));
        let taken = thawed(name, wire::BatchOutcome { sequence: 300, outcome });
        let Some(Outcome::Receipts(found)) = taken.outcome else { panic!("{taken:?}") };
        (taken.sequence, receipts_from_wire(found, expected).unwrap())
    };
    let refused = Receipt::Refused { reason: "not planned".into() };
    let later = Receipt::Later { reason: "not planned".into() };
    let of_before =
        wire::Receipts { receipts: every(vec![Receipt::Stored, refused.clone()]), refusals_are_final: false };
    assert_eq!(taken("batch_taken", of_before), (300, vec![Receipt::Stored, later.clone()]));
    let receipts = vec![Receipt::Stored, refused, later];
    assert_eq!(taken("batch_taken_later", receipts_to_wire(receipts.clone())), (300, receipts));

    let error = ServiceError::new(ErrorCode::Full, "the disk is full");
    let outcome = Some(Outcome::Error(error.clone().into()));
    let refused = thawed("batch_refused", wire::BatchOutcome { sequence: 301, outcome });
    let Some(Outcome::Error(found)) = refused.outcome else { panic!("{refused:?}") };
    assert_eq!((refused.sequence, ServiceError::try_from(found).unwrap()), (301, error));
}

#[test]
fn materials() {
    let model = ModelSpec {
        label: "tiny".into(),
        connector: Connector::OpenaiCompatible,
        model: Some("org/tiny".into()),
        endpoint: Some("http://127.0.0.1:8000/v1".into()),
        key: None,
        key_env: Some("TINY_KEY".into()),
        key_file: Some("/run/key".into()),
        iterations: Some(20),
        task_iterations: BTreeMap::new(),
        sampling: Sampling { temperature: Some(0.1), stop: vec!["\n".into()], ..Sampling::default() },
        request: RequestSettings::default(),
        send_seed: Some(false),
        calls_per_minute: Some(60),
        concurrency: Some(4),
        stream: Some(true),
        mode: CallMode::Online,
        skill: Some(0.5),
        recorded: vec!["a.json".into()],
    };
    frozen::<_, wire::RunMaterial>(
        "run_material",
        RunMaterial {
            run: "2026-autumn".into(),
            seed: u64::MAX,
            pack_hash: "00ff".into(),
            tasks: vec![TaskUse { label: "count-friends".into(), pack_label: "friends".into() }],
            models: vec![model],
            protected: true,
            about: None,
        },
    );
}

#[test]
fn budgets() {
    let budget = RateBudget { name: "TINY_KEY".into(), per_minute: 60 };
    let request = thawed("rate_request", wire::RateRequest::from((&budget, 3)));
    assert_eq!(<(RateBudget, u32)>::try_from(request).unwrap(), (budget, 3));
    let wait = Some(Duration::new(1, 1));
    assert_eq!(wait_from_wire(thawed("rate_answer", wait_to_wire(wait))).unwrap(), wait);
}

#[test]
fn submissions() {
    let head = wire::SubmissionHead {
        configuration_json: r#"{"name":"quick","seed":1}"#.into(),
        with_pack: true,
        extends: String::new(),
    };
    let part = thawed("submit_head", wire::SubmitPart { part: Some(Part::Head(head)) });
    let Some(Part::Head(head)) = part.part else { panic!("{part:?}") };
    assert!(head.with_pack);
    assert_eq!(configuration_from_wire(&head).unwrap(), serde_json::json!({ "name": "quick", "seed": 1 }));

    let head =
        wire::SubmissionHead { configuration_json: "{}".into(), with_pack: false, extends: "r".into() };
    let part = thawed("extend_head", wire::SubmitPart { part: Some(Part::Head(head)) });
    let Some(Part::Head(head)) = part.part else { panic!("{part:?}") };
    assert_eq!((head.extends.as_str(), head.with_pack), ("r", false));

    let chunk = wire::PackChunk { total_bytes: 1000, data: vec![0, 1, 255].into() };
    let part = thawed("submit_pack", wire::SubmitPart { part: Some(Part::Pack(chunk)) });
    let Some(Part::Pack(chunk)) = part.part else { panic!("{part:?}") };
    assert_eq!((chunk.total_bytes, chunk.data.as_ref()), (1000, [0, 1, 255].as_slice()));
}

#[test]
fn runs() {
    let model = ModelView {
        model: "tiny".into(),
        planned: 520,
        scored: 400,
        failed: 20,
        units_pending: 8,
        units_leased: 2,
        units_dead: 1,
        units_suspect: 0,
        workers: 4,
        parked: Some("quota".into()),
        pace: Pace::default(),
        blocked: None,
        mean: Mean::default(),
        ..ModelView::default()
    };
    let cell = CellView {
        task: "count-friends".into(),
        model: "tiny".into(),
        scored: 19,
        failed: 1,
        planned: 0,
        mean: Some(0.1 + 0.2),
        missing: 0,
    };
    let view = BenchmarkView {
        run: "2026-autumn".into(),
        name: "autumn".into(),
        phase: RunPhase::Paused,
        created_at: "2026-11-21T16:00:00.123456789Z".parse().unwrap(),
        generation: 3,
        planned: 520,
        scored: 400,
        failed: 20,
        failures: vec![(FailureCause::Timeout, 18), (FailureCause::Poisoned, 2)],
        rate: 12.5,
        eta_s: Some(8.0),
        trouble: Some("no worker".into()),
        models: vec![model.clone()],
        cells: vec![cell.clone()],
        tokens_per_second: 0.0,
        refusals: Vec::new(),
        history: Vec::new(),
        notes: Vec::new(),
        ..BenchmarkView::default()
    };
    frozen::<_, wire::RunView>("run_view", view.clone());
    let model = ModelView {
        pace: Pace { rate: 2.5, tokens_per_second: 640.0, eta_s: Some(40.0) },
        blocked: Some("no worker serves it".into()),
        mean: Mean { value: Some(0.148), covered: 9, planned: 26 },
        ..model
    };
    let refusal = RefusalView {
        model: "tiny".into(),
        cause: FailureCause::BadRequest,
        message: "HTTP 404: Not Found".into(),
        dialogues: 20,
    };
    frozen::<_, wire::RunView>(
        "run_view_with_paces",
        BenchmarkView {
            models: vec![model],
            cells: vec![CellView { planned: 20, ..cell }],
            tokens_per_second: 640.0,
            refusals: vec![refusal],
            notes: vec!["not measured alike".into()],
            ..view.clone()
        },
    );
    let row = |name: &str, kind, better| RowView { name: name.into(), kind, better };
    frozen::<_, wire::RunView>(
        "v2/run_view_of_judged",
        BenchmarkView {
            headline: HeadlineView { words: "grade".into(), intervals: false },
            rows: vec![
                row("ask", RowKind::Stage, Better::Higher),
                row("= grade", RowKind::Result, Better::Lower),
                row("t", RowKind::Task, Better::Neither),
            ],
            runs: vec![RunLine {
                name: "p.grade.tiny.1".into(),
                stage: "grade".into(),
                model: "tiny".into(),
                asks: "judge".into(),
                phase: RunPhase::Active,
                planned: 20,
                scored: 3,
                failed: 1,
            }],
            ..view
        },
    );
}

#[test]
fn runs_with_what_they_used() {
    let usage = ModelUsage {
        dialogues: 400,
        uncounted: 2,
        prompt_tokens: 280_000,
        cached_tokens: 9_000,
        completion_tokens: 160_000,
        answers: 420,
        answer_ms: 630_000,
        failed_calls: 7,
    };
    let model = ModelView {
        model: "tiny".into(),
        billed_as: Some("tiny-2026".into()),
        usage,
        limit: 64,
        ..ModelView::default()
    };
    frozen::<_, wire::RunView>(
        "v2/run_view_with_usage",
        BenchmarkView {
            run: "2026-autumn".into(),
            phase: RunPhase::Active,
            models: vec![model],
            elapsed_s: Some(3600.5),
            per_minute: vec![12, 0, 30],
            unacknowledged: 5_000,
            ..BenchmarkView::default()
        },
    );
    frozen::<_, wire::RunView>(
        "v2/run_view_with_share",
        BenchmarkView {
            run: "2026-autumn".into(),
            phase: RunPhase::Active,
            priority: 20,
            submitter: "alice".into(),
            ..BenchmarkView::default()
        },
    );
    frozen::<_, wire::ModelView>(
        "v2/model_view_that_loads",
        ModelView {
            model: "tiny".into(),
            blocked: Some("a server of it is loading".into()),
            loading: true,
            ..ModelView::default()
        },
    );
    let limit = ModelLimit { model: "tiny".into(), limit: 64, ..ModelLimit::default() };
    frozen::<_, wire::WorkerStatus>(
        "v2/worker_status_with_limits",
        WorkerStatus { limits: vec![limit.clone()], ..status() },
    );
    let reasons = vec!["server-queue".to_owned()];
    frozen::<_, wire::WorkerStatus>(
        "v2/worker_status_with_reasons",
        WorkerStatus { limits: vec![ModelLimit { reasons: reasons.clone(), ..limit }], ..status() },
    );
    frozen::<_, wire::ModelView>(
        "v2/model_view_with_reasons",
        ModelView { model: "tiny".into(), limit: 64, limit_reasons: reasons, ..ModelView::default() },
    );
}

#[test]
fn commands() {
    let run = RunId::new("2026-autumn");
    let command = thawed("command", wire::CommandRequest::from((&run, BenchmarkCommand::Cancel)));
    assert_eq!(<(RunId, BenchmarkCommand)>::try_from(command).unwrap(), (run, BenchmarkCommand::Cancel));

    // Causes that came later have a file of their own.
    let (wrong, unparseable) = ([FailureCause::WrongModel], [FailureCause::JudgeUnparseable]);
    let later = [wrong, unparseable].concat();
    let first = FailureCause::ALL.into_iter().filter(|cause| !later.contains(cause)).collect::<Vec<_>>();
    for (name, causes) in
        [("retry", &*first), ("retry_wrong_model", &wrong), ("retry_unparseable", &unparseable)]
    {
        let request = wire::RetryRequest { run: "r".into(), causes: causes_to_wire(causes) };
        let request = thawed(name, request);
        assert_eq!(causes_from_wire(request.causes).unwrap(), causes, "{name}");
    }

    let request = thawed("requeue", wire::RequeueRequest { run: "r".into(), units: vec![1, 1 << 40] });
    assert_eq!((request.run.as_str(), request.units), ("r", vec![1, 1 << 40]));
    let request = thawed("dead_letters", wire::DeadLettersRequest { run: "r".into(), unit: Some(0) });
    assert_eq!((request.run.as_str(), request.unit), ("r", Some(0)));
}

#[test]
fn exports() {
    frozen::<_, wire::ExportItem>("export_manifest", ExportItem::Manifest(r#"{"run":"r"}"#.into()));
    frozen::<_, wire::ExportItem>(
        "export_record",
        ExportItem::Record { ticket: 1 << 33, json: r#"{"score":1.0}"#.into() },
    );
    frozen::<_, wire::ExportItem>("v2/export_documents", ExportItem::Documents(r#"{"pipelines":[]}"#.into()));
}

#[test]
fn workers_and_dead_letters() {
    frozen::<_, wire::WorkerView>(
        "worker_view",
        WorkerView {
            worker: "node-1-a".into(),
            status: Arc::new(status()),
            seen_ms_ago: 1500,
            draining: true,
        },
    );
    let strike = StrikeView {
        worker: "node-1-a".into(),
        attempt: 3,
        cause: "lease expired".into(),
        at: "1969-12-31T23:59:59.5Z".parse().unwrap(),
    };
    frozen::<_, wire::DeadLetter>(
        "v2/dead_letter",
        DeadLetterView {
            run: "r".into(),
            unit: 9,
            dialogues: vec![key()],
            strikes: vec![strike],
            suspect: false,
        },
    );
    // Version 1 did not say the run, which was that of the request.
    let first = thawed("dead_letter", wire::DeadLetter::default());
    assert_eq!((first.unit, first.run.as_str()), (9, ""));
}
