//! A coordinator with a queue in memory, its page, and visitors of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use coordinator::access::Access;
use coordinator::{Coordinator, CoordinatorOptions};
use domain::control::{BenchmarkView, Control, Submission};
use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{DialogueKey, InstanceId, RunId};
use harness::played_worker::{PlayedWorker, keys, record};
use packs::{Group, Header, Parts, published_password};
use page::{Links, Page, PageOptions, PublicUrl};
use proto::server::{Identities, Peer, hash_of_token};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// More than any page has.
const BODY_MAX: usize = 64 << 20;

pub const MODEL: &str = "org/a";

/// A coordinator and its page.
pub struct World {
    pub coordinator: Arc<Coordinator>,
    /// Every call of it.
    pub access: Arc<Access>,
    pub page: Page,
    pub router: Router,
    data: tempfile::TempDir,
}

/// An answer of the page.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The answer, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{:?}\n{}", self.headers, self.body);
        self
    }

    #[track_caller]
    pub fn shows(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.body.contains(part), "`{part}` is not in\n{}", self.body);
        }
        self
    }

    pub fn form_token(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"form_token\" value=\"").expect("a form");
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// What its cookie is to a browser that sends it back.
    pub fn cookie(&self) -> String {
        self.headers[header::SET_COOKIE].to_str().unwrap().split_once(';').unwrap().0.to_owned()
    }
}

/// A visitor's request.
pub struct Visit<'a> {
    world: &'a World,
    peer: &'a str,
    host: &'a str,
    headers: Vec<(&'a str, String)>,
}

impl<'a> Visit<'a> {
    pub fn from(mut self, peer: &'a str) -> Self {
        self.peer = peer;
        self
    }

    pub fn host(mut self, host: &'a str) -> Self {
        self.host = host;
        self
    }

    pub fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn request(self, method: Method, path: &str, body: String) -> (Router, Request<Body>) {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, self.host);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let mut request = request.body(Body::from(body)).unwrap();
        request.extensions_mut().insert(Peer::new(self.peer.parse::<SocketAddr>().unwrap()));
        (self.world.router.clone(), request)
    }

    async fn answer(self, method: Method, path: &str, body: String) -> Answer {
        let (router, request) = self.request(method, path, body);
        let response = router.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, BODY_MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub async fn get(self, path: &str) -> Answer {
        self.answer(Method::GET, path, String::new()).await
    }

    /// The body of an answer, piece by piece.
    pub async fn stream(self, path: &str) -> axum::body::BodyDataStream {
        let (router, request) = self.request(Method::GET, path, String::new());
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().into_data_stream()
    }

    pub async fn post(self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.answer(Method::POST, path, body).await
    }
}

/// Tokens of the identities `alice` (operator), `bob` (reader) and `pool` (worker).
pub const ALICE: &str = "token-of-alice";
pub const BOB: &str = "token-of-bob";
pub const POOL: &str = "token-of-pool";

fn config() -> CoordinatorOptions {
    CoordinatorOptions {
        tends: false,
        backlog_for: Duration::ZERO,
        grace: Some(Duration::ZERO),
        // Nothing here waits for a lease to expire.
        lease_for: Duration::from_secs(3600),
        ..CoordinatorOptions::fleet()
    }
}

impl World {
    /// Nobody logs in.
    pub fn open() -> Self {
        Self::with(Identities::anyone(), None)
    }

    /// Three identities; other machines come over TLS.
    pub fn guarded() -> Self {
        let known = [("alice", ALICE, "operator"), ("bob", BOB, "reader"), ("pool", POOL, "worker")];
        let identity = |(name, token, role): (&str, &str, &str)| {
            format!(
                "[[identity]]\nname = '{name}'\nroles = ['{role}']\nsha256 = '{}'\n",
                hash_of_token(token)
            )
        };
        let identities = Identities::parse(&known.map(identity).concat()).unwrap();
        Self::with(identities, Some("https://fleet.example".parse().unwrap()))
    }

