//! Every type survives the round trip over the wire; all other input is an error and never a panic.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use domain::control::{
    BenchmarkCommand, BenchmarkView, Better, CellView, DeadLetterView, ExportItem, HeadlineView,
    HistoryEntry, ModelNeed, ModelView, Pace, RefusalView, RowKind, RowView, RunLine, RunPhase, StrikeView,
    WorkerView,
};
use domain::exchange::{
    Delivery, Grant, LeaseId, Offer, Outlook, RateBudget, Receipt, Registered, Registration, Report,
    RunMaterial, TaskUse,
};
use domain::pools::{
    PoolState, PoolStates, PoolWait, ServerEnd, ServerFault, ServerStage, ServerUsage, ServersDoing,
    UsageHours, WaitReason,
};
use domain::{
    About, Connector, DialogueKey, ErrorCode, FailureCause, InstanceId, Mean, ModelSpec, ModelUsage,
    RequestSettings, RunId, Sampling, ServiceError, TaskLabel,
};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;

use crate::convert::{self, ConversionError};
use crate::fuzzing::read_as_anything;
use crate::wire;
use views::{cell, model_view, pace, pool_state, refusal, server_usage};

mod views;

mod work;

use work::{name_taken, orders, report, status};

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 ü/._-]{1,12}"
}

fn words() -> impl Strategy<Value = String> {
    "\\PC{0,20}"
}

fn duration() -> impl Strategy<Value = Duration> {
    (prop_oneof![0..100_u64, 0..=i64::MAX as u64], 0..1_000_000_000_u32)
        .prop_map(|(s, ns)| Duration::new(s, ns))
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond())
        .prop_map(|ns| Timestamp::from_nanosecond(ns).unwrap())
}

fn cause() -> impl Strategy<Value = FailureCause> {
    proptest::sample::select(FailureCause::ALL.to_vec())
}

fn connector() -> impl Strategy<Value = Connector> {
    proptest::sample::select(Connector::ALL.to_vec())
}

fn key() -> impl Strategy<Value = DialogueKey> {
    (name(), name(), any::<u32>()).prop_map(|(model, task, iteration)| DialogueKey {
        model: model.as_str().into(),
        task: task.as_str().into(),
        iteration,
    })
}

fn delivery() -> impl Strategy<Value = Delivery> {
    (name(), key(), option::of(cause()), "\\PC{1,50}").prop_map(|(run, key, failure, json)| Delivery {
        run: run.as_str().into(),
        key,
        failure,
        json: json.into(),
    })
}

fn receipt() -> impl Strategy<Value = Receipt> {
    prop_oneof![
        Just(Receipt::Stored),
        words().prop_map(|reason| Receipt::Later { reason }),
        words().prop_map(|reason| Receipt::Refused { reason }),
    ]
}

prop_compose! {
    fn model_spec()(
        label in name(),
        connector in connector(),
        texts in (option::of(words()), option::of(words()), option::of(words()), option::of(words())),
        numbers in (option::of(any::<u32>()), option::of(any::<u32>()), option::of(any::<u32>())),
        flags in (option::of(any::<bool>()), option::of(any::<bool>())),
        floats in (option::of(any::<f64>()), option::of(any::<f64>())),
        recorded in vec(words(), 0..3),
    ) -> ModelSpec {
        let (model, endpoint, key_env, key_file) = texts;
        let sampling = Sampling { temperature: floats.0, max_tokens: numbers.2, ..Sampling::default() };
        ModelSpec {
            label: label.as_str().into(),
            connector,
            model,
            endpoint,
            key: key_env.clone(),
            key_env,
            key_file: key_file.map(Into::into),
            iterations: numbers.0,
            task_iterations: numbers.1.map(|count| ("T-*".to_owned(), count)).into_iter().collect(),
            sampling,
            request: RequestSettings { dimensions: numbers.1, ..RequestSettings::default() },
            send_seed: flags.0,
            calls_per_minute: numbers.1,
            concurrency: numbers.2,
            stream: flags.1,
            skill: floats.1,
            recorded: recorded.into_iter().map(Into::into).collect(),
            ..ModelSpec::new("m", connector)
        }
    }
}

