//! What a server says to those who are not our client: other versions, probes, tools, strangers.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod fake;

use std::sync::Arc;

use domain::control::Control as _;
use domain::{ErrorCode, RunId};
use proto::server::ServerTls;
use proto::version::WIRE_VERSION_KEY;
use proto::{Client, ClientConfig, WIRE_VERSION};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::fake::{Fake, Node, run_view};

/// Calls a method with an empty message, naming a version of the wire or none.
async fn call_with_version(
    channel: Channel,
    method: &'static str,
    version: Option<&str>,
) -> Result<(), Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
    let mut request = Request::new(());
    if let Some(version) = version {
        request.metadata_mut().insert(WIRE_VERSION_KEY, version.parse().unwrap());
    }
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(method);
    let response = grpc.unary(request, path, tonic_prost::ProstCodec::<(), ()>::default()).await?;
    assert_eq!(response.metadata().get(WIRE_VERSION_KEY).unwrap(), &WIRE_VERSION.to_string());
    Ok(())
}

async fn channel(node: &Node) -> Channel {
    tonic::transport::Endpoint::new(node.address()).unwrap().connect().await.unwrap()
}

#[tokio::test]
async fn another_version_of_the_wire_is_refused_with_the_side_to_update() {
    let fake = Arc::new(Fake::default());
    let node = Node::start(&fake);
    let channel = channel(&node).await;
    let future = (WIRE_VERSION + 1).to_string();
    for method in ["/kgfleet.v1.ControlService/ListRuns", "/kgfleet.v1.WorkService/Register"] {
        for (version, advice) in [
            (Some(future.as_str()), "the caller speaks wire version 2"),
            (Some(future.as_str()), "update the coordinator"),
            (Some("0"), "update the caller"),
            (Some("latest"), "names no wire version"),
            (None, "names no wire version"),
        ] {
            let status = call_with_version(channel.clone(), method, version).await.unwrap_err();
            assert_eq!(status.metadata().get("kgfleet-error-code").unwrap(), "incompatible");
            assert!(status.message().contains(advice), "{version:?}: {}", status.message());
        }
    }
    assert_eq!(fake.heard(), [""; 0]);
    fake.will_return(Vec::<domain::control::RunView>::new());
    let ours = WIRE_VERSION.to_string();
    call_with_version(channel, "/kgfleet.v1.ControlService/ListRuns", Some(&ours)).await.unwrap();
}

#[tokio::test]
async fn a_call_that_the_server_does_not_know_is_unimplemented() {
    let fake = Arc::new(Fake::default());
    let node = Node::start(&fake);
    let ours = WIRE_VERSION.to_string();
    let method = "/kgfleet.v1.ControlService/Levitate";
    let status = call_with_version(channel(&node).await, method, Some(&ours)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

#[tokio::test]
async fn health_is_told_until_the_end_begins() {
    let fake = Arc::new(Fake::default());
    let mut node = Node::start(&fake);
    let mut health = HealthClient::new(channel(&node).await);
    for service in ["", "kgfleet.v1.WorkService", "kgfleet.v1.ControlService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let request = HealthCheckRequest { service: String::new() };
    let mut changes = health.watch(request).await.unwrap().into_inner();
    assert_eq!(changes.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    node.stop();
    assert_eq!(changes.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    drop(changes);
    node.ended().await;
}

#[tokio::test]
async fn reflection_names_the_services() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, server_reflection_response::MessageResponse};

    let fake = Arc::new(Fake::default());
    let node = Node::start(&fake);
    let ask = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut reflection = ServerReflectionClient::new(channel(&node).await);
    let answers = reflection.server_reflection_info(futures::stream::iter([ask])).await.unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    for name in ["kgfleet.v1.WorkService", "kgfleet.v1.ControlService"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
}

const CA: &[u8] = include_bytes!("../testdata/tls/ca.pem");
const SERVER: (&[u8], &[u8]) =
    (include_bytes!("../testdata/tls/server.pem"), include_bytes!("../testdata/tls/server.key"));
const CLIENT: (&[u8], &[u8]) =
    (include_bytes!("../testdata/tls/client.pem"), include_bytes!("../testdata/tls/client.key"));

fn server_tls(client_ca: Option<&[u8]>) -> ServerTls {
    let client_ca = client_ca.map(<[u8]>::to_vec);
    ServerTls { certificate: SERVER.0.to_vec(), key: SERVER.1.to_vec(), client_ca }
}

#[tokio::test]
async fn with_mutual_tls_only_those_who_are_known_get_through() {
    let fake = Arc::new(Fake::default());
    let node = Node::start_with_tls(&fake, server_tls(Some(CA)));
    let run = RunId::new("r");
    let known = ClientConfig {
        ca: Some(CA.to_vec()),
        identity: Some((CLIENT.0.to_vec(), CLIENT.1.to_vec())),
        ..ClientConfig::new(node.address())
    };
    fake.will_return(run_view());
    assert_eq!(Client::connect_lazy(&known).unwrap().run(&run).await.unwrap(), run_view());

    let nameless = ClientConfig { identity: None, ..known.clone() };
    let distrustful = ClientConfig { ca: Some(CLIENT.0.to_vec()), ..known.clone() };
    let plain = ClientConfig::new(node.address().replace("https", "http"));
    for stranger in [nameless, distrustful, plain] {
        let error = Client::connect_lazy(&stranger).unwrap().run(&run).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
    }
    assert_eq!(fake.heard().len(), 1);
}

#[tokio::test]
async fn certificates_that_are_none_end_the_server_with_a_reason() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fake = Arc::new(Fake::default());
    let services = proto::server::Services { exchange: fake.clone(), control: fake };
    let tls = ServerTls { key: b"no key".to_vec(), ..server_tls(None) };
    let error =
        proto::server::serve(listener, services, Some(tls), std::future::pending()).await.unwrap_err();
    assert!(error.to_string().starts_with("the server's certificates cannot be used"), "{error}");
}
