//! What real servers answer that no document of their API says, a row each: [`all`]. One test goes over all of them
//! (`shared/models/tests/it/quirks.rs`), so that the next server is a row.

mod refusals;

use std::io::Write;

use domain::FailureCause;
use serde_json::{Value, json};

use crate::canned_server::{CannedAnswer, StreamEnd, sse};
use refusals::REFUSALS;

/// The model that is asked for, unless the row says otherwise.
pub const MODEL: &str = "tiny";

/// The text that every server of this table answers in the end.
pub const TEXT: &str = "Paris 😀";

/// A server, and what is right where it is asked one question with a system message.
pub struct Quirk {
    /// What is seen, and where.
    pub name: &'static str,
    /// The model that is asked for.
    pub model: &'static str,
    /// What it answers, in this order.
    pub answers: fn() -> Vec<CannedAnswer>,
    /// How the question ends.
    pub end: QuirkEnd,
    /// How many calls it takes, corrected and repeated ones together. All answers are asked for.
    pub calls: usize,
    /// Whether the last request is as this server wants it.
    pub wants: fn(&Value) -> bool,
    /// What records say of how the last request was changed.
    pub noted: &'static [&'static str],
}

/// How a question ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuirkEnd {
    /// With [`TEXT`].
    Answered,
    /// With what a filter of the provider let through.
    Filtered,
    /// Without an answer, for this cause.
    Failed(FailureCause),
}

const ROW: Quirk = Quirk {
    name: "",
    model: MODEL,
    answers: Vec::new,
    end: QuirkEnd::Answered,
    calls: 1,
    wants: |_| true,
    noted: &[],
};

/// A piece of a stream.
pub fn delta(text: &str, reason: &Value) -> String {
    json!({"id": "c", "object": "chat.completion.chunk", "model": MODEL,
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]})
    .to_string()
}

