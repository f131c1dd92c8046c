//! What probes tell, and who may sit how long at the door.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Mutex;

use axum::body::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::*;

/// Status and body of a page.
async fn page(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn probes_tell_life_readiness_and_metrics_until_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let state = Arc::new(Mutex::new(Err("the queue cannot be reached".to_owned())));
    let ready = Arc::clone(&state);
    let probes = Probes {
        ready: Arc::new(move || ready.lock().unwrap().clone()),
        metrics: Metrics::install().unwrap(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, probes, async { stopped.await.unwrap() }));

    assert_eq!(page(address, "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(page(address, "/readyz").await, (503, "the queue cannot be reached\n".to_owned()));
    *state.lock().unwrap() = Ok(());
    assert_eq!(page(address, "/readyz").await, (200, "ready\n".to_owned()));
    metrics::gauge!("kgfleet_test_probed").set(1.0);
    let (status, text) = page(address, "/metrics").await;
    assert!(status == 200 && text.contains("\nkgfleet_test_probed 1\n"), "{text}");
    assert_eq!(page(address, "/else").await.0, 404);

    stop.send(()).unwrap();
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metrics_that_take_long_delay_no_probe() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let render = move || {
        begins.notify_one();
        waits.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
        "kgfleet_test_slow 1\n".to_owned()
    };
    let router = health(Arc::new(|| Ok(()))).merge(exposition(Arc::new(render)));
    tokio::spawn(serve_at(
        Door::new(listener, DoorLimits::of(CONNECTIONS)),
        router,
        REQUEST_TIME_MAX,
        pending(),
    ));

    let scraped = tokio::spawn(page(address, "/metrics"));
    begun.notified().await;
    let probed = tokio::time::timeout(Duration::from_secs(30), page(address, "/healthz")).await;
    assert_eq!(probed.expect("a probe waits for no metrics"), (200, "alive\n".to_owned()));
    go_on.send(()).unwrap();
    assert_eq!(scraped.await.unwrap(), (200, "kgfleet_test_slow 1\n".to_owned()));
}

const SHORT: Duration = Duration::from_millis(200);

const NONE: SeatLimits = SeatLimits { all: 0, per_address: 0 };

/// A server that ends when its test does.
async fn served(limits: DoorLimits, request_time_max: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // More than the buffers of two sockets hold.
    let large = || async { Body::from(vec![b'x'; 64 << 20]) };
    let router = Router::new().route("/", get(|| async { "hello" })).route("/large", get(large));
    tokio::spawn(serve_at(Door::new(listener, limits), router, request_time_max, pending()));
    address
}

/// The answer to a request on this connection.
async fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    if stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.is_ok() {
        // A refused connection ends or is reset.
        let _ = stream.read_to_string(&mut answer).await;
    }
    answer
}

async fn from_elsewhere(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    socket.connect(address).await.unwrap()
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_keep_its_connection_by_dripping() {
    let seats = SeatLimits { all: 1, per_address: 1 };
    let address = served(DoorLimits { spare: NONE, ..DoorLimits::of(seats) }, SHORT).await;
    let (mut hear, mut tell) = TcpStream::connect(address).await.unwrap().into_split();
    tokio::spawn(async move {
        while tell.write_all(b"G").await.is_ok() {
            sleep(SHORT / 20).await;
        }
    });
    let mut rest = Vec::new();
    let _ = hear.read_to_end(&mut rest).await;
    let next = TcpStream::connect(address).await.unwrap();
    assert!(answer(next).await.ends_with("hello"), "its seat is free");
}

#[tokio::test]
async fn who_takes_all_seats_silences_neither_probes_nor_other_addresses() {
    let seats = SeatLimits { all: 4, per_address: 2 };
    let spare = SeatLimits { all: 2, per_address: 1 };
    let limits = DoorLimits { spare, spare_time: SHORT, ..DoorLimits::of(seats) };
    let address = served(limits, Duration::from_secs(3600)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    let mut rest = Vec::new();
    let _ = third.read_to_end(&mut rest).await;
    // Its spare seat was let go.
    while !answer(TcpStream::connect(address).await.unwrap()).await.ends_with("hello") {}
    for _ in 0..2 {
        while !answer(from_elsewhere(address).await).await.ends_with("hello") {}
        held.push(from_elsewhere(address).await);
    }
    // All seats are taken, and a spare one is free from time to time.
    while !answer(from_elsewhere(address).await).await.ends_with("hello") {}
}

#[tokio::test]
async fn who_says_nothing_and_who_takes_nothing_is_let_go() {
    let seats = SeatLimits { all: 1, per_address: 1 };
    let limits = DoorLimits { spare: NONE, stalled_write: SHORT, ..DoorLimits::of(seats) };
    let address = served(limits, SHORT).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "the connection was closed");

    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    // There is room for one: others are served once the slow one, which reads nothing, is gone.
    while !answer(TcpStream::connect(address).await.unwrap()).await.ends_with("hello") {}
    // What was on its way is still there; the rest never comes.
    let mut got = Vec::new();
    let _ = slow.read_to_end(&mut got).await;
    assert!(got.len() < 64 << 20, "{}", got.len());
}