prop_compose! {
    fn material()(
        run in name(),
        seed in any::<u64>(),
        pack_hash in name(),
        tasks in vec((name(), name()), 0..3),
        models in vec(model_spec(), 0..3),
        protected in any::<bool>(),
        about in option::of((name(), name(), name(), any::<u32>())),
    ) -> RunMaterial {
        let task = |(label, pack_label): (String, String)| TaskUse {
            label: TaskLabel::new(label),
            pack_label: TaskLabel::new(pack_label),
        };
        let tasks = tasks.into_iter().map(task).collect();
        let about = about.map(|(pipeline, stage, model, number)| About {
            pipeline,
            stage,
            model: model.as_str().into(),
            number,
        });
        RunMaterial { run: RunId::new(run), seed, pack_hash, tasks, models, protected, about }
    }
}

fn phase() -> impl Strategy<Value = RunPhase> {
    proptest::sample::select(vec![
        RunPhase::Preparing,
        RunPhase::Active,
        RunPhase::Paused,
        RunPhase::Cancelled,
        RunPhase::Finished,
    ])
}

prop_compose! {
    fn run_view()(
        names in (name(), words()),
        phase in phase(),
        created_at in timestamp(),
        counts in any::<(u64, u64, u64, u64)>(),
        failures in vec((cause(), any::<u64>()), 0..3),
        pace in pace(),
        trouble in option::of(words()),
        models in vec(model_view(), 0..3),
        cells in vec(cell(), 0..3),
        told in (vec(refusal(), 0..3), vec(words(), 0..3)),
        shape in (words(), any::<bool>(), vec(row(), 0..3), vec(run_line(), 0..3)),
        time in (option::of(any::<f64>()), vec(any::<u64>(), 0..3), any::<u64>(), vec(pool_state(), 0..2)),
    ) -> BenchmarkView {
        let ((run, name), (generation, planned, scored, failed)) = (names, counts);
        let (Pace { rate, tokens_per_second, eta_s }, (refusals, notes)) = (pace, told);
        let (words, intervals, rows, runs) = shape;
        let (elapsed_s, per_minute, unacknowledged, pools) = time;
        BenchmarkView {
            run: RunId::new(run), headline: HeadlineView { words, intervals }, rows, runs,
            name, phase, created_at, generation, planned, scored, failed, failures, rate, eta_s, trouble, models, cells,
            tokens_per_second, refusals, notes, elapsed_s, per_minute, unacknowledged,
            priority: (planned % 101) as u32,
            submitter: format!("alice-{}", planned % 3),
            pools,
            history: vec![HistoryEntry { at: created_at, who: "alice".into(), what: "submitted".into() }],
        }
    }
}

fn row() -> impl Strategy<Value = RowView> {
    let kind = proptest::sample::select(RowKind::ALL.to_vec());
    (name(), kind, proptest::sample::select(Better::ALL.to_vec())).prop_map(|(name, kind, better)| RowView {
        name: name.as_str().into(),
        kind,
        better,
    })
}

prop_compose! {
    fn run_line()(names in vec(name(), 4), phase in phase(), counts in any::<(u64, u64, u64)>()) -> RunLine {
        let (planned, scored, failed) = counts;
        let (model, asks) = (names[1].as_str().into(), names[2].as_str().into());
        RunLine { name: names[0].as_str().into(), stage: names[3].clone(), model, asks, phase, planned, scored, failed }
    }
}

