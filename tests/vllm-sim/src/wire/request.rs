//! Requests for text. Unknown fields are ignored, as vLLM ignores them.

use domain::{Message, Role};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// What a client of `/v1/chat/completions` wants.
#[derive(Debug)]
pub(crate) struct Generation {
    /// The first served model when absent.
    pub(crate) model: Option<String>,
    pub(crate) messages: Vec<Message>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: Option<i64>,
    pub(crate) seed: i64,
    pub(crate) stop: Vec<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) n: i64,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<WireMessage>>,
    prompt: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    seed: Option<i64>,
    stop: Option<OneOrMany>,
    temperature: Option<f64>,
    n: Option<i64>,
    add_special_tokens: Option<bool>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage {
    role: String,
    content: Option<Content>,
}

/// A message's content: a text, or parts of which only those of type `text` can be simulated.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Generation {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body: Body = parse(body)?;
        let messages = body.messages.ok_or_else(|| missing("messages"))?;
        Ok(Self {
            model: body.model,
            messages: messages.into_iter().map(WireMessage::read).collect::<Result<_, _>>()?,
            stream: body.stream.unwrap_or(false),
            include_usage: body.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            seed: body.seed.unwrap_or(0),
            stop: match body.stop {
                None => Vec::new(),
                Some(OneOrMany::One(stop)) => vec![stop],
                Some(OneOrMany::Many(stops)) => stops,
            },
            temperature: body.temperature,
            n: body.n.unwrap_or(1),
        })
    }
}

impl WireMessage {
    fn read(self) -> Result<Message, ApiError> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => {
                return Err(ApiError::parameter("role", other, "The simulator does not know this role."));
            }
        };
        let content = match self.content {
            Some(Content::Text(text)) => text,
            Some(Content::Parts(parts)) => parts.into_iter().filter_map(|part| part.text).collect(),
            None => String::new(),
        };
        Ok(Message { role, content })
    }
}

/// A request to `/tokenize`: a prompt, or messages with the chat template applied.
#[derive(Debug)]
pub(crate) struct Tokenize {
    pub(crate) model: Option<String>,
    pub(crate) messages: Result<Vec<Message>, String>,
    /// Put the tokens that the model wants around a prompt; a chat template brings its own.
    pub(crate) framed: bool,
}

impl Tokenize {
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body: Body = parse(body)?;
        let messages = match (body.messages, body.prompt) {
            (Some(messages), _) => {
                Ok(messages.into_iter().map(WireMessage::read).collect::<Result<_, _>>()?)
            }
            (None, Some(prompt)) => Err(prompt),
            _ => return Err(missing("prompt")),
        };
        Ok(Self { model: body.model, messages, framed: body.add_special_tokens.unwrap_or(true) })
    }
}

pub(super) fn missing(field: &str) -> ApiError {
    ApiError::validation("missing", &format!("body.{field}"), "Field required", "<dict>")
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            let problem = error.to_string().replace('\'', "\"");
            ApiError::validation("value_error", "body", &problem, "<dict>")
        } else {
            ApiError::not_json(offset(body, error.line(), error.column()))
        }
    })
}

/// The byte at a line and column as serde_json counts them: lines from 1, columns in bytes and past the culprit.
fn offset(body: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        body.split_inclusive(|&byte| byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    before + column.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_as_text_parts_or_null() {
        let body = br#"{"model":"m","unknown":1,"messages":[{"role":"developer","content":"s"},
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
            {"role":"assistant","content":null}],"stop":"x","max_tokens":9}"#;
        let read = Generation::read(body).unwrap();
        let texts: Vec<_> =
            read.messages.iter().map(|message| (message.role, message.content.as_str())).collect();
        assert_eq!(texts, [(Role::System, "s"), (Role::User, "ab"), (Role::Assistant, "")]);
        assert_eq!((read.stop, read.max_tokens, read.n, read.seed), (vec!["x".to_owned()], Some(9), 1, 0));
    }

    #[test]
    fn broken_bodies_say_where() {
        let param = |body: &[u8]| Generation::read(body).unwrap_err().body["error"]["param"].clone();
        assert_eq!(param(b"{\"model\":}"), "body.9");
        assert_eq!(param(b"{\n\"model\":}"), "body.10");
        assert_eq!(param(b"{\"model\":\"m\"}"), "body.messages");
        assert_eq!(param(b"{\"messages\":7}"), "body");
    }
}
