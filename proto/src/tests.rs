//! What workers and coordinators tell each other again and again survives the round trip over the wire with any values; all other
//! input is an error and never a panic. Other calls are in `tests/it/loopback.rs`.

use std::fmt::Debug;
use std::time::Duration;

use domain::exchange::{
    Delivery, Grant, LeaseId, Offer, RateBudget, Receipt, Registered, Report, Retries, RunMaterial,
};
use domain::{Connector, DialogueKey, FailureCause};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;

use crate::convert::{self, ConversionError};
use crate::fuzzing::read_as_anything;
use crate::wire;
mod work;

use work::{name_taken, orders, report};

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
    fn waits(wait in option::of(duration())) {
        let arrived = over_the_wire(&convert::wait_to_wire(wait));
        prop_assert_eq!(convert::wait_from_wire(arrived).unwrap(), wait);
    }

    #[test]
    fn no_bytes_can_panic(bytes in vec(any::<u8>(), 0..200)) {
        read_as_anything(&bytes);
    }

    #[test]
    fn no_damage_can_panic(report in report(), at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        let mut bytes = wire::Report::from(report).encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] = to;
        read_as_anything(&bytes);
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
        let since = Some(prost_types::Timestamp { seconds, nanos });
        let retries = wire::Retries { why: "full".into(), since, ..Default::default() };
        let error = Retries::try_from(retries).unwrap_err();
        assert!(matches!(error, ConversionError::OutOfRange { field: "Retries.since", .. }), "{error}");
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
