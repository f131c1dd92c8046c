//! Every role makes every call of gRPC badly: too long, too slow, half sent, and too many at once, to a server of a process
//! of its own whose memory and open files are measured. Calls are taken from the server's own description; one without a
//! row in [`ROWS`] fails.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use domain::control::Control as _;
use futures::future::join_all;
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer};
use http_body::{Body as _, Frame};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use proto::limits::{
    CALLS_PER_CONNECTION, MESSAGE_BYTES, MESSAGE_TIME, NAMING_BYTES, RECEIVED_BYTES, REGISTRATION_BYTES,
    REPORT_BYTES, WINDOW_BYTES,
};
use proto::server::{Identities, Security, hash_of_token};
use proto::version::WIRE_VERSION_KEY;
use proto::{ApiClient, ClientConfig, WIRE_VERSION};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service as _, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

const ROLES: [&str; 4] = ["reader", "operator", "worker", "conductor"];

/// Every call with the roles that may make it, and the longest message of it in bytes.
const ROWS: &[(&str, &[&str], usize)] = &[
    ("WorkService/Register", &["worker"], REGISTRATION_BYTES),
    ("WorkService/Exchange", &["worker"], REPORT_BYTES),
    ("WorkService/DeliverRecords", &["worker"], MESSAGE_BYTES),
    ("WorkService/GetRunMaterial", &["worker"], NAMING_BYTES),
    ("WorkService/FetchPack", &["worker"], NAMING_BYTES),
    ("WorkService/TakeRate", &["worker"], NAMING_BYTES),
    ("WorkService/Deregister", &["worker"], NAMING_BYTES),
];

/// A body whose pieces a test sends; it ends when the test drops the sender.
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

fn identities() -> Identities {
    let entries = ROLES.map(|role| {
        format!("[[identity]]\nname = '{role}'\nroles = ['{role}']\nsha256 = '{}'\n", hash_of_token(role))
    });
    Identities::parse(&entries.concat()).unwrap()
}

async fn connection(node: &ScriptedServer) -> Channel {
    Endpoint::new(node.address()).unwrap().connect().await.unwrap()
}

/// A message's head with this length, and this many bytes after it.
fn message(length: usize, sent: usize) -> Bytes {
    [&[0][..], &(length as u32).to_be_bytes(), &vec![0xff; sent]].concat().into()
}

/// Makes a call with this body, and returns the code of its answer.
async fn outcome(channel: &Channel, role: &str, call: &str, pieces: mpsc::UnboundedReceiver<Bytes>) -> Code {
    let request = http::Request::post(format!("/kgfleet.v1.{call}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("authorization", format!("Bearer {role}"))
        .header(WIRE_VERSION_KEY, WIRE_VERSION)
        .body(Body::new(Pieces(pieces)))
        .unwrap();
    let mut channel = channel.clone();
    std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    let Ok(answer) = channel.call(request).await else { return Code::Unavailable };
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status.code();
    }
    let mut body = answer.into_body();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame {
            Ok(frame) => {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    return status.code();
                }
            }
            Err(status) => return status.code(),
        }
    }
    Code::Unknown
}

/// The calls that the wire describes.
fn described() -> BTreeSet<String> {
    let files = FileDescriptorSet::decode(&include_bytes!("../../src/generated/kgfleet.v1.bin")[..]).unwrap();
    let services = files.file.iter().flat_map(|file| &file.service);
    services
        .flat_map(|service| service.method.iter().map(|call| format!("{}/{}", service.name(), call.name())))
        .collect()
}

fn guarded() -> (Arc<ScriptedCoordinator>, ScriptedServer) {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start_with(&fake, Security { identities: identities(), tls: None });
    (fake, node)
}

#[test]
fn every_call_has_a_row() {
    let rows: BTreeSet<String> = ROWS.iter().map(|(call, ..)| (*call).to_owned()).collect();
    assert_eq!(described(), rows);
}

