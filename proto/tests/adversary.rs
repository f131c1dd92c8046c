//! Every role makes every call of the wire badly: too long, half sent, and too many at once. Calls are taken from the
//! server's own description; one without a row in [`ROWS`] fails.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use domain::control::Control as _;
use futures::future::join_all;
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer};
use http_body::{Body as _, Frame};
use prost::Message as _;
use proto::limits::{MESSAGE_BYTES, NAMING_BYTES};
use proto::server::{Identities, Security, hash_of_token};
use proto::version::WIRE_VERSION_KEY;
use proto::{Client, ClientConfig, WIRE_VERSION};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service as _, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

const ROLES: [&str; 3] = ["reader", "operator", "worker"];

/// Every call with the roles that may make it.
const ROWS: &[(&str, &[&str])] = &[
    ("ControlService/Submit", &["operator"]),
    ("ControlService/ExtendRun", &["operator"]),
    ("ControlService/ListRuns", &["reader", "operator"]),
    ("ControlService/GetRun", &["reader", "operator"]),
    ("ControlService/WatchRun", &["reader", "operator"]),
    ("ControlService/CommandRun", &["operator"]),
    ("ControlService/RetryRun", &["operator"]),
    ("ControlService/RemoveRun", &["operator"]),
    ("ControlService/ExportRun", &["reader", "operator"]),
    ("ControlService/ListWorkers", &["reader", "operator"]),
    ("ControlService/DrainWorker", &["operator"]),
    ("ControlService/ListDeadLetters", &["reader", "operator"]),
    ("ControlService/RequeueDeadLetters", &["operator"]),
    ("ControlService/Check", &["reader", "operator"]),
    ("ControlService/GetNeeds", &["reader", "operator"]),
    ("WorkService/Register", &["worker"]),
    ("WorkService/Exchange", &["worker"]),
    ("WorkService/DeliverRecords", &["worker"]),
    ("WorkService/GetRunMaterial", &["worker"]),
    ("WorkService/FetchPack", &["worker", "reader", "operator"]),
    ("WorkService/TakeRate", &["worker"]),
    ("WorkService/Deregister", &["worker"]),
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

/// The calls that a server describes.
async fn described(node: &ScriptedServer) -> BTreeSet<String> {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let mut calls = BTreeSet::new();
    for service in ["kgfleet.v1.ControlService", "kgfleet.v1.WorkService"] {
        let ask = ServerReflectionRequest {
            message_request: Some(MessageRequest::FileContainingSymbol(service.to_owned())),
            ..ServerReflectionRequest::default()
        };
        let mut reflection = ServerReflectionClient::new(connection(node).await);
        let answers = reflection.server_reflection_info(futures::stream::iter([ask])).await.unwrap();
        let answer = answers.into_inner().message().await.unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
            panic!("{answer:?}")
        };
        for file in files.file_descriptor_proto {
            let file = prost_types::FileDescriptorProto::decode(&*file).unwrap();
            for service in file.service {
                let name = service.name().to_owned();
                calls.extend(service.method.iter().map(|method| format!("{name}/{}", method.name())));
            }
        }
    }
    calls
}

fn guarded() -> (Arc<ScriptedCoordinator>, ScriptedServer) {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start_with(&fake, Security { identities: identities(), tls: None });
    (fake, node)
}

#[tokio::test]
async fn every_call_has_a_row() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let rows: BTreeSet<String> = ROWS.iter().map(|(call, _)| (*call).to_owned()).collect();
    assert_eq!(described(&ScriptedServer::start(&fake)).await, rows);
}

#[tokio::test]
async fn a_too_long_message_is_refused_by_its_head_in_every_role_and_call() {
    let (fake, node) = guarded();
    let channel = connection(&node).await;
    for (call, allowed) in ROWS {
        for role in ROLES {
            let length = if role == "reader" { NAMING_BYTES + 1 } else { MESSAGE_BYTES + 1 };
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
    for (call, allowed) in ROWS {
        for role in ROLES {
            for sent in [Bytes::from_static(&[0, 0]), message(1000, 0), message(1000, 999)] {
                let (pieces, body) = mpsc::unbounded_channel();
                pieces.send(sent).unwrap();
                drop(pieces);
                let code = outcome(&channel, role, call, body).await;
                // A stream of batches may end at any byte: a batch without an outcome is sent again.
                assert!(code != Code::Ok || *call == "WorkService/DeliverRecords", "{role} {call}");
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
    for role in ROLES {
        let calls: Vec<&str> =
            ROWS.iter().filter(|(_, allowed)| allowed.contains(&role)).map(|(call, _)| *call).collect();
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
        let client =
            Client::connect_lazy(&ClientConfig { token, ..ClientConfig::new(node.address()) }).unwrap();
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
