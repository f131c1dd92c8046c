//! A provider of batches on loopback: OpenAI's routes and Anthropic's, as their public documentation describes them.
//! Its batches end when the test says so, and when they are cancelled. Each question is answered with its last message,
//! but for those that begin with `refuse`. What is stored there stays until it is deleted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The largest file that it takes, in bytes.
const UPLOAD_BYTES_MAX: usize = 16 << 20;

/// Longest wait for what is to happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvidedStage {
    UnderWay,
    Ended,
    /// Its first question was answered, and no other.
    Expired,
    /// The same.
    Cancelled,
    /// It will be cancelled.
    Cancelling,
}

/// A batch that it was given.
#[derive(Clone, Debug)]
pub struct ProvidedBatch {
    pub id: String,
    pub stage: ProvidedStage,
    /// What it carries besides its questions; null at Anthropic.
    pub metadata: Value,
    /// The file of its questions; none at Anthropic.
    pub input: Option<String>,
    /// The questions with their ids.
    pub questions: Vec<ProvidedQuestion>,
}

/// A question: its id and its body.
pub type ProvidedQuestion = (String, Value);

impl ProvidedBatch {
    /// The last messages of its questions.
    pub fn asked(&self) -> Vec<String> {
        self.questions.iter().map(|(_, body)| last_message(body)).collect()
    }

    /// The questions that were answered, and the others.
    fn parts(&self) -> (&[ProvidedQuestion], &[ProvidedQuestion]) {
        match self.stage {
            ProvidedStage::UnderWay | ProvidedStage::Cancelling => (&[], &self.questions[..]),
            ProvidedStage::Ended => (&self.questions[..], &[]),
            ProvidedStage::Expired | ProvidedStage::Cancelled => self.questions.split_at(1),
        }
    }

    fn has_ended(&self) -> bool {
        !matches!(self.stage, ProvidedStage::UnderWay | ProvidedStage::Cancelling)
    }

    /// What can be deleted of it: its files, or at Anthropic itself.
    fn stored(&self) -> Vec<String> {
        match &self.input {
            None => vec![self.id.clone()],
            Some(input) if !self.has_ended() => vec![input.clone()],
            Some(input) => {
                vec![input.clone(), format!("output-{}", self.id), format!("error-{}", self.id)]
            }
        }
    }
}

#[derive(Default)]
struct ProvidedState {
    batches: Vec<ProvidedBatch>,
    files: BTreeMap<String, String>,
    /// Ids of files and batches.
    deleted: BTreeSet<String>,
    /// The next creations of batches are answered so.
    creations: VecDeque<Creation>,
    /// All cancellations and deletions are refused with this status.
    keeps: Option<u16>,
    /// Batches that are cancelled do not end by that.
    cancels_slowly: bool,
    /// Methods and paths of all calls.
    calls: Vec<String>,
}

/// What becomes of the creation of a batch.
enum Creation {
    /// It is refused with this status.
    Refused(u16),
    /// It is made, and the answer lost.
    Unheard,
}

/// The provider. It lives as long as the test's runtime.
pub struct BatchProvider {
    pub url: String,
    shared: Arc<Provided>,
}

struct Provided {
    state: Mutex<ProvidedState>,
    changed: watch::Sender<()>,
}

impl Provided {
    fn state(&self) -> MutexGuard<'_, ProvidedState> {
        self.state.lock().unwrap()
    }
}

