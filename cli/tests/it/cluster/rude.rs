//! Clients that speak the wire protocol and break its rules, on real sockets of a real coordinator.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::harness::Cluster;

/// The first bytes of every connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames, and the flags that matter here.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_OF_STREAM: u8 = 1;
const ANSWER: u8 = 1;
const END_OF_HEADERS: u8 = 4;

/// The setting that says how much of an answer may be sent before the client asks for more.
const INITIAL_WINDOW_SIZE: u8 = 4;

/// How long a test waits for what must come. Reached only where something is broken.
const PATIENCE: Duration = Duration::from_secs(240);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The list of runs is asked for, by a client that takes so many bytes of the answer.
fn question(window: u32) -> Vec<u8> {
    let settings = [&[0, INITIAL_WINDOW_SIZE][..], &window.to_be_bytes()].concat();
    let mut head = Vec::new();
    for (name, value) in
        [(":method", "GET"), (":scheme", "http"), (":path", "/api/v1/runs"), (":authority", "localhost")]
    {
        // A literal that is not remembered: shorter than 127 bytes, so that its length is one byte.
        head.push(0);
        for text in [name, value] {
            head.push(u8::try_from(text.len()).unwrap());
            head.extend(text.as_bytes());
        }
    }
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &settings),
        frame(HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, &head),
    ]
    .concat()
}

/// A frame that came.
struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

impl Frame {
    /// Whether it asks for an answer of the same kind.
    fn asks(&self, kind: u8) -> bool {
        self.kind == kind && self.flags & ANSWER == 0
    }
}

/// The next frame; `None` when the connection has ended.
fn next_frame(stream: &mut TcpStream) -> Option<Frame> {
    let mut head = [0; 9];
    read_whole(stream, &mut head)?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    read_whole(stream, &mut payload)?;
    Some(Frame { kind: head[3], flags: head[4], payload })
}

fn read_whole(stream: &mut TcpStream, bytes: &mut [u8]) -> Option<()> {
    stream
        .read_exact(bytes)
        .map_err(|error| assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "no end"))
        .ok()
}

/// Says something and listens until the coordinator hangs up; the kinds of the frames that came.
fn until_dropped(port: u16, says: &[u8], answers_pings: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(says).unwrap();
    let mut kinds = Vec::new();
    while let Some(came) = next_frame(&mut stream) {
        kinds.push(came.kind);
        let answer = if came.asks(SETTINGS) {
            frame(SETTINGS, ANSWER, 0, &[])
        } else if came.asks(PING) && answers_pings {
            frame(PING, ANSWER, 0, &came.payload)
        } else {
            continue;
        };
        // It may have hung up meanwhile.
        let _ = stream.write_all(&answer);
    }
    kinds
}

#[test]
fn rude_clients_lose_their_connections_and_others_are_served() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let port = coordinator.port;
    let client = |says: Vec<u8>, answers_pings| -> JoinHandle<Vec<u8>> {
        std::thread::spawn(move || until_dropped(port, &says, answers_pings))
    };
    let polite_answer = 1 << 16;
    let slow_reader = client(question(0), true);
    let mute = client(question(polite_answer), false);
    let stranger = client(PREFACE[..9].to_vec(), true);
    cluster.kgfleet(&coordinator, &["status"]).expect(0);

    let slow_reader = slow_reader.join().unwrap();
    assert!(slow_reader.contains(&HEADERS) && slow_reader.contains(&PING), "{slow_reader:?}");
    assert!(!slow_reader.contains(&DATA), "it takes nothing: {slow_reader:?}");
    let mute = mute.join().unwrap();
    assert!(
        mute.contains(&DATA) && mute.contains(&PING),
        "it was served and asked whether it is there: {mute:?}"
    );
    stranger.join().unwrap();
    cluster.kgfleet(&coordinator, &["status"]).expect(0);
}