fn export_item() -> impl Strategy<Value = ExportItem> {
    prop_oneof![
        "\\PC{1,50}".prop_map(|json| ExportItem::Documents(json.into())),
        "\\PC{1,50}".prop_map(|json| ExportItem::Manifest(json.into())),
        (any::<u64>(), "\\PC{1,50}")
            .prop_map(|(ticket, json)| ExportItem::Record { ticket, json: json.into() }),
    ]
}

fn dead_letter() -> impl Strategy<Value = DeadLetterView> {
    let strike = (name(), any::<u32>(), words(), timestamp()).prop_map(|(worker, attempt, cause, at)| {
        StrikeView { worker: worker.as_str().into(), attempt, cause, at }
    });
    (name(), any::<u64>(), vec(key(), 0..3), vec(strike, 0..3), any::<bool>()).prop_map(
        |(run, unit, dialogues, strikes, suspect)| DeadLetterView {
            run: RunId::new(run),
            unit,
            dialogues,
            strikes,
            suspect,
        },
    )
}

/// Writes a wire message and reads it again.
fn over_the_wire<W: Message + Default>(message: &W) -> W {
    W::decode(message.encode_to_vec().as_slice()).unwrap()
}

/// Encodes and decodes a value.
fn there_and_back<D, W>(value: D) -> Result<(), TestCaseError>
where
    D: Clone + Debug + PartialEq + TryFrom<W>,
    <D as TryFrom<W>>::Error: Debug,
    W: Message + Default + From<D>,
{
    let arrived = D::try_from(over_the_wire(&W::from(value.clone()))).unwrap();
    prop_assert_eq!(arrived, value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn registrations(worker in name(), ids in vec(words(), 1..4), kgfleet in words(), host in words()) {
        let mut ids = ids.iter().map(|id| InstanceId::new(id.as_str()));
        let instance = ids.next().unwrap();
        let (worker, predecessors) = (worker.as_str().into(), ids.collect());
        there_and_back::<_, wire::Registration>(Registration { worker, instance, predecessors, kgfleet, host })?;
    }

    #[test]
    fn registered(kgfleet in words(), report_every in duration(), taken in option::of(name_taken())) {
        there_and_back::<_, wire::Registered>(Registered { kgfleet, report_every, taken })?;
    }

    #[test]
    fn reports(report in report()) {
        there_and_back::<_, wire::Report>(report)?;
    }

    #[test]
    fn orders_(orders in orders()) {
        there_and_back::<_, wire::Orders>(orders)?;
    }

    #[test]
    fn deliveries(delivery in delivery()) {
        there_and_back::<_, wire::Delivery>(delivery)?;
    }

    #[test]
    fn receipts(receipts in vec(receipt(), 0..5)) {
        let arrived = over_the_wire(&convert::receipts_to_wire(receipts.clone()));
        prop_assert!(convert::receipts_from_wire(arrived.clone(), receipts.len() + 1).is_err());
        prop_assert_eq!(convert::receipts_from_wire(arrived, receipts.len()).unwrap(), receipts);
    }

    #[test]
    fn errors_of_batches(code in proptest::sample::select(ErrorCode::ALL.to_vec()), message in words()) {
        let error = ServiceError { code, message };
        let arrived = over_the_wire(&wire::BatchError::from(error.clone()));
        prop_assert_eq!(ServiceError::try_from(arrived).unwrap(), error);
    }

    #[test]
    fn materials(material in material()) {
        let message = wire::RunMaterial::try_from(material.clone()).unwrap();
        prop_assert_eq!(RunMaterial::try_from(over_the_wire(&message)).unwrap(), material);
    }

    #[test]
    fn budgets(name in name(), per_minute in 1..=u32::MAX, permits in any::<u32>()) {
        let budget = RateBudget { name, per_minute };
        let arrived = over_the_wire(&wire::RateRequest::from((&budget, permits)));
        prop_assert_eq!(<(RateBudget, u32)>::try_from(arrived).unwrap(), (budget, permits));
    }

    #[test]
    fn waits(wait in option::of(duration())) {
        let arrived = over_the_wire(&convert::wait_to_wire(wait));
        prop_assert_eq!(convert::wait_from_wire(arrived).unwrap(), wait);
    }

    #[test]
    fn causes(causes in vec(cause(), 0..20)) {
        let message = wire::RetryRequest { run: "r".to_owned(), causes: convert::causes_to_wire(&causes) };
        prop_assert_eq!(convert::causes_from_wire(over_the_wire(&message).causes).unwrap(), causes);
    }

    #[test]
    fn commands(
        run in name(),
        command in proptest::sample::select(vec![BenchmarkCommand::Pause, BenchmarkCommand::Resume, BenchmarkCommand::Cancel]),
    ) {
        let run = RunId::new(run);
        let arrived = over_the_wire(&wire::CommandRequest::from((&run, command)));
        prop_assert_eq!(<(RunId, BenchmarkCommand)>::try_from(arrived).unwrap(), (run, command));
    }

    #[test]
    fn configurations(text in words(), number in any::<f64>(), integer in any::<u64>(), with_pack in any::<bool>()) {
        let submission = domain::control::Submission {
            configuration: serde_json::json!({ "z": text, "a": [number, integer, null], "m": { "": with_pack } }),
            pack: with_pack.then(|| [1_u8].as_slice().into()),
        };
        let head = over_the_wire(&wire::SubmissionHead::from(&submission));
        prop_assert_eq!(head.with_pack, with_pack);
        let configuration = convert::configuration_from_wire(&head).unwrap();
        // As text, too: the order of keys is kept.
        prop_assert_eq!(configuration.to_string(), submission.configuration.to_string());
        prop_assert_eq!(configuration, submission.configuration);
    }

    #[test]
    fn run_views(view in run_view()) {
        there_and_back::<_, wire::RunView>(view)?;
    }

    #[test]
    fn export_items(item in export_item()) {
        there_and_back::<_, wire::ExportItem>(item)?;
    }

    #[test]
    fn worker_views(worker in name(), status in status(), seen_ms_ago in any::<u64>(), draining in any::<bool>()) {
        let (worker, status) = (worker.as_str().into(), Arc::new(status));
        there_and_back::<_, wire::WorkerView>(WorkerView { worker, status, seen_ms_ago, draining })?;
    }

    #[test]
    fn needs(
        model in name(),
        outlook in proptest::sample::select(Outlook::ALL.to_vec()),
        (dialogues, workers) in any::<(u64, u64)>(),
        rate in 0.0..1e9,
    ) {
        there_and_back::<_, wire::ModelNeed>(ModelNeed { model, outlook, dialogues, rate, workers })?;
    }

    #[test]
    fn pool_states(
        release in name(),
        pools in vec(pool_state(), 0..3),
        gpu_hours in any::<f64>(),
        (gpu_hours_planned, gpu_hours_budget) in (option::of(any::<f64>()), option::of(any::<f64>())),
        plan_ends_at in option::of(timestamp()),
    ) {
        let states =
            PoolStates { release, pools, gpu_hours, gpu_hours_planned, gpu_hours_budget, plan_ends_at };
        there_and_back::<_, wire::PoolStates>(states)?;
    }

    #[test]
    fn server_usages(usage in server_usage()) {
        there_and_back::<_, wire::ServerUsage>(usage)?;
    }

    #[test]
    fn dead_letters(letter in dead_letter()) {
        there_and_back::<_, wire::DeadLetter>(letter)?;
    }

    #[test]
    fn no_bytes_can_panic(bytes in vec(any::<u8>(), 0..200)) {
        read_as_anything(&bytes);
    }

    #[test]
    fn no_damage_can_panic(report in report(), view in run_view(), at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        for mut bytes in [wire::Report::from(report).encode_to_vec(), wire::RunView::from(view).encode_to_vec()] {
            let at = at.index(bytes.len());
            bytes[at] = to;
            read_as_anything(&bytes);
        }
    }
}

#[test]
fn what_is_missing_unknown_or_out_of_range_is_named() {
    let lease = || wire::LeaseId { run: "r".into(), model: "m".into(), attempt: 1, ..Default::default() };
    assert!(LeaseId::try_from(lease()).is_ok());
    assert_eq!(
        LeaseId::try_from(wire::LeaseId { run: String::new(), ..lease() }).unwrap_err().to_string(),
        "LeaseId.run is missing"
    );
    assert_eq!(
        LeaseId::try_from(wire::LeaseId { attempt: 0, ..lease() }).unwrap_err(),
        ConversionError::Missing { field: "LeaseId.attempt" }
    );
    assert_eq!(
        Report::try_from(wire::Report { worker: "w".into(), ..Default::default() }).unwrap_err().to_string(),
        "Report.wait is missing"
    );
    assert_eq!(
        Offer::try_from(wire::Offer { serves: None, room: 1 }).unwrap_err().to_string(),
        "Offer.serves is missing"
    );
    let grant = wire::Grant { lease: Some(lease()), task: "t".into(), ..Default::default() };
    assert_eq!(Grant::try_from(grant).unwrap_err().to_string(), "Grant.iterations is missing");

    let delivery = |failure, json: &'static [u8]| wire::Delivery {
        run: "r".into(),
        key: Some(wire::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 }),
        failure,
        json: json.into(),
    };
    assert!(Delivery::try_from(delivery(Some(1), b"{}")).is_ok());
    assert_eq!(
        Delivery::try_from(delivery(Some(99), b"{}")).unwrap_err(),
        ConversionError::Unknown { field: "Delivery.failure", number: 99 }
    );
    assert_eq!(
        Delivery::try_from(delivery(Some(0), b"{}")).unwrap_err(),
        ConversionError::Missing { field: "Delivery.failure" }
    );
    let not_text = Delivery::try_from(delivery(None, b"\xff")).unwrap_err();
    assert!(not_text.to_string().starts_with("Delivery.json is invalid: invalid utf-8"), "{not_text}");

    for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1_000_000_000)] {
        let wait = Some(prost_types::Duration { seconds, nanos });
        let error = convert::wait_from_wire(wire::RateAnswer { wait }).unwrap_err();
        assert!(matches!(error, ConversionError::OutOfRange { field: "RateAnswer.wait", .. }), "{error}");
    }
    for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (0, -1), (0, 1_000_000_000)] {
        let at = Some(prost_types::Timestamp { seconds, nanos });
        let strike = wire::Strike { worker: "w".into(), at, ..Default::default() };
        let error = StrikeView::try_from(strike).unwrap_err();
        assert!(matches!(error, ConversionError::OutOfRange { field: "Strike.at", .. }), "{error}");
    }
    let budget = wire::RateRequest { budget: "b".into(), per_minute: 0, permits: 1 };
    let error = <(RateBudget, u32)>::try_from(budget).unwrap_err();
    assert_eq!(error.to_string(), "RateRequest.per_minute is 0, expected a number from 1");
}

#[test]
fn a_duration_beyond_the_wire_travels_as_the_longest() {
    let arrived = convert::wait_from_wire(convert::wait_to_wire(Some(Duration::MAX))).unwrap();
    assert_eq!(arrived.map(|wait| wait.as_secs()), Some(i64::MAX as u64));
}

#[test]
fn a_model_setting_of_the_future_is_refused() {
    let json = r#"{"label":"m","connector":"simulated","telepathy":true}"#.to_owned();
    let material = wire::RunMaterial {
        run: "r".into(),
        pack_hash: "h".into(),
        model_spec_json: vec![json],
        ..Default::default()
    };
    let error = RunMaterial::try_from(material).unwrap_err().to_string();
    assert!(error.contains("RunMaterial.model_spec_json") && error.contains("telepathy"), "{error}");
}