impl BatchProvider {
    pub async fn start() -> Self {
        let shared = Arc::new(Provided { state: Mutex::default(), changed: watch::channel(()).0 });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    pub fn batches(&self) -> Vec<ProvidedBatch> {
        self.shared.state().batches.clone()
    }

    /// Methods and paths of all calls.
    pub fn calls(&self) -> Vec<String> {
        self.shared.state().calls.clone()
    }

    /// Waits until its batches are so.
    pub async fn until(&self, what: &str, is_so: impl Fn(&[ProvidedBatch]) -> bool) -> Vec<ProvidedBatch> {
        let mut changed = self.shared.changed.subscribe();
        let wait = async {
            loop {
                changed.borrow_and_update();
                let batches = self.batches();
                if is_so(&batches) {
                    return batches;
                }
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(WAIT_MAX, wait).await;
        waited.unwrap_or_else(|_| panic!("{what} did not happen: {:?}", self.batches()))
    }

    /// Waits until there are so many batches.
    pub async fn made(&self, count: usize) -> Vec<ProvidedBatch> {
        self.until("a batch", |batches| batches.len() >= count).await
    }

    /// Brings a batch to an end.
    pub fn end(&self, place: usize, stage: ProvidedStage) {
        self.shared.state().batches[place].stage = stage;
        self.shared.changed.send_replace(());
    }

    /// The next creation of a batch is refused with this status.
    pub fn refuse(&self, status: u16) {
        self.shared.state().creations.push_back(Creation::Refused(status));
    }

    /// The next batch is made, but whoever asked for it does not hear so.
    pub fn lose_an_answer(&self) {
        self.shared.state().creations.push_back(Creation::Unheard);
    }

    /// All cancellations and deletions are refused with this status from now on; `None`: no more.
    pub fn keep(&self, status: Option<u16>) {
        self.shared.state().keeps = status;
    }

    /// A batch that is cancelled ends when the test says so.
    pub fn cancel_slowly(&self) {
        self.shared.state().cancels_slowly = true;
    }

    /// The ids of all that is stored there: files, and at Anthropic batches.
    pub fn stored(&self) -> Vec<String> {
        let state = self.shared.state();
        let of_batches = state.batches.iter().flat_map(ProvidedBatch::stored);
        let all: BTreeSet<String> = state.files.keys().cloned().chain(of_batches).collect();
        all.difference(&state.deleted).cloned().collect()
    }

    /// It knows nothing any more.
    pub fn forget(&self) {
        self.shared.state().batches.clear();
    }
}

async fn answer(State(shared): State<Arc<Provided>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, UPLOAD_BYTES_MAX).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let form = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let path = head.uri.path().trim_start_matches("/v1/").to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    let (status, answer) = {
        let mut state = shared.state();
        state.calls.push(format!("{} {path}", head.method));
        match (head.method.as_str(), &parts[..]) {
            ("POST", ["files"]) => state.upload(form, &text),
            ("GET", ["files", id, "content"]) => state.content(id),
            ("DELETE", ["files", id]) => state.delete_file(id),
            ("POST", ["batches"]) => state.create_of_file(&text),
            ("GET", ["batches"]) => state.list(),
            ("GET", ["batches", id]) => state.show(id, openai),
            ("POST", ["batches", id, "cancel"]) => state.cancel(id, openai),
            ("POST", ["messages", "batches"]) => state.create_of_messages(&text),
            ("GET", ["messages", "batches", id]) => state.show(id, anthropic),
            ("GET", ["messages", "batches", id, "results"]) => state.results(id),
            ("POST", ["messages", "batches", id, "cancel"]) => state.cancel(id, anthropic),
            ("DELETE", ["messages", "batches", id]) => state.delete_batch(id),
            _ => not_found(),
        }
    };
    shared.changed.send_replace(());
    Response::builder().status(status).body(answer.into()).unwrap()
}

type Answer = (u16, String);

fn not_found() -> Answer {
    (404, json!({"error": {"type": "not_found_error", "message": "no such thing"}}).to_string())
}

fn refused(status: u16, message: &str) -> Answer {
    (status, json!({"error": {"type": "invalid_request_error", "message": message}}).to_string())
}

impl ProvidedState {
    fn upload(&mut self, form: &str, text: &str) -> Answer {
        let boundary = format!("--{}", form.split_once("boundary=").unwrap().1);
        assert!(text.contains("name=\"purpose\"\r\n\r\nbatch\r\n"), "{text}");
        let file = text.split(&boundary).find(|part| part.contains("name=\"file\"")).unwrap();
        let content = file.split_once("\r\n\r\n").unwrap().1.trim_end();
        let id = format!("file-{}", self.files.len() + 1);
        self.files.insert(id.clone(), content.to_owned());
        (200, json!({"id": id, "object": "file", "purpose": "batch", "status": "processed"}).to_string())
    }

    fn content(&self, id: &str) -> Answer {
        let of = |prefix: &str| self.batches.iter().find(|batch| id == format!("{prefix}-{}", batch.id));
        if self.deleted.contains(id) {
            return not_found();
        }
        let lines: Vec<Value> = match (of("output"), of("error")) {
            (Some(batch), _) => {
                let answered = batch.parts().0.iter().filter(|(_, body)| !is_refused(body));
                answered.map(|(id, body)| line_of(id, 200, completion(body), Value::Null)).collect()
            }
            (_, Some(batch)) => {
                let (answered, left) = batch.parts();
                let refused = answered.iter().filter(|(_, body)| is_refused(body));
                let refusal = || json!({"error": {"message": "refused", "type": "invalid_request_error"}});
                let code = match batch.stage {
                    ProvidedStage::Cancelled => "batch_cancelled",
                    _ => "batch_expired",
                };
                let left = left.iter().map(|(id, _)| {
                    json!({"id": "batch_req", "custom_id": id, "response": null,
                        "error": {"code": code, "message": "not executed"}})
                });
                refused.map(|(id, _)| line_of(id, 400, refusal(), Value::Null)).chain(left).collect()
            }
            _ => return not_found(),
        };
        (200, jsonl(lines))
    }

    fn create_of_file(&mut self, text: &str) -> Answer {
        let asked: Value = serde_json::from_str(text).unwrap();
        let made_for = (&asked["endpoint"], &asked["completion_window"]);
        assert_eq!(made_for, (&"/v1/chat/completions".into(), &"24h".into()));
        let file = &self.files[asked["input_file_id"].as_str().unwrap()];
        let questions = file.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["method"], &line["url"]), (&"POST".into(), &asked["endpoint"]));
            (line["custom_id"].as_str().unwrap().to_owned(), line["body"].clone())
        });
        let questions = questions.collect();
        let input = asked["input_file_id"].as_str().map(str::to_owned);
        self.create(questions, asked["metadata"].clone(), input, openai)
    }

    fn create_of_messages(&mut self, text: &str) -> Answer {
        let asked: Value = serde_json::from_str(text).unwrap();
        let questions =
            asked["requests"].as_array().unwrap().iter().map(|request| {
                (request["custom_id"].as_str().unwrap().to_owned(), request["params"].clone())
            });
        self.create(questions.collect(), Value::Null, None, anthropic)
    }

    fn create(
        &mut self,
        questions: Vec<(String, Value)>,
        metadata: Value,
        input: Option<String>,
        shown: fn(&ProvidedBatch) -> Value,
    ) -> Answer {
        let creation = self.creations.pop_front();
        if let Some(Creation::Refused(status)) = creation {
            return refused(status, "refused");
        }
        let id = format!("batch_{}", self.batches.len() + 1);
        let batch = ProvidedBatch { id, stage: ProvidedStage::UnderWay, metadata, input, questions };
        let answer = shown(&batch).to_string();
        self.batches.push(batch);
        match creation {
            Some(_) => refused(500, "unheard"),
            None => (200, answer),
        }
    }

    fn list(&self) -> Answer {
        let data: Vec<Value> = self.batches.iter().rev().map(openai).collect();
        (200, json!({"object": "list", "data": data, "has_more": false}).to_string())
    }

    /// The batch of this id, unless it is deleted.
    fn place(&self, id: &str) -> Option<usize> {
        let place = self.batches.iter().position(|batch| batch.id == id);
        place.filter(|_| !self.deleted.contains(id))
    }

    fn show(&self, id: &str, shown: fn(&ProvidedBatch) -> Value) -> Answer {
        let batch = self.place(id).map(|place| &self.batches[place]);
        batch.map_or_else(not_found, |batch| (200, shown(batch).to_string()))
    }

    fn cancel(&mut self, id: &str, shown: fn(&ProvidedBatch) -> Value) -> Answer {
        let Some(place) = self.place(id) else { return not_found() };
        if let Some(status) = self.keeps {
            return refused(status, "it goes on");
        }
        let batch = &mut self.batches[place];
        if batch.has_ended() {
            return refused(409, "it has ended");
        }
        let slowly = self.cancels_slowly;
        batch.stage = if slowly { ProvidedStage::Cancelling } else { ProvidedStage::Cancelled };
        self.show(id, shown)
    }

    fn delete_file(&mut self, id: &str) -> Answer {
        let is_there = self.files.contains_key(id)
            || self.batches.iter().any(|batch| batch.stored().iter().any(|file| file == id));
        if is_there { self.delete(id, "file") } else { not_found() }
    }

    fn delete_batch(&mut self, id: &str) -> Answer {
        let Some(place) = self.place(id) else { return not_found() };
        if !self.batches[place].has_ended() {
            return refused(400, "it has not ended");
        }
        self.delete(id, "message_batch_deleted")
    }

    fn delete(&mut self, id: &str, kind: &str) -> Answer {
        if let Some(status) = self.keeps {
            return refused(status, "it stays");
        }
        if !self.deleted.insert(id.to_owned()) {
            return not_found();
        }
        (200, json!({"id": id, "object": kind, "type": kind, "deleted": true}).to_string())
    }

    fn results(&self, id: &str) -> Answer {
        let Some(place) = self.place(id) else { return not_found() };
        let batch = &self.batches[place];
        let (answered, left) = batch.parts();
        let answered = answered.iter().map(|(id, body)| {
            let result = if is_refused(body) {
                let error = json!({"type": "invalid_request_error", "message": "refused"});
                json!({"type": "errored", "error": {"type": "error", "error": error}})
            } else {
                json!({"type": "succeeded", "message": message(body)})
            };
            json!({"custom_id": id, "result": result})
        });
        let kind = if batch.stage == ProvidedStage::Cancelled { "canceled" } else { "expired" };
        let left = left.iter().map(|(id, _)| json!({"custom_id": id, "result": {"type": kind}}));
        (200, jsonl(answered.chain(left).collect()))
    }
}

