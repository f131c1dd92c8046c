//! Every role asks every path of the port badly: too long, half sent, too slow. Paths are taken from the tables from which the
//! server's routes are made; one without a row in [`ROWS`] fails.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::caller::CallerRole;
use domain::control::{Control, RunPhase};
use futures::future::join_all;
use page::Page;
use proto::limits::MESSAGE_TIME;
use proto::server::{BesideCalls, Security, Services, serve};
use service_kit::http::health;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant, sleep};

use super::world::*;

/// Who asks: the token of its session, if it can have one.
const ROLES: [(&str, Option<&str>); 5] = [
    ("stranger", None),
    ("reader", Some(BOB)),
    ("operator", Some(ALICE)),
    ("worker", None),
    ("conductor", None),
];

const ANYBODY: &[&str] = &["stranger", "reader", "operator", "worker", "conductor"];
const VISITORS: &[&str] = &["reader", "operator"];
const OPERATORS: &[&str] = &["operator"];

/// Every path and method with the roles that are served there.
const ROWS: &[(&str, &str, &[&str])] = &[
    ("/", "GET", VISITORS),
    ("/live", "GET", VISITORS),
    ("/runs/{run}", "GET", VISITORS),
    ("/runs/{run}/live", "GET", VISITORS),
    ("/runs/{run}/scores.csv", "GET", VISITORS),
    ("/runs/{run}/records.jsonl", "GET", VISITORS),
    ("/runs/{run}/dialogues", "GET", VISITORS),
    ("/runs/{run}/dialogue", "GET", VISITORS),
    ("/runs/{run}/command", "POST", OPERATORS),
    ("/workers", "GET", VISITORS),
    ("/workers/live", "GET", VISITORS),
    ("/workers/drain", "POST", OPERATORS),
    ("/login", "GET", ANYBODY),
    ("/login", "POST", ANYBODY),
    ("/logout", "POST", VISITORS),
    ("/assets/{name}", "GET", ANYBODY),
    ("/healthz", "GET", ANYBODY),
    ("/readyz", "GET", ANYBODY),
];

/// Longer than any form may be.
const LONG_FORM: usize = 64 << 10;

/// Longer than any head may be.
const LONG_HEAD: usize = 1 << 20;

