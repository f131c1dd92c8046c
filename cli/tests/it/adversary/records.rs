//! Records by which one worker's token, or one log on a disk, would take the memory and the screens of all who read the run.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{DialogueKey, FailureCause, RecordId, RunId};
use proto::{Client, ClientConfig};
use results::log::{LogLine, LogOptions, LogWriter};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::attacker::Guarded;
use crate::harness::server::MODEL;
use crate::harness::{Data, Finished, NT_TASK, Running, Server};

/// Nearly as long as a record may be.
const LONG: usize = 60 << 20;

/// Records that are forged.
const FORGED: u32 = 6;

/// What `status` may print about them, in bytes: some twenty messages, and a table.
const STATUS_BYTES: usize = 64 << 10;

/// A message whose second line looks like one of kgfleet's, as long as asked for.
fn message(bytes: usize) -> String {
    format!("no such route\n{}{}", FORGED_LINE, "é".repeat(bytes / 2))
}

const FORGED_LINE: &str = "run forged: finished, 8 of 8 dialogues";

/// A record of a dialogue that failed with a message.
fn failed(iteration: u32, message: &str) -> Value {
    json!({
        "key": {"model": MODEL, "task": NT_TASK, "iteration": iteration},
        "attempt": {"id": RecordId::random(), "generation": 1, "number": 1, "worker": "ghost-1"},
        "started_at": "2025-01-01T00:00:00Z",
        "ended_at": "2025-01-01T00:00:01Z",
        "rounds": [],
        "outcome": {"state": "failed", "cause": "bad-request", "message": message},
        "provenance": {
            "kgfleet": "0", "sampling": {}, "seed": 1,
            "task": {
                "class": "RdfFriendCount", "version": "4.4", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s",
            },
            "model": {"connector": "openai-compatible", "requested": "m", "system_fingerprint": message},
        },
    })
}

/// A scored record with more scores, or longer names of them, than any dialogue has.
fn overfull(iteration: u32) -> Value {
    let mut record = failed(iteration, "");
    let many = || (0..500_000).map(|n| (n.to_string(), json!(0))).collect::<serde_json::Map<_, _>>();
    let scores = if iteration.is_multiple_of(2) { json!(many()) } else { json!({ "n".repeat(LONG / 4): 0 }) };
    record["outcome"] = json!({"state": "scored", "scores": scores, "infos": {}});
    record
}

fn delivery(run: &str, record: &Value) -> Delivery {
    let key: DialogueKey = serde_json::from_value(record["key"].clone()).unwrap();
    Delivery {
        run: RunId::new(run),
        key,
        failure: Some(FailureCause::BadRequest),
        json: record.to_string().into(),
    }
}

/// A value of the kernel's description of a process, in bytes.
fn bytes(process: &Running, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.pid().as_raw_nonzero())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap() << 10
}

/// A run whose records a worker of this test invents, with the files of everybody's tokens.
struct Submitted {
    run: String,
    operator: String,
    reader: String,
    worker: String,
}

fn submitted(guarded: &Guarded, iterations: u32) -> Submitted {
    let operator = guarded.token("alice", &["--role", "operator"]);
    let reader = guarded.token("bob", &["--role", "reader"]);
    let worker = guarded.token("pool", &["--role", "worker", "--workers", "ghost-*"]);
    let configuration = guarded.cluster.configuration(&[NT_TASK], iterations);
    let submit = ["submit", configuration.to_str().unwrap()];
    let run = guarded.known(&operator, &submit).expect(0).stdout.trim().to_owned();
    guarded.known(&worker, &["status"]);
    guarded.known(&reader, &["status", &run]).expect(0);
    Submitted { run, operator, reader, worker }
}

/// The token in a file.
fn secret(file: &str) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// A client with the token in this file.
fn client(guarded: &Guarded, token: &str) -> Client {
    let config = ClientConfig { token: Some(secret(token)), ..ClientConfig::new(guarded.coordinator.url()) };
    Client::connect_lazy(&config).unwrap()
}

/// The length of a run's export.
fn exported_bytes(guarded: &Guarded, token: &str, run: &str) -> u64 {
    let file = guarded.cluster.data.path().join("exported.jsonl");
    guarded.with(token, &["export", run, "--format", "jsonl", "--out", file.to_str().unwrap()]).expect(0);
    std::fs::metadata(file).unwrap().len()
}

/// Fails unless the messages are told, in few words, and none of them as a line of ours.
#[track_caller]
fn expect_told_in_short(status: Finished) {
    assert!(status.stdout.len() < STATUS_BYTES, "status prints {} bytes", status.stdout.len());
    assert!(!status.stdout.lines().any(|line| line.starts_with(FORGED_LINE)), "{status}");
    status.expect(0).prints(&["no such route run forged: finished"]);
}

