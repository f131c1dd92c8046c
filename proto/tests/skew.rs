//! Workers of other versions, over a real socket: they send frozen bytes of version 1, or messages with fields that
//! this version does not know.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{Orders, Outlook, Registered};
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer};
use proto::WIRE_VERSION;
use proto::version::WIRE_VERSION_KEY;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// Messages as the bytes that they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let length = prost::bytes::Buf::remaining(buffer);
        Ok(Some(prost::bytes::Buf::copy_to_bytes(buffer, length).to_vec()))
    }
}

/// The bytes of version 1 of a message.
fn frozen(name: &str) -> Vec<u8> {
    let path = format!("{}/testdata/v1/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// Sends bytes as the request of a call; the bytes of the answer.
async fn send(channel: &Channel, method: &'static str, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut request = Request::new(bytes);
    request.metadata_mut().insert(WIRE_VERSION_KEY, WIRE_VERSION.into());
    Ok(grpc.unary(request, PathAndQuery::from_static(method), Raw).await?.into_inner())
}

#[tokio::test]
async fn a_worker_of_frozen_bytes_or_of_the_future_is_served() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start(&fake);
    let channel = Endpoint::new(node.address()).unwrap().connect().await.unwrap();
    // Number 2047, three bytes: what a later version of the same wire may add.
    for future in [&[][..], &[0xfa, 0x7f, 3, 1, 2, 3]] {
        let sent = |name: &str| [frozen(name), future.to_vec()].concat();
        fake.will_return(Registered {
            kgfleet: "0.1.0".into(),
            report_every: Duration::from_millis(10_500),
            taken: None,
        });
        let answer = send(&channel, "/kgfleet.v1.WorkService/Register", sent("registration")).await.unwrap();
        assert_eq!(answer, frozen("registered"), "what an old worker understands");
        fake.will_return(Orders::default());
        send(&channel, "/kgfleet.v1.WorkService/Exchange", sent("report")).await.unwrap();
    }
    let heard = fake.heard();
    assert!(heard.len() == 4 && heard.iter().all(|call| call.contains("node-1-a")), "{heard:?}");
    assert_eq!((&heard[0], &heard[1]), (&heard[2], &heard[3]), "fields of the future change nothing");
}

#[tokio::test]
async fn a_worker_that_waits_for_the_end_is_heard_and_one_of_before_is_told_no_outlook() {
    let fake = Arc::new(ScriptedCoordinator::default());
    let node = ScriptedServer::start(&fake);
    let channel = Endpoint::new(node.address()).unwrap().connect().await.unwrap();
    let of_today =
        |name: &str| std::fs::read(format!("{}/testdata/v2/{name}.bin", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let call = "/kgfleet.v1.WorkService/Exchange";
    fake.will_return(Orders { noted: true, outlook: Some(Outlook::Done), ..Orders::default() });
    assert_eq!(send(&channel, call, of_today("report_until")).await.unwrap(), of_today("orders_done"));
    // A coordinator of before answers without one; a worker of before does not ask for it.
    fake.will_return(Orders::default());
    send(&channel, call, frozen("report")).await.unwrap();
    let heard = fake.heard();
    assert!(heard[0].contains(r#"until: Some(Until { expects: ["large"] })"#), "{heard:?}");
    assert!(heard[1].contains("until: None"), "{heard:?}");
}
