//! Clients that speak the wire protocol and break its rules, on real sockets of a real coordinator.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::control::RunPhase;

use crate::harness::{Cluster, NT_TASK, Server, TURTLE_TASK};

/// The first bytes of every connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames, and the flags that matter here.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_OF_STREAM: u8 = 1;
const ANSWER: u8 = 1;
const END_OF_HEADERS: u8 = 4;

/// The setting that says how much of an answer may be sent before the client asks for more.
const INITIAL_WINDOW_SIZE: u8 = 4;

/// How much of a call may be sent before the other side has said anything, in bytes.
const FIRST_WINDOW: i64 = 65_535;

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
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Whether it asks for an answer of the same kind.
    fn asks(&self, kind: u8) -> bool {
        self.kind == kind && self.flags & ANSWER == 0
    }

    /// Whether a call is over with it.
    fn ends_a_call(&self) -> bool {
        self.kind == RESET || ([DATA, HEADERS].contains(&self.kind) && self.flags & END_OF_STREAM != 0)
    }

    fn bytes(&self) -> Vec<u8> {
        frame(self.kind, self.flags, self.stream, &self.payload)
    }
}

/// The next frame; `None` when the connection has ended.
fn next_frame(stream: &mut impl Read) -> Option<Frame> {
    let mut head = [0; 9];
    read_whole(stream, &mut head)?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    read_whole(stream, &mut payload)?;
    let number = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
    Some(Frame { kind: head[3], flags: head[4], stream: number, payload })
}

fn read_whole(stream: &mut impl Read, bytes: &mut [u8]) -> Option<()> {
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

/// Both directions of a connection, as they went over a line that keeps a copy.
#[derive(Default)]
struct Said {
    client: Vec<u8>,
    server: Vec<u8>,
}

/// A line that keeps what goes over it. Its threads end with the test.
struct Recorder {
    port: u16,
    said: Arc<Mutex<Vec<Arc<Mutex<Said>>>>>,
}

impl Recorder {
    fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let said: Arc<Mutex<Vec<Arc<Mutex<Said>>>>> = Arc::default();
        let all = Arc::clone(&said);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let said: Arc<Mutex<Said>> = Arc::default();
                all.lock().unwrap().push(Arc::clone(&said));
                let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
                copy(&client, &server, Arc::clone(&said), |said| &mut said.client);
                copy(&server, &client, said, |said| &mut said.server);
            }
        });
        Self { port, said }
    }
}

fn copy(from: &TcpStream, to: &TcpStream, said: Arc<Mutex<Said>>, kept: fn(&mut Said) -> &mut Vec<u8>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            kept(&mut said.lock().unwrap()).extend(&bytes[..length]);
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// The frames of one direction of a connection, as far as they are complete.
fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    std::iter::from_fn(|| next_frame(&mut bytes)).collect()
}

/// A client that says again what another one has said.
struct Echo {
    stream: TcpStream,
    /// Bytes that the coordinator takes now, by stream; number 0 is the whole connection.
    windows: BTreeMap<u32, i64>,
    /// The same for a stream that is new.
    new_stream: i64,
    /// Calls that are not answered yet.
    left: usize,
}

impl Echo {
    /// Takes what comes next, and answers it where it asks for an answer.
    fn listen(&mut self) {
        let came = next_frame(&mut self.stream).expect("the coordinator goes on listening");
        self.left = self.left.saturating_sub(usize::from(came.ends_a_call()));
        assert!(came.kind != GO_AWAY, "the coordinator hangs up: {:?}", came.payload);
        if came.asks(SETTINGS) {
            for setting in came.payload.chunks_exact(6) {
                if setting[1] == INITIAL_WINDOW_SIZE {
                    self.new_stream = i64::from(number(&setting[2..]));
                }
            }
            self.stream.write_all(&frame(SETTINGS, ANSWER, 0, &[])).unwrap();
        } else if came.asks(PING) {
            self.stream.write_all(&frame(PING, ANSWER, 0, &came.payload)).unwrap();
        } else if came.kind == WINDOW_UPDATE {
            *self.window(came.stream) += i64::from(number(&came.payload));
        }
    }

    fn window(&mut self, stream: u32) -> &mut i64 {
        self.windows.entry(stream).or_insert(if stream == 0 { FIRST_WINDOW } else { self.new_stream })
    }

    /// Says this when the coordinator takes it; nothing of a call that it has ended already.
    fn say(&mut self, frame: &Frame) {
        if frame.kind == DATA {
            let length = frame.payload.len() as i64;
            while self.left > 0 && [0, frame.stream].into_iter().any(|stream| *self.window(stream) < length) {
                self.listen();
            }
            for stream in [0, frame.stream] {
                *self.window(stream) -= length;
            }
        }
        self.stream.write_all(&frame.bytes()).unwrap();
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

/// Makes every call of a connection again, without waiting for an answer to the one before, until as many are answered as
/// were the first time.
fn replay(port: u16, said: &Said) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (greeting, calls): (Vec<_>, Vec<_>) = frames(said.client.get(PREFACE.len()..).unwrap_or_default())
        .into_iter()
        // What answers the coordinator's own words is said when these come.
        .filter(|frame| frame.asks(SETTINGS) || [DATA, HEADERS, CONTINUATION].contains(&frame.kind))
        .partition(|frame| frame.kind == SETTINGS);
    stream.write_all(PREFACE).unwrap();
    let left = frames(&said.server).iter().filter(|frame| frame.ends_a_call()).count();
    let mut echo = Echo { stream, windows: BTreeMap::new(), new_stream: FIRST_WINDOW, left };
    greeting.iter().for_each(|frame| echo.say(frame));
    // What it is ready for.
    echo.listen();
    calls.iter().for_each(|frame| echo.say(frame));
    while echo.left > 0 {
        echo.listen();
    }
}

#[test]
fn bytes_that_are_said_again_in_any_order_change_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, coordinator) = (Server::start(), cluster.coordinator());
    let recorder = Recorder::to(coordinator.port);
    let run = cluster.submit(&coordinator, &[NT_TASK, TURTLE_TASK], 10);
    let worker = cluster.worker_with("heard", recorder.port, &server.url(), &["--concurrency", "4"]);
    let (view, _) = cluster.watch(&coordinator, &run);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 20));
    worker.signal(rustix::process::Signal::TERM);
    worker.finish();
    let before = cluster.data.run().records();

    let said = recorder.said.lock().unwrap();
    assert!(!said.is_empty());
    let all = || said.iter().map(|said| said.lock().unwrap());
    for said in all() {
        replay(coordinator.port, &said);
    }
    assert_eq!(cluster.data.run().records(), before, "the log has not grown");

    // While another run is under way: a worker that is not there is given work, and loses it.
    let next = cluster.submit(&coordinator, &[NT_TASK], 20);
    let _working = cluster.worker("next", &coordinator, &server);
    for said in all().rev() {
        replay(coordinator.port, &said);
    }
    let (view, finished) = cluster.watch(&coordinator, &next);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (20, 0));
    assert_eq!(cluster.data.runs()[0].records(), before);
    assert_eq!(cluster.status(&coordinator, &run).scored, 20);
    for run in [&run, &next] {
        cluster.data.kgfleet(&["verify", run]).expect(0);
    }
}