    pub fn with(identities: Identities, public: Option<PublicUrl>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let queue = queue::open("memory", None).unwrap();
        let sink = results::Sink::new(data.path().join("runs"));
        let audit = coordinator::audit::AuditLog::open(&data.path().join("audit")).unwrap();
        let coordinator = Coordinator::start_noting(config(), queue, sink, audit);
        let links = Links {
            prices: report::costs::Prices::shipped(),
            dashboards: Some("https://grafana.example".parse().unwrap()),
        };
        let options = PageOptions { identities, public, links };
        let page = Page::new(Arc::clone(&coordinator), options).unwrap();
        let access = coordinator.unnamed();
        Self { router: page.router(), page, coordinator, access, data }
    }

    /// Writes a file into the folder of its records.
    pub fn write(&self, name: &str, content: &[u8]) {
        let path = self.data.path().join("runs").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The lines of the audit log: who, from where, and what.
    pub fn noted(&self) -> Vec<[String; 3]> {
        let entries = coordinator::audit::read_all(&self.data.path().join("audit")).unwrap().entries;
        entries.into_iter().map(|entry| [entry.deed.who, entry.deed.from, entry.deed.act]).collect()
    }

    /// Somebody at this machine.
    pub fn visit(&self) -> Visit<'_> {
        Visit { world: self, peer: "127.0.0.1:50000", host: "localhost:7701", headers: Vec::new() }
    }

    /// Somebody at this machine who has logged in.
    pub async fn log_in(&self, token: &str) -> String {
        self.visit().post("/login", &[("token", token)]).await.expect(303).cookie()
    }

    /// A model on protected exercises.
    pub async fn submit_protected(&self) -> BenchmarkView {
        let configuration = json!({
            "name": "marsh", "seed": 7, "iterations": 1, "pack": "marsh.kgpack",
            "models": [{"label": "a", "connector": "openai-compatible", "model": MODEL}],
        });
        let submission = Submission { configuration, pack: Some(protected_pack().into()) };
        self.access.submit(submission).await.unwrap()
    }

    /// So many models on three tasks, some of them with names of published ones.
    pub async fn submit_many(&self, models: usize, iterations: u32) -> BenchmarkView {
        let name = |n: usize| match n {
            0 => "gpt-4o-mini-2024-07-18".to_owned(),
            1 => "meta-llama/Llama-4-Maverick-17B-128E-Instruct".to_owned(),
            n => format!("org/model-{n:02}"),
        };
        let models = (0..models)
            .map(|n| json!({"label": name(n), "connector": "openai-compatible", "model": name(n)}))
            .collect::<Vec<_>>();
        let configuration = json!({
            "name": "many", "seed": 7, "iterations": iterations, "models": models,
            "tasks": ["RdfFriendCount-turtle-1", "RdfFriendCount-nt-1", "RdfFriendCount-jsonld-1"],
        });
        self.access.submit(Submission { configuration, pack: None }).await.unwrap()
    }

    /// Two models on two tasks.
    pub async fn submit(&self, iterations: u32) -> BenchmarkView {
        let configuration = json!({
            "name": "two <by> two",
            "seed": 7,
            "iterations": iterations,
            "tasks": ["RdfFriendCount-turtle-1", "RdfFriendCount-nt-1"],
            "models": [
                {"label": "a", "connector": "openai-compatible", "model": MODEL},
                {"label": "b", "connector": "openai-compatible", "model": "org/b"},
            ],
        });
        self.access.submit(Submission { configuration, pack: None }).await.unwrap()
    }
}

