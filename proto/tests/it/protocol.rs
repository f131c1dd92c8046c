//! How a server answers other callers than our client: other versions, probes, tools, unknown identities.

use std::sync::Arc;

use domain::control::Control as _;
use domain::exchange::WorkExchange as _;
use domain::{ErrorCode, RunId};
use futures::StreamExt as _;
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer};
use proto::server::{Identities, Security, ServerTls, Tls, hash_of_token};
use proto::version::WIRE_VERSION_KEY;
use proto::{ApiClient, Client, ClientConfig, WIRE_VERSION};
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::samples::{delivery, material, run_view};

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

async fn channel(node: &ScriptedServer) -> Channel {
    tonic::transport::Endpoint::new(node.address()).unwrap().connect().await.unwrap()
}

#[tokio::test]
async fn another_version_of_the_wire_is_refused_with_the_side_to_update() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start(&fake);
    let channel = channel(&node).await;
    let future = (WIRE_VERSION + 1).to_string();
    let theirs = format!("the caller speaks wire version {future}");
    let method = "/kgfleet.v1.WorkService/Register";
    for (version, advice) in [
        (Some(future.as_str()), theirs.as_str()),
        (Some(future.as_str()), "update the coordinator"),
        (Some("0"), "update the caller"),
        (Some("latest"), "sends no wire version"),
        (None, "sends no wire version"),
    ] {
        let status = call_with_version(channel.clone(), method, version).await.unwrap_err();
        assert_eq!(status.metadata().get("kgfleet-error-code").unwrap(), "incompatible");
        assert!(status.message().contains(advice), "{version:?}: {}", status.message());
    }
    assert_eq!(fake.heard(), [""; 0]);
    let ours = WIRE_VERSION.to_string();
    let status = call_with_version(channel, method, Some(&ours)).await.unwrap_err();
    assert_eq!(status.message(), "Registration.worker is missing", "an equal version is let in");
}

#[tokio::test]
async fn a_call_that_the_server_does_not_know_is_unimplemented() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start(&fake);
    let ours = WIRE_VERSION.to_string();
    let method = "/kgfleet.v1.WorkService/Levitate";
    let status = call_with_version(channel(&node).await, method, Some(&ours)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

const CA: &[u8] = include_bytes!("../../testdata/tls/ca.pem");
const SERVER: (&[u8], &[u8]) =
    (include_bytes!("../../testdata/tls/server.pem"), include_bytes!("../../testdata/tls/server.key"));

fn server_tls() -> ServerTls {
    ServerTls { certificate: SERVER.0.to_vec(), key: SERVER.1.to_vec() }
}

#[tokio::test]
async fn over_tls_a_client_talks_to_whom_it_trusts() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start_with_tls(&fake, server_tls());
    let run = RunId::new("r");
    let known = ClientConfig { ca: Some(CA.to_vec()), ..ClientConfig::new(node.address()) };
    fake.will_return(run_view());
    assert_eq!(ApiClient::new(&known).unwrap().view(&run).await.unwrap(), run_view());
    fake.will_return(material());
    assert_eq!(Client::connect_lazy(&known).unwrap().run_material(&run).await.unwrap(), material());

    let distrustful = ClientConfig { ca: Some(SERVER.0.to_vec()), ..known.clone() };
    let plain = ClientConfig::new(node.address().replace("https", "http"));
    for stranger in [distrustful, plain] {
        for error in [
            ApiClient::new(&stranger).unwrap().view(&run).await.map(drop).unwrap_err(),
            Client::connect_lazy(&stranger).unwrap().run_material(&run).await.map(drop).unwrap_err(),
        ] {
            assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
        }
    }
    assert_eq!(fake.heard().len(), 2);
}

#[test]
fn certificates_that_are_none_are_refused_with_a_reason() {
    let tls = ServerTls { key: b"no key".to_vec(), ..server_tls() };
    let error = Security::tls(&tls, Identities::anyone()).err().unwrap();
    assert!(error.to_string().starts_with("the server's certificates cannot be used"), "{error}");
}