/// Records of a run that is exported, and how long an answer in each is, in bytes.
const EXPORTED: u32 = 48;
const ANSWER: usize = 1 << 20;

/// Exports that are begun and not read.
const UNREAD: usize = 24;

/// Memory that they may take, in bytes: a few records for each that an identity may have at once.
const UNREAD_BYTES: u64 = 192 << 20;

#[test]
fn exports_that_nobody_reads_hold_a_few_records() {
    let Some(guarded) = Guarded::start() else { return };
    let Submitted { run, operator, reader, worker } = submitted(&guarded, EXPORTED);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = client(&guarded, &worker);
        for iteration in 0..EXPORTED {
            let mut record = failed(iteration, "short");
            record["rounds"] = json!([{
                "prompt": {"kind": "first", "text": ""}, "prompted_at": "2025-01-01T00:00:00Z",
                "answer": {"text": "x".repeat(ANSWER)}, "answered_at": "2025-01-01T00:00:00Z",
            }]);
            let receipts = client.deliver(vec![delivery(&run, &record)]).await.unwrap();
            assert_eq!(receipts, [Receipt::Stored]);
        }
    });
    let before = bytes(&guarded.coordinator.process, "VmHWM:");
    let ask = format!(
        "GET /api/v1/runs/{run}/records HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        secret(&reader)
    );
    let mut unread = Vec::new();
    for _ in 0..UNREAD {
        let mut stream = TcpStream::connect(("127.0.0.1", guarded.coordinator.port)).unwrap();
        stream.write_all(ask.as_bytes()).unwrap();
        unread.push(stream);
    }
    // Long enough for all that is read ahead.
    std::thread::sleep(Duration::from_secs(5));
    let most = bytes(&guarded.coordinator.process, "VmHWM:").saturating_sub(before);
    assert!(most < UNREAD_BYTES, "exports that nobody reads take {most} bytes");
    let exported = exported_bytes(&guarded, &operator, &run);
    assert!(exported > u64::from(EXPORTED) * ANSWER as u64, "{exported} bytes are exported meanwhile");
}

#[test]
fn a_log_of_a_stranger_does_not_fill_the_screen() {
    let (server, data) = (Server::start(), Data::new());
    let configuration = data.write(
        "given.toml",
        format!(
            "name = 'given'\niterations = 8\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{MODEL}'\nconnector = 'openai-compatible'\n\
             endpoint = '{}'\n",
            server.url()
        ),
    );
    server.gate().close();
    let mut process = data.start(&["run", configuration.to_str().unwrap(), "--concurrency", "1"]);
    process.until_it_says("starting run");
    server.gate().until_held(1);
    process.signal(Signal::KILL);
    process.finish();
    let run = data.run();
    // As earlier versions took it from workers: no limit has seen these records.
    let mut log = LogWriter::open(&run.dir.log(), LogOptions::default()).unwrap();
    let long = message(LONG / 4);
    for iteration in 0..FORGED {
        log.append_raw(&LogLine::Record(failed(iteration, &long).to_string())).unwrap();
    }
    for iteration in FORGED..FORGED + 2 {
        log.append_raw(&LogLine::Record(overfull(iteration).to_string())).unwrap();
    }
    log.commit().unwrap();
    expect_told_in_short(data.kgfleet(&["status", run.name()]));
    let shown = data.kgfleet(&["show", run.name(), &format!("{MODEL}/{NT_TASK}/0")]).expect(0);
    assert!(shown.stdout.len() < STATUS_BYTES, "show prints {} bytes", shown.stdout.len());
    assert!(!shown.stdout.lines().any(|line| line.starts_with(FORGED_LINE)), "{shown}");

    // What no dialogue has is damage, which costs no table and no export anything.
    for iteration in FORGED..FORGED + 2 {
        let shown = data.kgfleet(&["show", run.name(), &format!("{MODEL}/{NT_TASK}/{iteration}")]);
        assert!(shown.stdout.len() < STATUS_BYTES, "show prints {} bytes", shown.stdout.len());
    }
    for format in ["csv", "result-json", "xlsx"] {
        let file = data.path().join(format);
        data.kgfleet(&[
            "export",
            run.name(),
            "--format",
            format,
            "--plaintext",
            "--out",
            file.to_str().unwrap(),
        ]);
        assert!(file.metadata().unwrap().len() < STATUS_BYTES as u64, "{format}");
    }
}