/// A whole answer with this message, and these fields beside it.
fn whole_with(message: &Value, beside: &Value) -> Value {
    let mut body = json!({"id": "c", "object": "chat.completion", "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    if let (Some(body), Some(beside)) = (body.as_object_mut(), beside.as_object()) {
        body.extend(beside.clone());
    }
    body
}

fn whole() -> String {
    whole_with(&json!({"role": "assistant", "content": TEXT}), &json!({})).to_string()
}

fn good() -> CannedAnswer {
    CannedAnswer::json(200, &whole())
}

/// A whole answer with this text.
fn said(text: &str) -> CannedAnswer {
    CannedAnswer::json(
        200,
        &whole_with(&json!({"role": "assistant", "content": text}), &json!({})).to_string(),
    )
}

/// A whole answer of a model of this name.
fn named(model: &str) -> CannedAnswer {
    let message = json!({"role": "assistant", "content": TEXT});
    CannedAnswer::json(200, &whole_with(&message, &json!({"model": model})).to_string())
}

fn usage(usage: &Value) -> String {
    json!({"id": "c", "model": MODEL, "choices": [], "usage": usage}).to_string()
}

/// A stream of [`TEXT`] with this event before `[DONE]`.
fn stream_with(last: &str) -> CannedAnswer {
    CannedAnswer::events(&[
        &delta("", &Value::Null),
        &delta(TEXT, &Value::Null),
        &delta("", &json!("stop")),
        last,
        "[DONE]",
    ])
}

fn stream() -> String {
    [delta(TEXT, &Value::Null), delta("", &json!("stop")), "[DONE]".to_owned()]
        .map(|event| String::from_utf8(sse(&event)).unwrap())
        .concat()
}

/// This text with this type.
fn typed(kind: &str, text: &str) -> CannedAnswer {
    CannedAnswer::typed(kind, text.as_bytes())
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zlibbed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn refused(status: u16, message: &str) -> CannedAnswer {
    CannedAnswer::json(
        status,
        &json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string(),
    )
}

/// The table: of answers, and of refusals.
pub fn all() -> impl Iterator<Item = &'static Quirk> {
    ANSWERS.iter().chain(REFUSALS)
}

const ANSWERS: &[Quirk] = &[
    // What stands beside an answer.
    Quirk {
        name: "counts of tokens are fractions",
        answers: || vec![stream_with(&usage(&json!({"prompt_tokens": 12.0, "completion_tokens": 3.0})))],
        ..ROW
    },
    Quirk {
        name: "counts of tokens are texts",
        answers: || vec![stream_with(&usage(&json!({"prompt_tokens": "12", "completion_tokens": "3"})))],
        ..ROW
    },
    Quirk {
        name: "counts of tokens are negative, and their details a list",
        answers: || {
            vec![stream_with(&usage(
                &json!({"prompt_tokens": -1, "completion_tokens": 3, "prompt_tokens_details": []}),
            ))]
        },
        ..ROW
    },
    Quirk {
        name: "there is another thing than an object under `usage`",
        answers: || vec![stream_with(&usage(&json!([1, "2"])))],
        ..ROW
    },
    Quirk {
        name: "a key is there twice (NVIDIA)",
        answers: || {
            let text = json!(TEXT).to_string();
            let body = format!(
                r#"{{"model":"tiny","choices":[{{"message":{{"reasoning_content":"a","content":"b","content":{text},"reasoning_content":"c"}},"finish_reason":"stop"}}]}}"#
            );
            vec![CannedAnswer::json(200, &body)]
        },
        ..ROW
    },
    Quirk {
        name: "an empty error beside an answer",
        answers: || {
            let message = json!({"role": "assistant", "content": TEXT});
            vec![CannedAnswer::json(
                200,
                &whole_with(&message, &json!({"error": "", "message": null})).to_string(),
            )]
        },
        ..ROW
    },
    Quirk {
        name: "a character is cut between two events (JavaScript proxies)",
        answers: || {
            let half = |half: &str| {
                format!(
                    r#"{{"model":"tiny","choices":[{{"delta":{{"content":"{half}"}},"finish_reason":null}}]}}"#
                )
            };
            let (first, second) = (half("Paris \\ud83d"), half("\\ude00"));
            vec![CannedAnswer::events(&[&first, &second, &delta("", &json!("stop")), "[DONE]"])]
        },
        ..ROW
    },
    Quirk {
        name: "a character is cut between two events, within its bytes (byte-level servers)",
        answers: || {
            let (first, second) = TEXT.as_bytes().split_at(TEXT.len() - 2);
            let event = |bytes: &[u8]| {
                let (before, after) = (
                    br#"data: {"model":"tiny","choices":[{"delta":{"content":""#.as_slice(),
                    b"\"},\"finish_reason\":null}]}\n\n".as_slice(),
                );
                [before, bytes, after].concat()
            };
            let end = sse(&delta("", &json!("stop")));
            vec![CannedAnswer::stream(vec![event(first), event(second), end], StreamEnd::Proper)]
        },
        ..ROW
    },
    Quirk {
        name: "numbers that JSON does not have (servers in Python)",
        answers: || {
            let usage = r#""usage":{"prompt_tokens":1e999,"completion_tokens":NaN}"#;
            let choice = format!(
                r#"{{"message":{{"content":{}}},"finish_reason":"stop","logprobs":[NaN,-Infinity]}}"#,
                json!(TEXT)
            );
            vec![CannedAnswer::json(200, &format!(r#"{{"model":"tiny","choices":[{choice}],{usage}}}"#))]
        },
        ..ROW
    },
    Quirk {
        name: "events that are no objects keep a stream alive (gateways)",
        answers: || {
            let end = delta("", &json!("stop"));
            vec![CannedAnswer::events(&[
                "ping",
                "\"alive\"",
                "null",
                "1",
                "[]",
                &delta(TEXT, &Value::Null),
                &end,
                "[DONE]",
            ])]
        },
        ..ROW
    },
    Quirk {
        name: "the last line of a stream has no end (proxies that trim)",
        answers: || {
            let last = [sse(&delta(TEXT, &Value::Null)), sse(&delta("", &json!("stop")))].concat();
            vec![CannedAnswer::stream(vec![last.trim_ascii_end().to_vec()], StreamEnd::Proper)]
        },
        ..ROW
    },
    Quirk {
        name: "a stream comes as application/json",
        answers: || vec![typed("application/json", &stream())],
        ..ROW
    },
    Quirk {
        name: "a whole answer comes as text/event-stream",
        answers: || vec![typed("text/event-stream", &format!("\n{}", whole()))],
        ..ROW
    },
    Quirk {
        name: "a whole answer is the one event of a stream",
        answers: || vec![CannedAnswer::events(&[&whole(), "[DONE]"])],
        ..ROW
    },
    Quirk {
        name: "a whole answer is compressed unasked (gateways)",
        answers: || {
            vec![
                CannedAnswer::typed("application/json", &gzipped(&whole()))
                    .header("content-encoding", "gzip"),
            ]
        },
        ..ROW
    },
    Quirk {
        name: "a stream is compressed unasked (gateways)",
        answers: || {
            let chunks = gzipped(&stream()).chunks(5).map(<[u8]>::to_vec).collect();
            vec![CannedAnswer::stream(chunks, StreamEnd::Proper).header("content-encoding", "gzip")]
        },
        ..ROW
    },
    Quirk {
        name: "an answer is compressed, and no header says so",
        answers: || vec![CannedAnswer::typed("application/json", &gzipped(&whole()))],
        ..ROW
    },
    Quirk {
        name: "a header says that an answer is compressed, and it is not (gateways that unpack)",
        answers: || vec![good().header("content-encoding", "gzip")],
        ..ROW
    },
    Quirk {
        name: "the name of the compression is none (aws-chunked, utf-8)",
        answers: || vec![good().header("content-encoding", "aws-chunked")],
        ..ROW
    },
    Quirk {
        name: "an answer cannot be decompressed, in each call",
        answers: || {
            let broken = || CannedAnswer::typed("application/json", b"\x1f\x8b and nothing of it is so");
            (0..2).map(|_| broken().header("content-encoding", "gzip")).collect()
        },
        end: QuirkEnd::Failed(FailureCause::Server),
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "an answer is compressed in the other way",
        answers: || {
            vec![
                CannedAnswer::typed("application/json", &zlibbed(&whole()))
                    .header("content-encoding", "deflate"),
            ]
        },
        ..ROW
    },
    Quirk {
        name: "an answer is compressed in a way that nobody reads here",
        answers: || vec![CannedAnswer::typed("application/json", b"\xff").header("content-encoding", "dcb")],
        end: QuirkEnd::Failed(FailureCause::Server),
        ..ROW
    },
    Quirk {
        name: "comments, events of other names, odd line ends (OpenRouter, agents)",
        answers: || {
            let text = format!(
                ": OPENROUTER PROCESSING\r\n\r\nevent: tool.progress\ndata: {{\"message\":\"running\"}}\n\n\
                 event: ping\ndata: now\n\nevent: chunk\r\ndata:{}\r\n\r\ndata: {}\n\ndata: [DONE] \n\n",
                delta(TEXT, &Value::Null),
                delta("", &json!("stop"))
            );
            vec![typed("text/event-stream", &text)]
        },
        ..ROW
    },
    Quirk {
        name: "what cannot be read comes in the same words (any server that is set up wrongly)",
        answers: || (0..2).map(|_| typed("text/html", "<html>Sign in</html>")).collect(),
        end: QuirkEnd::Failed(FailureCause::Server),
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "the connection breaks behind a whole answer (small servers)",
        answers: || vec![CannedAnswer::stream(vec![whole().into_bytes()], StreamEnd::Cut)],
        ..ROW
    },
    // The end of an answer.
    Quirk {
        name: "the reason of the end is empty in every piece, and the connection breaks (Ollama)",
        answers: || {
            let half = sse(&delta("Lon", &json!("")));
            vec![CannedAnswer::stream(vec![half.clone(), half], StreamEnd::Cut), good()]
        },
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "the reason of the end is a word for nothing in every piece, and the connection breaks (DashScope)",
        answers: || {
            let half = sse(&delta("Lon", &json!("null")));
            vec![CannedAnswer::stream(vec![half.clone(), half], StreamEnd::Cut), good()]
        },
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a stream ends with [DONE] and no reason (proxies)",
        answers: || vec![CannedAnswer::events(&[&delta(TEXT, &Value::Null), "[DONE]"])],
        ..ROW
    },
    Quirk {
        name: "a stream ends with its counts of tokens alone",
        answers: || {
            let counts = usage(&json!({"prompt_tokens": 1, "completion_tokens": 1}));
            vec![CannedAnswer::events(&[&delta(TEXT, &Value::Null), &counts])]
        },
        ..ROW
    },
    Quirk {
        name: "a stream just ends",
        answers: || vec![CannedAnswer::events(&[&delta("Par", &Value::Null)]), good()],
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a stream just ends, in each call at the same place",
        answers: || (0..2).map(|_| CannedAnswer::events(&[&delta("Par", &Value::Null)])).collect(),
        end: QuirkEnd::Failed(FailureCause::Aborted),
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a server that is restarted aborts several generations at the same place (vLLM)",
        answers: || {
            let half = json!({"role": "assistant", "content": "Par"});
            let aborted = json!({"choices": [{"index": 0, "message": half, "finish_reason": "abort"}]});
            let streamed =
                || CannedAnswer::events(&[&delta("Par", &Value::Null), &delta("", &json!("abort"))]);
            let whole = || CannedAnswer::json(200, &aborted.to_string());
            vec![streamed(), streamed(), whole(), whole(), good()]
        },
        calls: 5,
        ..ROW
    },
    Quirk {
        name: "a whole answer has no choice",
        answers: || vec![CannedAnswer::json(200, r#"{"id":"c","model":"tiny","choices":[]}"#), good()],
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a stream has no choice",
        answers: || vec![CannedAnswer::events(&["[DONE]"]), good()],
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a stream holds an error in a line of that name (llama.cpp)",
        answers: || {
            let text = format!(
                "data: {}\n\nerror: {{\"code\":503,\"message\":\"loading model\",\"type\":\"unavailable_error\"}}\n\n",
                delta("Par", &Value::Null)
            );
            vec![typed("text/event-stream", &text), good()]
        },
        calls: 2,
        ..ROW
    },
    Quirk {
        name: "a choice holds the error (OpenRouter)",
        answers: || {
            let failed = json!({"model": MODEL, "choices": [{"delta": {"content": ""}, "finish_reason": "error",
                "error": {"code": 502, "message": "Provider disconnected"}}]});
            vec![CannedAnswer::events(&[&delta("Par", &Value::Null), &failed.to_string()]), good()]
        },
        calls: 2,
        ..ROW
    },
    // The name in the answer.
    Quirk {
        name: "the list has a path that the answer lacks (Google)",
        model: "models/gemini-2.5-flash",
        answers: || vec![named("gemini-2.5-flash")],
        ..ROW
    },
    Quirk {
        name: "a variant answers as its model (OpenRouter)",
        model: "openai/gpt-4o-mini:online",
        answers: || vec![named("openai/gpt-4o-mini")],
        ..ROW
    },
    Quirk {
        name: "a provider answers by its own path (Hugging Face's router, Fireworks)",
        model: "meta-llama/Llama-3.1-8B-Instruct:fireworks-ai",
        answers: || vec![named("accounts/fireworks/models/llama-v3p1-8b-instruct")],
        ..ROW
    },
    Quirk {
        name: "the only model is asked for by a name of the server's (TGI)",
        model: "tgi",
        answers: || vec![named("meta-llama/Llama-3.1-8B-Instruct")],
        ..ROW
    },
    Quirk {
        name: "an alias answers as what is behind it (LiteLLM)",
        model: "conversation.voice",
        // The second answer is to the question for the list of models.
        answers: || vec![named("gpt-4.1-2025-04-14"), CannedAnswer::json(404, "{}")],
        end: QuirkEnd::Failed(FailureCause::WrongModel),
        ..ROW
    },
    // Reasoning in the answer.
    Quirk {
        name: "channels (gpt-oss)",
        answers: || {
            vec![said(&format!(
                "<|channel|>analysis<|message|>London? No.<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}<|return|>"
            ))]
        },
        ..ROW
    },
    Quirk { name: "Mistral's markers", answers: || vec![said(&format!("[THINK]No.[/THINK]{TEXT}"))], ..ROW },
    Quirk {
        name: "Cohere's markers",
        answers: || {
            vec![said(&format!(
                "<|START_THINKING|>No.<|END_THINKING|><|START_RESPONSE|>{TEXT}<|END_RESPONSE|>"
            ))]
        },
        ..ROW
    },
];

/// What a server answers where its list of models is asked for.
pub struct ListQuirk {
    /// What is seen, and where.
    pub name: &'static str,
    pub status: u16,
    /// The type of the body.
    pub kind: &'static str,
    pub body: &'static str,
    /// Whether [`MODEL`] can be found in it.
    pub names_it: bool,
}

const LIST: ListQuirk =
    ListQuirk { name: "", status: 200, kind: "application/json", body: "", names_it: false };

/// The table of lists. All of these servers chat with [`MODEL`].
pub const LISTS: &[ListQuirk] = &[
    ListQuirk { name: "bare (Together)", body: r#"[{"id": "tiny"}]"#, names_it: true, ..LIST },
    ListQuirk {
        name: "with a context of -1 (gateways)",
        body: r#"{"data": [{"id": "tiny", "max_model_len": -1}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk {
        name: "with tags (Ollama)",
        body: r#"{"models": [{"name": "tiny:latest"}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk {
        name: "with paths (Gemini)",
        body: r#"{"data": [{"id": "models/tiny"}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk { name: "of another name (gateways)", body: r#"{"data": [{"id": "upstream-large"}]}"#, ..LIST },
    ListQuirk { name: "empty", body: r#"{"data": []}"#, ..LIST },
    ListQuirk { name: "refused to this key", status: 401, body: r#"{"error": {"message": "no"}}"#, ..LIST },
    ListQuirk { name: "not there", status: 404, body: r#"{"detail": "Not Found"}"#, ..LIST },
    ListQuirk { name: "broken (transformers serve)", status: 500, body: "Internal Server Error", ..LIST },
    ListQuirk { name: "of a gateway that is full", status: 503, body: "no healthy upstream", ..LIST },
    ListQuirk { name: "a page for browsers", kind: "text/html", body: "<html>hello</html>", ..LIST },
];