/// The file of identities that these tests use: a reader, an operator and the workers of a pool.
fn identities() -> String {
    let entry = |name: &str, more: &str| {
        format!(
            "[[identity]]\nname = '{name}'\nsha256 = '{}'\n{more}\n",
            hash_of_token(&format!("token-{name}"))
        )
    };
    [
        entry("reader", "roles = ['reader']"),
        entry("operator", "roles = ['operator']"),
        entry("pool", "roles = ['worker']\nworkers = 'gpu-*'"),
    ]
    .concat()
}

/// The two clients with this token.
fn with_token(node: &ScriptedServer, token: Option<&str>) -> (ApiClient, Client) {
    let config = ClientConfig { token: token.map(str::to_owned), ..ClientConfig::new(node.address()) };
    (ApiClient::new(&config).unwrap(), Client::connect_lazy(&config).unwrap())
}

#[tokio::test]
async fn without_a_token_nobody_gets_anything() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let known = Identities::parse(&identities()).unwrap();
    let node = ScriptedServer::start_with(&fake, Security { identities: known, tls: None });
    for token in [None, Some(""), Some("token-nobody"), Some("token-operatoR")] {
        let (client, work) = with_token(&node, token);
        let run = RunId::new("r");
        let refusals = [
            client.list().await.map(drop).unwrap_err(),
            client.view(&run).await.map(drop).unwrap_err(),
            client.watch(&run).next().await.unwrap().map(drop).unwrap_err(),
            client.records(&run).next().await.unwrap().map(drop).unwrap_err(),
            client.check().await.map(drop).unwrap_err(),
            client.needs(&[]).await.map(drop).unwrap_err(),
            client.drain_worker(&"w".into()).await.unwrap_err(),
            work.run_material(&run).await.map(drop).unwrap_err(),
            client.pack("00").await.map(drop).unwrap_err(),
            work.pack("00").await.map(drop).unwrap_err(),
            work.deregister(&"w".into(), &"i".into(), None).await.unwrap_err(),
            work.deliver(vec![delivery(1)]).await.map(drop).unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.code, ErrorCode::Denied, "{refusal}");
        }
    }
    assert_eq!(fake.heard(), [""; 0], "the coordinator heard of none of it");
}

#[tokio::test]
async fn everybody_does_what_their_role_says() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let known = Identities::parse(&identities()).unwrap();
    let node = ScriptedServer::start_with(&fake, Security { identities: known.clone(), tls: None });
    let run = RunId::new("r");
    let denied = |result: Result<(), domain::ServiceError>, words: &str| {
        let error = result.unwrap_err();
        assert!(error.code == ErrorCode::Denied && error.message.contains(words), "{error}");
    };
    let (reader, reading) = with_token(&node, Some("token-reader"));
    fake.will_return(run_view());
    reader.view(&run).await.unwrap();
    denied(reader.drain_worker(&"w".into()).await, "`reader` may not call drain_worker");
    denied(reading.run_material(&run).await.map(drop), "needs the role worker");
    let (listing, pool) = with_token(&node, Some("token-pool"));
    denied(listing.list().await.map(drop), "needs the role reader or operator");
    fake.will_return(material());
    pool.run_material(&run).await.unwrap();
    let (operator, operating) = with_token(&node, Some("token-operator"));
    fake.will_return(());
    operator.drain_worker(&"w".into()).await.unwrap();
    denied(operating.deliver(vec![delivery(1)]).await.map(drop), "needs the role worker");

    // Who is struck off the list is out, also in the middle of a call.
    fake.will_show_and_wait(run_view());
    let mut watched = reader.watch(&run);
    watched.next().await.unwrap().unwrap();
    known.replace("").unwrap();
    let error = loop {
        match watched.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
    denied(reader.list().await.map(drop), "the token is unknown");
}