/// An invented protected exercise.
fn protected_pack() -> Vec<u8> {
    const TASK: &str = "Text2AnswerListOrganizational";
    let mut parts = Parts::new("marsh");
    parts
        .insert_header(&Header {
            name: "marsh".into(),
            version: "1".into(),
            licence: "CC0-1.0".into(),
            description: "Invented reedbeds.".into(),
            provenance: "Written for this test.".into(),
            canary: "none".into(),
            protected: true,
            compat: tasks::Compat::default(),
            limits: tasks::EvaluationLimits::default(),
            groups: vec![Group { name: "all".into(), default: true, tasks: vec![TASK.into()] }],
            graphs: Vec::new(),
        })
        .unwrap();
    let graph = "@prefix : <http://marsh.example/> .\n:tarnholm :hosts :avocet .\n";
    let case = json!({
        "uid": "case-1", "referenceAnswer": ":avocet", "wrongAnswer": ":bittern", "malformedAnswer": "Nobody knows.",
        "prompt": {"graph": graph},
        "data": {
            "uid": "case-1", "question": "Which birds live at tarnholm?",
            "refSparql": "SELECT ?bird WHERE { :tarnholm :hosts ?bird }", "refResultSet": [":avocet"],
            "multishotLimit": 3, "multishotSyntaxLimit": 3, "multishotResultLimit": 3,
            "graphTurtle": graph, "graphFormat": "turtle", "baseIri": "http://marsh.example/"
        },
    });
    let task = json!({
        "label": TASK, "class": TASK, "version": "2.0.2", "parameters": {},
        "wording": {"first": "{{question}}\n{{graph}}"}, "cases": [case],
    });
    parts.insert_task(&serde_json::from_value(task).unwrap()).unwrap();
    packs::seal_quickly(&parts, &published_password()).unwrap()
}

/// A worker that speaks to the coordinator of a [`World`].
pub struct Played(PlayedWorker);

impl Played {
    pub async fn start(access: &Access, name: &str) -> Self {
        Self::serving(access, name, &[MODEL, "org/b"]).await
    }

    /// The same for these models.
    pub async fn serving(access: &Access, name: &str, models: &[&str]) -> Self {
        let mut played = PlayedWorker::new(name, models);
        played.instance = InstanceId::new("i");
        played.status.host = "host <b>".into();
        access.register(played.registration()).await.unwrap();
        Self(played)
    }

    /// Reports, each time something else, and takes up to this number of units.
    pub async fn take(&mut self, access: &Access, room: u32) {
        self.0.status.dialogues += 1;
        let orders = access.exchange(self.0.report(room)).await.unwrap();
        self.0.follow(&orders);
    }

    /// Answers everything it holds, and returns how many dialogues that were: outcome and text of each answer come from
    /// the dialogue.
    pub async fn answer(
        &mut self,
        access: &Access,
        answer: impl Fn(&DialogueKey) -> (Value, String),
    ) -> usize {
        let mut answered = 0;
        for grant in std::mem::take(&mut self.0.held) {
            let delivery = |key: &DialogueKey| {
                let (outcome, text) = answer(key);
                let record = record(&grant.lease, key, &outcome, &json!([round(key, &text)]));
                Delivery::of(grant.lease.run.clone(), &record).unwrap()
            };
            let receipts = access.deliver(keys(&grant).iter().map(delivery).collect()).await.unwrap();
            assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored), "{receipts:?}");
            answered += receipts.len();
            self.0.finished.push(grant.lease);
        }
        answered
    }
}

pub fn scored(score: f64) -> Value {
    json!({"state": "scored", "scores": {"f1": score}, "infos": {}})
}

pub fn failed(message: &str) -> Value {
    json!({"state": "failed", "cause": "timeout", "message": message})
}

/// The server of the model `b` counts no tokens.
fn round(key: &DialogueKey, answer: &str) -> Value {
    let usage = match key.model.as_str() {
        "b" => json!({}),
        _ => json!({"prompt_tokens": 700, "cached_tokens": 100, "completion_tokens": 260}),
    };
    json!({
        "prompt": {"kind": "first", "text": "Who knows whom?"},
        "prompted_at": "2025-01-01T00:00:00Z",
        "answer": {"text": answer, "usage": usage},
        "answered_at": "2025-01-01T00:00:01Z",
    })
}

/// The path of a run's page.
pub fn path(run: &RunId) -> String {
    format!("/runs/{run}")
}
