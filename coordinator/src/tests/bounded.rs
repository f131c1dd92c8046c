//! Records that say too much: whoever reads a run pays for none of it, and no answer is lost.

use domain::control::{Control, ExportItem};
use domain::cut_text::MESSAGE_BYTES_MAX;
use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::record::limits::{ROUNDS_MAX, SCORES_MAX, UNREAD_BYTES_MAX};
use domain::{FailureCause, RunId};
use futures::StreamExt;
use serde_json::{Value, json};

use super::ground::*;
use super::worker::*;

/// As long as a message of a liar.
const LONG: usize = 8 << 20;

/// The delivery with another JSON.
fn changed(delivery: &Delivery, change: impl FnOnce(&mut Value)) -> Delivery {
    let mut value: Value = serde_json::from_str(&delivery.json).unwrap();
    change(&mut value);
    Delivery { json: value.to_string().into(), ..delivery.clone() }
}

/// The records as they are stored.
async fn stored(coordinator: &Started, run: &RunId) -> Vec<String> {
    let mut items = coordinator.records(run);
    let mut stored = Vec::new();
    while let Some(item) = items.next().await {
        if let ExportItem::Record(json) = item.unwrap() {
            stored.push(json.to_string());
        }
    }
    stored
}

#[tokio::test]
async fn long_messages_are_cut_and_unread_fields_left_out_and_the_records_count() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(6)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let [first, second, third, ..] = &keys(&grant)[..] else { panic!("{grant:?}") };
    let message = format!("no such route\nrun r: all is well\u{1b}[2J{}", "é".repeat(LONG));
    let scored = scored(&grant.lease, third);
    let deliveries = vec![
        changed(&failed(&grant.lease, first, FailureCause::BadRequest), |record| {
            record["outcome"]["message"] = json!(message);
            record["provenance"]["model"]["system_fingerprint"] = json!(message);
        }),
        changed(&failed(&grant.lease, second, FailureCause::BadRequest), |record| {
            record["outcome"]["message"] = json!(&message[..4 * MESSAGE_BYTES_MAX]);
        }),
        changed(&scored, |record| record["junk"] = json!("x".repeat(LONG))),
    ];
    assert_eq!(coordinator.deliver(deliveries).await.unwrap(), [const { Receipt::Stored }; 3]);
    for record in stored(&coordinator, &run).await {
        assert!(record.len() < UNREAD_BYTES_MAX && !record.contains("junk"), "{} bytes", record.len());
    }
    // A coordinator that has read the log says what the one says that has written it.
    for coordinator in [&coordinator, &ground.coordinator()] {
        let view = coordinator.view(&run).await.unwrap();
        assert_eq!((view.scored, view.refusals.len()), (1, 1), "{view:?}");
        let told = &view.refusals[0];
        assert_eq!(told.dialogues, 2, "both messages begin alike");
        assert!(told.message.len() <= MESSAGE_BYTES_MAX, "{} bytes", told.message.len());
        assert!(told.message.starts_with("no such route run r: all is well [2Jé"), "{}", told.message);
    }
}

#[tokio::test]
async fn fields_of_a_later_version_are_kept_as_they_came() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(1)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let later = changed(&scored(&grant.lease, &keys(&grant)[0]), |record| {
        record["hue"] = json!("x".repeat(UNREAD_BYTES_MAX / 2));
        // A long answer is read, so it leaves as much room as a short one.
        record["system"] = json!("x".repeat(LONG));
    });
    assert_eq!(coordinator.deliver(vec![later.clone()]).await.unwrap(), [Receipt::Stored]);
    assert_eq!(stored(&coordinator, &run).await, [later.json.to_string()]);
}

#[tokio::test]
async fn what_no_dialogue_has_is_refused_with_its_limit() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.submit(submission(1)).await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let good = scored(&grant.lease, &keys(&grant)[0]);
    let round = json!({
        "prompt": {"kind": "first", "text": ""}, "prompted_at": "2025-01-01T00:00:00Z",
        "answer": {"text": ""}, "answered_at": "2025-01-01T00:00:00Z",
    });
    let scores: Value = (0..500_000).map(|n| (n.to_string(), json!(0))).collect();
    let mut misnamed = good.clone();
    misnamed.key.model = "m".repeat(LONG).as_str().into();
    let deliveries = vec![
        changed(&good, |record| record["rounds"] = json!(vec![round; 40_000])),
        changed(&good, |record| record["outcome"]["scores"] = scores),
        changed(&good, |record| record["provenance"]["task"]["scorer"] = json!("s".repeat(LONG))),
        misnamed,
        good,
    ];
    let receipts = coordinator.deliver(deliveries).await.unwrap();
    for (receipt, expected) in receipts.iter().zip([
        format!("too many rounds; at most {ROUNDS_MAX}"),
        format!("too many scores; at most {SCORES_MAX}"),
        "bytes of provenance".to_owned(),
        "it was delivered as one of".to_owned(),
    ]) {
        let Receipt::Refused { reason } = receipt else { panic!("{expected}: {receipt:?}") };
        assert!(reason.contains(&expected) && reason.len() < UNREAD_BYTES_MAX, "{expected}: {reason}");
    }
    assert_eq!(receipts[4], Receipt::Stored);
}