#[tokio::test]
async fn certificates_are_replaced_while_a_coordinator_serves() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let known = Identities::parse(&identities()).unwrap();
    let tls = Tls::new(&server_tls()).unwrap();
    let node = ScriptedServer::start_with(&fake, Security { identities: known, tls: Some(tls.clone()) });
    let bare = ClientConfig { ca: Some(CA.to_vec()), ..ClientConfig::new(node.address()) };
    let tokened = ClientConfig { token: Some("token-operator".to_owned()), ..bare.clone() };
    let wrong_token = ClientConfig { token: Some("token".to_owned()), ..bare.clone() };
    for unknown in [&bare, &wrong_token] {
        let error = ApiClient::new(unknown).unwrap().list().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{error}");
    }
    // New connections get what the files say now; what cannot be used changes nothing.
    assert!(tls.replace(&ServerTls { key: b"no key".to_vec(), ..server_tls() }).is_err());
    tls.replace(&server_tls()).unwrap();
    fake.will_return(Vec::<domain::control::BenchmarkView>::new());
    ApiClient::new(&tokened).unwrap().list().await.unwrap();
}

#[tokio::test]
async fn garbage_and_silence_cost_a_connection_and_nothing_else() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let fake = Arc::new(ScriptedCoordinator::default());
    let known = Identities::parse(&identities()).unwrap();
    let node = ScriptedServer::start_with(&fake, Security { identities: known, tls: None });
    let address = node.address().replace("http://", "");
    let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in
        [&noise[..], b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff"]
    {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        // The server may have hung up before all of it was written.
        let _ = stream.write_all(bytes).await;
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
    }
    // Who says nothing at all is not waited for.
    let mut silent = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut said = Vec::new();
    let _ = silent.read_to_end(&mut said).await;
    fake.will_return(Vec::<domain::control::BenchmarkView>::new());
    with_token(&node, Some("token-reader")).0.list().await.unwrap();
}

#[tokio::test]
async fn a_refused_caller_reads_its_token_again() {
    let file = |token: &str| {
        format!(
            "[[identity]]\nname = 'a'\nroles = ['reader', 'worker']\nsha256 = '{}'\n",
            hash_of_token(token)
        )
    };
    let identities = Identities::parse(&file("old")).unwrap();
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start_with(&fake, Security { identities: identities.clone(), tls: None });
    let kept = Arc::new(std::sync::Mutex::new("old".to_owned()));
    let config = {
        let (kept, address) = (Arc::clone(&kept), node.address());
        move || ClientConfig { token: Some(kept.lock().unwrap().clone()), ..ClientConfig::new(&address) }
    };
    let again = config.clone();
    let config = ClientConfig { reread: Some(Arc::new(move || Ok(again()))), ..config() };
    let (people, client) = (ApiClient::new(&config).unwrap(), Client::connect_lazy(&config).unwrap());
    let list = async || {
        fake.will_return(Vec::<domain::control::BenchmarkView>::new());
        people.list().await.map_err(|error| error.code)
    };
    let ask = async || {
        fake.will_return(material());
        client.run_material(&RunId::new("r")).await.map_err(|error| error.code)
    };
    list().await.unwrap();
    ask().await.unwrap();
    identities.replace(&file("new")).unwrap();
    assert_eq!(list().await.unwrap_err(), ErrorCode::Denied, "its file says nothing else");
    assert_eq!(ask().await.unwrap_err(), ErrorCode::Denied);
    *kept.lock().unwrap() = "new".to_owned();
    // Files are read twice a second at most.
    while list().await == Err(ErrorCode::Denied) {
        tokio::task::yield_now().await;
    }
    list().await.unwrap();
    let after = loop {
        match ask().await {
            Err(ErrorCode::Denied) => tokio::task::yield_now().await,
            after => break after,
        }
    };
    assert_eq!(after.unwrap_err(), ErrorCode::Unavailable, "the same call may succeed later");
    ask().await.unwrap();
}