/// A batch as OpenAI shows it.
fn openai(batch: &ProvidedBatch) -> Value {
    let status = match batch.stage {
        ProvidedStage::UnderWay => "in_progress",
        ProvidedStage::Ended => "completed",
        ProvidedStage::Expired => "expired",
        ProvidedStage::Cancelled => "cancelled",
        ProvidedStage::Cancelling => "cancelling",
    };
    let file = |kind: &str| batch.has_ended().then(|| format!("{kind}-{}", batch.id));
    json!({"id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions", "errors": null, "status": status,
        "completion_window": "24h", "input_file_id": batch.input, "output_file_id": file("output"),
        "error_file_id": file("error"), "metadata": batch.metadata,
        "request_counts": {"total": batch.questions.len(), "completed": 0, "failed": 0}})
}

/// A batch as Anthropic shows it.
fn anthropic(batch: &ProvidedBatch) -> Value {
    let status = match batch.stage {
        ProvidedStage::UnderWay => "in_progress",
        ProvidedStage::Cancelling => "canceling",
        _ => "ended",
    };
    json!({"id": batch.id, "type": "message_batch", "processing_status": status, "ended_at": null,
        // Nobody is to ask there.
        "results_url": "http://127.0.0.1:1/results"})
}

/// An answer of OpenAI's.
fn completion(body: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": last_message(body)}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
}

/// An answer of Anthropic's.
fn message(body: &Value) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
        "content": [{"type": "text", "text": last_message(body)}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 1}})
}

fn line_of(id: &str, status: u16, body: Value, error: Value) -> Value {
    json!({"id": "batch_req", "custom_id": id, "error": error,
        "response": {"status_code": status, "request_id": "r", "body": body}})
}

fn jsonl(lines: Vec<Value>) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn is_refused(body: &Value) -> bool {
    last_message(body).starts_with("refuse")
}

fn last_message(body: &Value) -> String {
    let content = &body["messages"].as_array().unwrap().last().unwrap()["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap().to_owned()
}
