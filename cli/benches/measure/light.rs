//! A worker without models: it takes units over gRPC like any other and delivers invented records. So a thousand of
//! them run beside a coordinator, and only the coordinator is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::exchange::{
    Delivery, Grant, LeaseEnd, LeaseId, Offer, Receipt, Registration, Report, Serves, WorkExchange,
    WorkerStatus,
};
use domain::{
    Answer, Attempt, DialogueKey, InstanceId, ModelProvenance, Outcome, Prompt, PromptKind, Provenance,
    Record, RecordId, Round, Sampling, TaskProvenance, WorkerId,
};
use jiff::Timestamp;
use proto::client::{Client, ClientConfig};

/// Mean lengths of the published dialogues, in characters.
const PROMPT_CHARS: usize = 2_278;
const ANSWER_CHARS: usize = 1_050;

/// Dialogues that a light worker takes at a time.
const ROOM: u32 = 20;

/// Longest wait for work in one call.
const WAIT: Duration = Duration::from_secs(5);

/// Between two attempts at a coordinator that does not answer.
const PAUSE: Duration = Duration::from_millis(200);

/// Works until told to stop; `recorded` counts acknowledged records.
pub async fn work(
    number: usize,
    coordinator: String,
    model: String,
    recorded: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) {
    let client = Client::connect_lazy(&ClientConfig::new(&coordinator)).expect("an address");
    let worker = WorkerId::new(format!("light-{number:04}"));
    let registration = Registration {
        instance: InstanceId::default(),
        predecessors: Vec::new(),
        worker: worker.clone(),
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        host: "bench".to_owned(),
    };
    while client.register(registration.clone()).await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
    let (mut held, mut finished): (Vec<Grant>, Vec<LeaseId>) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let report = Report {
            instance: InstanceId::default(),
            worker: worker.clone(),
            offers: vec![Offer { serves: Serves::Model(model.clone()), room: ROOM }],
            held: held.iter().map(|grant| grant.lease.clone()).collect(),
            ended: finished.iter().map(|lease| (lease.clone(), LeaseEnd::Finished)).collect(),
            parked: Vec::new(),
            draining: false,
            wait: WAIT,
            status: WorkerStatus::default(),
            until: None,
        };
        let Ok(orders) = client.exchange(report).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if orders.noted {
            finished.clear();
        }
        held.extend(orders.grants);
        let deliveries: Vec<Delivery> = held
            .iter()
            .flat_map(|grant| grant.iterations.iter().map(|i| delivery(grant, *i, &worker)))
            .collect();
        if deliveries.is_empty() {
            continue;
        }
        if let Ok(receipts) = client.deliver(deliveries).await {
            let stored = receipts.iter().filter(|receipt| **receipt == Receipt::Stored).count();
            recorded.fetch_add(stored as u64, Ordering::Relaxed);
            finished.extend(held.drain(..).map(|grant| grant.lease));
        }
    }
}

fn delivery(grant: &Grant, iteration: u32, worker: &WorkerId) -> Delivery {
    let now = Timestamp::now();
    let key = DialogueKey { model: grant.lease.model.clone(), task: grant.task.clone(), iteration };
    let scores = serde_json::json!({ "f1": 1.0, "precision": 1.0, "recall": 1.0, "combinedF1": 0.5 });
    let record = Record {
        key,
        attempt: Attempt {
            id: RecordId::random(),
            generation: grant.lease.generation,
            number: grant.lease.attempt,
            worker: worker.clone(),
        },
        started_at: now,
        ended_at: now,
        system: None,
        rounds: vec![Round {
            prompt: Prompt { kind: PromptKind::First, text: text(PROMPT_CHARS, iteration) },
            prompted_at: now,
            answer: Answer::text(text(ANSWER_CHARS, iteration)),
            answered_at: now,
            failed_calls: Vec::new(),
        }],
        outcome: Outcome::Scored {
            scores: scores.as_object().cloned().unwrap_or_default(),
            infos: serde_json::Map::new(),
        },
        failed_calls: Vec::new(),
        provenance: Provenance {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            task: TaskProvenance {
                class: "Bench".to_owned(),
                version: "1".to_owned(),
                case: "0".to_owned(),
                pack: "core".to_owned(),
                pack_hash: "0".repeat(64),
                scorer: "none".to_owned(),
            },
            model: ModelProvenance {
                connector: "light".to_owned(),
                requested: "light".to_owned(),
                reported: None,
                system_fingerprint: None,
                endpoint: None,
                adapted: Vec::new(),
                max_tokens: None,
            },
            sampling: Sampling::default(),
            seed: 0,
            about: None,
            made_at: None,
        },
    };
    Delivery::of(grant.lease.run.clone(), &record).expect("a record is JSON")
}

/// Text that compresses about as prompts do: words with numbers between them.
fn text(chars: usize, salt: u32) -> String {
    let mut text = String::with_capacity(chars + 16);
    let mut word = salt;
    while text.len() < chars {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("ex:person{} foaf:knows ex:person{} .\n", word % 997, (word >> 8) % 997));
    }
    text.truncate(chars);
    text
}