#[tokio::test]
async fn a_too_long_message_is_refused_by_its_head_in_every_role_and_call() {
    let (fake, node) = guarded();
    let channel = connection(&node).await;
    for (call, allowed, longest) in ROWS {
        for role in ROLES {
            let length = longest + 1;
            // The message never ends: only its head can be what it is refused for.
            let (pieces, body) = mpsc::unbounded_channel();
            pieces.send(message(length, 1)).unwrap();
            let expected =
                if allowed.contains(&role) { Code::InvalidArgument } else { Code::PermissionDenied };
            assert_eq!(outcome(&channel, role, call, body).await, expected, "{role} {call}");
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
}

#[tokio::test]
async fn what_is_half_sent_reaches_no_coordinator_in_any_role_and_call() {
    let (fake, node) = guarded();
    let channel = connection(&node).await;
    for (call, allowed, _) in ROWS {
        for role in ROLES {
            for sent in [Bytes::from_static(&[0, 0]), message(1000, 0), message(1000, 999)] {
                let (pieces, body) = mpsc::unbounded_channel();
                pieces.send(sent).unwrap();
                drop(pieces);
                let code = outcome(&channel, role, call, body).await;
                assert_ne!(code, Code::Ok, "{role} {call}");
                assert_eq!(
                    code == Code::PermissionDenied,
                    !allowed.contains(&role),
                    "{role} {call}: {code:?}"
                );
            }
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
}

/// Connections of an attacker, and calls on each of them.
const CONNECTIONS: usize = 12;
const CALLS: usize = 64;

#[tokio::test]
async fn messages_that_stop_before_their_end_hold_nobody_else_up_in_any_role() {
    let (fake, node) = guarded();
    for role in ["worker"] {
        let calls: Vec<&str> =
            ROWS.iter().filter(|(_, allowed, _)| allowed.contains(&role)).map(|(call, ..)| *call).collect();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let channel = connection(&node).await;
            for number in 0..CALLS {
                let (pieces, body) = mpsc::unbounded_channel();
                pieces.send(message(NAMING_BYTES, NAMING_BYTES / 2)).unwrap();
                let (channel, call) = (channel.clone(), calls[number % calls.len()]);
                let outcome = tokio::spawn(async move { outcome(&channel, role, call, body).await });
                held.push((pieces, outcome));
            }
        }
        let token = Some("reader".to_owned());
        let client = ApiClient::new(&ClientConfig { token, ..ClientConfig::new(node.address()) }).unwrap();
        fake.will_return(Vec::<domain::control::BenchmarkView>::new());
        client.list().await.unwrap();
        assert_eq!(fake.heard().len(), 1, "{role}: only the whole call was heard of");
        let ended = held.into_iter().map(|(pieces, outcome)| {
            drop(pieces);
            outcome
        });
        for code in join_all(ended).await {
            assert_ne!(code.unwrap(), Code::Ok, "{role}");
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
}

/// A piece of a message every so often: often enough that the connection is not idle, and too seldom for the message.
const DRIP_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
const _: () = assert!(DRIP_EVERY.as_secs() * 4 < MESSAGE_TIME.as_secs());

#[tokio::test]
async fn a_message_that_drips_in_ends_its_call_in_every_role_and_call() {
    let (fake, node) = guarded();
    let mut calls = Vec::new();
    for role in ROLES {
        let channel = connection(&node).await;
        for (call, allowed, _) in ROWS.iter().filter(|(_, allowed, _)| allowed.contains(&role)) {
            let (pieces, body) = mpsc::unbounded_channel();
            let channel = channel.clone();
            calls.push(async move {
                let mut outcome = Box::pin(outcome(&channel, role, call, body));
                pieces.send(message(NAMING_BYTES, 1)).unwrap();
                loop {
                    tokio::select! {
                        code = &mut outcome => break (role, *call, allowed, code),
                        () = tokio::time::sleep(DRIP_EVERY) => {
                            // The call may just have ended.
                            let _ = pieces.send(Bytes::from_static(&[0xff]));
                        }
                    }
                }
            });
        }
    }
    for (role, call, allowed, code) in join_all(calls).await {
        assert!(allowed.contains(&role));
        assert_eq!(code, Code::Unavailable, "{role} {call}");
    }
    assert_eq!(fake.heard(), [""; 0]);
}

/// A server in a process of its own.
struct Apart {
    process: std::process::Child,
    address: String,
}

/// In the environment of that process.
const APART: &str = "KGFLEET_TEST_SERVES_APART";

impl Apart {
    fn start() -> Self {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "adversary::serves_until_nobody_reads", "--nocapture"])
            .env(APART, "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = std::io::BufReader::new(process.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it serves");
            if let Some((_, address)) = line.split_once("serves at ") {
                break address.trim().to_owned();
            }
        };
        // What else it says has room in the pipe.
        process.stdout = Some(said.into_inner());
        Self { process, address }
    }

    /// A value of the kernel's description of the process, in bytes.
    fn bytes(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap() << 10
    }

    fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "the server of another test, which starts it"]
fn serves_until_nobody_reads() {
    if std::env::var_os(APART).is_none() {
        return;
    }
    let (_fake, node) = guarded();
    println!("serves at {}", node.address());
    // Whoever started this process holds the other end.
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
}

/// Memory that a server may take besides the budget of messages and the windows of connections, in bytes: stacks, headers,
/// and what its allocator keeps.
const BESIDES: u64 = 96 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_files_of_a_server_stay_within_their_budgets_in_every_role() {
    let server = Apart::start();
    let (before, files) = (server.bytes("VmRSS:"), server.open_files());
    // One piece for all, so that this process needs no more than the other.
    let half = Bytes::from(vec![0xff_u8; MESSAGE_BYTES / 2]);
    for role in ["worker"] {
        let calls: Vec<_> = ROWS.iter().filter(|(_, allowed, _)| allowed.contains(&role)).collect();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let channel = Endpoint::new(server.address.clone()).unwrap().connect().await.unwrap();
            for (call, _, longest) in calls.iter().cycle().take(CALLS) {
                let (pieces, body) = mpsc::unbounded_channel();
                pieces.send(message(*longest, 0)).unwrap();
                pieces.send(half.slice(..longest / 2)).unwrap();
                let channel = channel.clone();
                let outcome = tokio::spawn(async move { outcome(&channel, role, call, body).await });
                held.push((pieces, outcome));
            }
        }
        // Who asks for little is answered meanwhile.
        let asked =
            crate::api::http().get(format!("{}/api/v1/version", server.address)).bearer_auth("reader");
        assert_eq!(asked.send().await.unwrap().status(), 200);
        assert!(server.open_files() <= files + CONNECTIONS + 8, "{role}: {}", server.open_files());
        for (pieces, outcome) in held {
            drop(pieces);
            outcome.abort();
        }
        let budget = RECEIVED_BYTES as u64 + CONNECTIONS as u64 * u64::from(WINDOW_BYTES) + BESIDES;
        let most = server.bytes("VmHWM:").saturating_sub(before);
        assert!(most <= budget, "{role}: {most} bytes more than before; the budget is {budget}");
        // Connections of this role are closed before those of the next one are counted.
        let closed = async {
            while server.open_files() > files + 8 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), closed)
            .await
            .expect("connections are closed");
    }
    const { assert!(CALLS <= CALLS_PER_CONNECTION as usize) };
}