/// The port of a coordinator with a run and a worker, and the sessions of its visitors.
struct Port {
    world: World,
    address: SocketAddr,
    run: String,
    phase: RunPhase,
    /// Cookie and form token by role.
    sessions: Vec<(&'static str, String, String)>,
}

impl Port {
    async fn open() -> Self {
        let world = World::guarded();
        let view = world.submit(1).await;
        let (run, phase) = (view.run.to_string(), view.phase);
        drop(Played::start(&world.access, "w").await);
        let mut sessions = Vec::new();
        for (role, token) in ROLES {
            let Some(token) = token else { continue };
            let cookie = world.log_in(token).await;
            let page = world.visit().with("cookie", &cookie).get("/workers").await.expect(200);
            sessions.push((role, cookie, page.form_token()));
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = health(Arc::new(|| Ok(()))).merge(world.page.router());
        let services = Services { exchange: world.access.clone(), control: world.access.clone() };
        let beside = BesideCalls { open, ..BesideCalls::default() };
        tokio::spawn(serve(listener, services, Security::none(), beside, std::future::pending()));
        Self { world, address, run, phase, sessions }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The beginning of a request of this role, up to its last header.
    fn head(&self, role: &str, method: &str, path: &str) -> String {
        let path = path.replace("{run}", &self.run).replace("{name}", "page.css");
        let session = self.sessions.iter().find(|(known, ..)| *known == role);
        let cookie = session.map(|(_, cookie, _)| format!("cookie: {cookie}\r\n")).unwrap_or_default();
        format!("{method} {path} HTTP/1.1\r\nhost: localhost:7701\r\nconnection: close\r\n{cookie}")
    }

    /// A form that would do something, were it whole.
    fn form(&self, role: &str) -> String {
        let session = self.sessions.iter().find(|(known, ..)| *known == role);
        let token = session.map(|(.., form_token)| form_token.as_str()).unwrap_or_default();
        format!("form_token={token}&action=cancel&worker=w&token={ALICE}")
    }

    /// What was done to the run and to the worker, and whether sessions are as they were.
    async fn expect_nothing_done(&self) {
        let run = self.run.as_str().into();
        assert_eq!(self.world.access.view(&run).await.unwrap().phase, self.phase);
        assert!(self.world.access.workers().await.unwrap().iter().all(|worker| !worker.draining));
        for (role, cookie, _) in &self.sessions {
            let page = self.world.visit().with("cookie", cookie).get("/").await;
            assert_eq!(page.status, 200, "{role}");
        }
        let mut probe = self.connect().await;
        probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        assert_eq!(status(&mut probe).await, Some(200));
    }
}

/// The status of the answer; `None` if the connection ended without one.
async fn status(stream: &mut TcpStream) -> Option<u16> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // The head is enough: a live page never ends.
    while !answer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
fn every_path_has_a_row_and_every_role_asks() {
    let asks = |role: &CallerRole| ROLES.iter().any(|(known, _)| *known == role.as_str());
    assert!(CallerRole::ALL.iter().all(asks), "{ROLES:?}");
    let rows: BTreeSet<(&str, &str)> = ROWS.iter().map(|(path, method, _)| (*path, *method)).collect();
    let served: BTreeSet<(&str, &str)> =
        Page::routes().into_iter().chain([("/healthz", "GET"), ("/readyz", "GET")]).collect();
    assert_eq!(served, rows);
}

#[tokio::test]
async fn roles_are_served_as_the_rows_say_and_other_methods_nowhere() {
    let port = Port::open().await;
    for (path, method, served) in ROWS {
        for (role, _) in ROLES {
            // A whole form of nothing: it says whether the role gets as far as the form.
            let mut stream = port.connect().await;
            let request = format!("{}content-length: 0\r\n\r\n", port.head(role, method, path));
            stream.write_all(request.as_bytes()).await.unwrap();
            let status = status(&mut stream).await.unwrap();
            match *method {
                "GET" => assert_eq!(
                    matches!(status, 200 | 400 | 404),
                    served.contains(&role),
                    "{role} {path}: {status}"
                ),
                _ => assert!(matches!(status, 401 | 403), "{role} {path}: {status}"),
            }
        }
        let others = ["GET", "POST", "PUT", "DELETE", "PATCH"].into_iter();
        for other in
            others.filter(|other| !ROWS.iter().any(|(known, method, _)| known == path && method == other))
        {
            let mut stream = port.connect().await;
            let request = format!("{}content-length: 0\r\n\r\n", port.head("operator", other, path));
            stream.write_all(request.as_bytes()).await.unwrap();
            assert_eq!(status(&mut stream).await, Some(405), "{other} {path}");
        }
    }
    port.expect_nothing_done().await;
}

#[tokio::test]
async fn what_is_too_long_is_refused_in_every_role_and_path() {
    let port = Port::open().await;
    for (path, method, served) in ROWS {
        for (role, _) in ROLES {
            let (mut hear, mut tell) = port.connect().await.into_split();
            let head = port.head(role, method, path);
            let telling = tokio::spawn(async move {
                // The server need not read to its end.
                let _ = tell
                    .write_all(format!("{head}x-long: {}\r\n\r\n", "x".repeat(LONG_HEAD)).as_bytes())
                    .await;
            });
            let mut answer = Vec::new();
            let _ = hear.read_to_end(&mut answer).await;
            let text = String::from_utf8_lossy(&answer);
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{role} {path}: {text}");
            telling.await.unwrap();
            if *method == "POST" {
                let mut stream = port.connect().await;
                let form = format!("{}&more={}", port.form(role), "x".repeat(LONG_FORM));
                let request =
                    format!("{}content-length: {}\r\n\r\n{form}", port.head(role, method, path), form.len());
                let _ = stream.write_all(request.as_bytes()).await;
                let status = status(&mut stream).await;
                // A reader's form is refused for its length before its rights are looked at.
                let refused = if served.contains(&role) { &[413][..] } else { &[401, 403, 413] };
                assert!(status.is_none_or(|status| refused.contains(&status)), "{role} {path}: {status:?}");
            }
        }
    }
    port.expect_nothing_done().await;
}

#[tokio::test]
async fn what_is_half_sent_does_nothing_in_every_role_and_path() {
    let port = Port::open().await;
    for (path, method, _) in ROWS {
        for (role, _) in ROLES {
            let head = port.head(role, method, path);
            let form = port.form(role);
            let halves = [
                head[..head.len() / 2].to_owned(),
                head.clone(),
                format!("{head}content-length: {}\r\n\r\n{form}", form.len() + 1),
                format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{form}\r\n", form.len()),
            ];
            // A request without a form is whole without one.
            let halves = &halves[..if *method == "POST" { 4 } else { 2 }];
            for half in halves {
                let mut stream = port.connect().await;
                stream.write_all(half.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
                let status = status(&mut stream).await;
                assert!(status.is_none_or(|status| status >= 400), "{role} {path}: {status:?} to {half:?}");
            }
        }
    }
    port.expect_nothing_done().await;
}

/// A byte every so often: often enough that the connection is not idle, and too seldom for the request.
const DRIP_EVERY: Duration = Duration::from_secs(5);
const _: () = assert!(DRIP_EVERY.as_secs() * 4 < MESSAGE_TIME.as_secs());

#[tokio::test]
async fn what_drips_in_loses_its_connection_in_every_role_and_path() {
    let port = Port::open().await;
    let mut requests = Vec::new();
    for (path, method, _) in ROWS {
        for (role, _) in ROLES {
            let head = port.head(role, method, path);
            // A form drips in its body, everything else in its head.
            let begun = match *method {
                "POST" => format!("{head}content-length: 1000\r\n\r\n"),
                _ => format!("{head}x-drips: "),
            };
            let stream = port.connect().await;
            requests.push(async move {
                let (mut hear, mut tell) = stream.into_split();
                tell.write_all(begun.as_bytes()).await.unwrap();
                let dripping = tokio::spawn(async move {
                    while tell.write_all(b"x").await.is_ok() {
                        sleep(DRIP_EVERY).await;
                    }
                });
                let mut answer = Vec::new();
                let _ = hear.read_to_end(&mut answer).await;
                dripping.abort();
                (role, *path, String::from_utf8_lossy(&answer).into_owned())
            });
        }
    }
    // From here on, nothing waits for anything but for the time.
    tokio::time::pause();
    let begun = Instant::now();
    for (role, path, answer) in join_all(requests).await {
        let status: Option<u16> = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        // Who may not post is refused by the head alone.
        assert!(status.is_none_or(|status| status >= 400), "{role} {path}: {answer}");
    }
    assert!(begun.elapsed() < MESSAGE_TIME + 3 * DRIP_EVERY, "{:?}", begun.elapsed());
    tokio::time::resume();
    port.expect_nothing_done().await;
}
