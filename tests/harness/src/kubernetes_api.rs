//! A stand-in for the API of Kubernetes, as far as a conductor uses it, and who ends a release: lists in pages, creates, deletes.
//! Its objects are the test's, which plays the controllers.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The token that it takes.
pub const ACCOUNT_TOKEN: &str = "of-the-account";

/// Longest wait for what is to happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Objects of one page.
const PAGE_OBJECTS: usize = 2;

/// The server. It stops when dropped.
pub struct KubernetesServer {
    pub url: String,
    state: Arc<ApiState>,
    // Last: the server's tasks live on it.
    _runtime: Runtime,
}

#[derive(Default)]
struct ApiState {
    held: Mutex<ApiObjects>,
    changed: Condvar,
}

/// What it holds.
#[derive(Default)]
pub struct ApiObjects {
    /// By kind in the plural, such as `jobs`, and name.
    pub of: BTreeMap<String, BTreeMap<String, Value>>,
    /// Calls that changed something, such as `POST jobs a-1`.
    pub changes: Vec<String>,
    /// The next calls of these methods are answered with these statuses.
    pub refusals: Vec<(Method, u16)>,
    uids: u32,
}

impl ApiObjects {
    /// Puts an object there, as somebody else than the conductor.
    pub fn put(&mut self, kind: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.of.entry(kind.to_owned()).or_default().insert(name, object);
    }

    /// The objects of a kind.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.of.get(kind).into_iter().flat_map(BTreeMap::values).collect()
    }
}

impl KubernetesServer {
    /// Starts it on a free port, without objects.
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(ApiState::default());
        let router = Router::new()
            .route("/apis/batch/v1/namespaces/{namespace}/{kind}", any(of_kind))
            .route("/apis/apps/v1/namespaces/{namespace}/{kind}", any(of_kind))
            .route("/api/v1/namespaces/{namespace}/{kind}", any(of_kind))
            .route("/apis/batch/v1/namespaces/{namespace}/{kind}/{name}", any(of_object))
            .route("/apis/apps/v1/namespaces/{namespace}/{kind}/{name}", any(of_object))
            .with_state(Arc::clone(&state));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, state, _runtime: runtime }
    }

    /// Its objects, to look at or to change.
    pub fn objects(&self) -> MutexGuard<'_, ApiObjects> {
        self.state.held.lock().unwrap()
    }

    /// Waits until its objects are so, which is looked at after each change by a call.
    #[track_caller]
    pub fn until(&self, is_so: impl Fn(&ApiObjects) -> bool) -> MutexGuard<'_, ApiObjects> {
        let held = self.state.held.lock().unwrap();
        let (held, late) =
            self.state.changed.wait_timeout_while(held, WAIT_MAX, |objects| !is_so(objects)).unwrap();
        assert!(!late.timed_out(), "what is waited for does not come: {:#?}", held.changes);
        held
    }
}

fn refused(status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, json!({"kind": "Status", "status": "Failure", "message": message}).to_string()).into_response()
}

/// Why a call is refused before it is looked at, if it is.
fn refusal(held: &mut ApiObjects, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok());
    if token != Some(&format!("Bearer {ACCOUNT_TOKEN}")) {
        return Some(refused(401, "Unauthorized"));
    }
    let at = held.refusals.iter().position(|(of, _)| of == method)?;
    let (_, status) = held.refusals.remove(at);
    Some(refused(status, "the test says so"))
}

/// Whether an object has the labels that a selector of the forms `key=value` and `key` names.
fn is_selected(object: &Value, selector: &str) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.split(',').all(|term| match term.split_once('=') {
        Some((key, value)) => labels[key] == value,
        None => labels[term].is_string(),
    })
}

async fn of_kind(
    State(state): State<Arc<ApiState>>,
    Path((_, kind)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut held = state.held.lock().unwrap();
    if let Some(refused) = refusal(&mut held, &method, &headers) {
        return refused;
    }
    if method == Method::GET {
        let selector = query.get("labelSelector").map_or("", String::as_str);
        let from: usize = query.get("continue").map_or(0, |text| text.parse().unwrap());
        let of_kind = held.all(&kind);
        let all = of_kind.into_iter().filter(|object| selector.is_empty() || is_selected(object, selector));
        let all: Vec<&Value> = all.skip(from).collect();
        let next = if all.len() > PAGE_OBJECTS { (from + PAGE_OBJECTS).to_string() } else { String::new() };
        let page: Vec<&Value> = all.into_iter().take(PAGE_OBJECTS).collect();
        // As a nil list of Go is written.
        let items = if page.is_empty() { Value::Null } else { json!(page) };
        return json!({"metadata": {"continue": next}, "items": items}).to_string().into_response();
    }
    let mut object: Value = serde_json::from_slice(&body).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    if held.of.get(&kind).is_some_and(|of| of.contains_key(&name)) {
        return refused(409, &format!("{kind} \"{name}\" already exists"));
    }
    held.uids += 1;
    object["metadata"]["uid"] = json!(format!("uid-{}", held.uids));
    object["metadata"]["creationTimestamp"] = json!(now_in_seconds());
    held.put(&kind, object.clone());
    held.changes.push(format!("POST {kind} {name}"));
    state.changed.notify_all();
    (StatusCode::CREATED, object.to_string()).into_response()
}

async fn of_object(
    State(state): State<Arc<ApiState>>,
    Path((_, kind, name)): Path<(String, String, String)>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut held = state.held.lock().unwrap();
    if let Some(refused) = refusal(&mut held, &method, &headers) {
        return refused;
    }
    let options: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(of_kind) = held.of.get_mut(&kind).filter(|_| method == Method::DELETE) else {
        return refused(405, "only deletes are known");
    };
    let Some(found) = of_kind.get(&name) else {
        return refused(404, &format!("{kind} \"{name}\" not found"));
    };
    if found["metadata"]["uid"] != options["preconditions"]["uid"] {
        return refused(409, "the UID in the precondition does not match");
    }
    of_kind.remove(&name);
    held.changes
        .push(format!("DELETE {kind} {name} {}", options["propagationPolicy"].as_str().unwrap_or_default()));
    state.changed.notify_all();
    json!({"status": "Success"}).to_string().into_response()
}

/// Now, as Kubernetes writes it.
fn now_in_seconds() -> String {
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap().to_string()
}
