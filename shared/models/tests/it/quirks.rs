//! What real servers answer that no document of their API says: every server of `quirks.jsonl` is asked one question with a system
//! message, and what it says is understood. The next server is a row.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use crate::support::request;
use domain::{FailureCause, FinishReason, Message};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use harness::canned_server::{CannedAnswer, CannedServer, StreamEnd};
use models::{ChatRequest, OpenAiCompatible, OpenAiConfig, RetryPolicy, complete_with_retry};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The model that is asked for, unless the row says otherwise.
const MODEL: &str = "tiny";

/// The text that every server answers in the end.
const TEXT: &str = "Paris 😀";

/// A seed of more than 32 bits.
const SEED: u64 = 5_368_709_120;

/// Bytes of a piece of a stream that is packed.
const PACKED_PIECE_BYTES: usize = 5;

/// A server, and what is right where it is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quirk {
    /// What is seen, and where.
    name: String,
    /// The model that is asked for.
    model: Option<String>,
    /// What it answers, in this order. All answers are asked for.
    answers: Vec<Answer>,
    /// How the question ends.
    end: QuirkEnd,
    /// How many calls it takes, corrected and repeated ones together.
    calls: usize,
    /// What this server wants of the fields of the last request: a value, none, one below a number, or a list of a length.
    #[serde(default)]
    wants: Map<String, Value>,
    /// What records say of how the last request was changed.
    #[serde(default)]
    noted: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QuirkEnd {
    /// With [`TEXT`].
    Answered,
    /// With what a filter of the provider let through.
    Filtered,
    /// Without an answer, for this cause.
    Failed(FailureCause),
}

/// An answer has one kind of content: events, pieces of a stream, or a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    status: Option<u16>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How the content is compressed.
    packed: Option<Packing>,
    events: Option<Vec<Event>>,
    stream: Option<Vec<Piece>>,
    /// Whether the connection is cut behind the stream.
    #[serde(default)]
    cut: bool,
    /// The text of a whole answer.
    said: Option<String>,
    json: Option<Value>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Packing {
    Gzip,
    Zlib,
}

impl Packing {
    fn pack(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(plain).unwrap();
                encoder.finish().unwrap()
            }
            Self::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(plain).unwrap();
                encoder.finish().unwrap()
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Event {
    /// As it stands.
    Text(String),
    /// A piece of an answer.
    Delta {
        delta: String,
        finish_reason: Option<String>,
    },
    /// A whole answer.
    Said {
        said: String,
    },
    Json {
        json: Value,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

fn whole(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({"id": "c", "object": "chat.completion", "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    .to_string()
}

impl Event {
    fn data(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Delta { delta, finish_reason } => {
                json!({"id": "c", "object": "chat.completion.chunk", "model": MODEL,
                    "choices": [{"index": 0, "delta": {"content": delta}, "finish_reason": finish_reason}]})
                .to_string()
            }
            Self::Said { said } => whole(said),
            Self::Json { json } => json.to_string(),
        }
    }
}

impl Answer {
    fn canned(&self) -> CannedAnswer {
        let mut answer = if let Some(events) = &self.events {
            let events: Vec<String> = events.iter().map(Event::data).collect();
            CannedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
        } else if let Some(stream) = &self.stream {
            let bytes = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone().into_bytes(),
                Piece::Bytes(bytes) => bytes.clone(),
            };
            let mut pieces: Vec<Vec<u8>> = stream.iter().map(bytes).collect();
            if let Some(packing) = self.packed {
                pieces =
                    packing.pack(&pieces.concat()).chunks(PACKED_PIECE_BYTES).map(<[u8]>::to_vec).collect();
            }
            CannedAnswer::stream(pieces, if self.cut { StreamEnd::Cut } else { StreamEnd::Proper })
        } else {
            let said = self.said.as_deref().map(whole);
            let text = said.or(self.json.as_ref().map(Value::to_string)).or(self.text.clone());
            let plain = text.map(String::into_bytes).or(self.bytes.clone()).expect("an answer has a content");
            let body = self.packed.map_or(plain.clone(), |packing| packing.pack(&plain));
            CannedAnswer::typed(self.kind.as_deref().unwrap_or("application/json"), &body)
        };
        if let Some(status) = self.status {
            answer = answer.with_status(status);
        }
        self.headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value))
    }
}

/// Whether a request is as a server wants it.
fn is_wanted(wants: &Map<String, Value>, body: &Value) -> bool {
    wants.iter().all(|(field, want)| match (&want["below"], &want["length"]) {
        (Value::Null, Value::Null) => body.get(field).unwrap_or(&Value::Null) == want,
        (below, Value::Null) => body[field].as_u64() < below.as_u64() && body[field].is_u64(),
        (_, length) => body[field].as_array().map(|list| list.len() as u64) == length.as_u64(),
    })
}

/// Asks the server of a row; what is wrong, in words.
async fn wrong_of(quirk: &Quirk) -> Option<String> {
    let server = CannedServer::start(quirk.answers.iter().map(Answer::canned).collect()).await;
    let model = quirk.model.as_deref().unwrap_or(MODEL);
    let model = OpenAiCompatible::new(OpenAiConfig::new(&server.url, model)).unwrap();
    let policy = RetryPolicy {
        delay_first: Duration::from_millis(1),
        delay_max: Duration::from_millis(1),
        retry_after_max: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let asked = request(vec![Message::system("Be brief."), Message::user("What is the capital of France?")]);
    let asked = ChatRequest { seed: Some(SEED), ..asked };
    let (reply, _) = complete_with_retry(&model, asked, &policy, || jiff::Timestamp::UNIX_EPOCH).await;
    let end = match &reply {
        Ok(reply) if reply.answer.finish_reason == Some(FinishReason::ContentFilter) => QuirkEnd::Filtered,
        Ok(reply) if reply.answer.text == TEXT => QuirkEnd::Answered,
        Ok(reply) => return Some(format!("answered {:?}", reply.answer.text)),
        Err(error) => QuirkEnd::Failed(error.cause),
    };
    let asked = server.asked();
    let calls = asked.iter().filter(|asked| asked.path.ends_with("/chat/completions")).count();
    let wants = asked.last().is_some_and(|last| is_wanted(&quirk.wants, &last.body));
    let is_noted = reply.as_ref().map_or(quirk.noted.is_empty(), |reply| reply.adapted == quirk.noted);
    let is_right = (end, calls, server.left(), wants && is_noted) == (quirk.end, quirk.calls, 0, true);
    (!is_right).then(|| {
        format!(
            "{end:?} after {calls} calls, {reply:?}, last request {:?}",
            asked.last().map(|last| &last.body)
        )
    })
}

#[tokio::test]
async fn every_quirk_is_understood() {
    let mut wrong = Vec::new();
    for line in include_str!("quirks.jsonl").lines() {
        let quirk: Quirk = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        wrong.extend(wrong_of(&quirk).await.map(|what| format!("{}: {what}", quirk.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
