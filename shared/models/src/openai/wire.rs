//! The JSON of requests of OpenAI's chat completions API, of its list of models, and of the vLLM routes beside it. What answers
//! it says is in [`said`](super::said).

use domain::{Message, Sampling};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::OpenAiConfig;
use super::adapted::RequestForm;
use crate::chat::ChatRequest;

/// Body of `POST /v1/chat/completions`.
#[derive(Serialize)]
pub(super) struct ChatBody<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    /// With the token limit under its old name.
    #[serde(flatten)]
    sampling: Sampling,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(flatten)]
    extra: &'a serde_json::Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    /// Without it, a stream does not report token counts.
    include_usage: bool,
}

impl<'a> ChatBody<'a> {
    pub(super) fn new(
        config: &'a OpenAiConfig,
        request: &'a ChatRequest,
        messages: &'a [Message],
        max_tokens: u32,
        form: &RequestForm,
    ) -> Self {
        let RequestForm { completion_tokens, fields, .. } = *form;
        let stream = config.spec.streams() && !fields.lacks("stream");
        let asked = request.sampling.clone();
        Self {
            model: config.spec.requested(),
            messages,
            stream,
            stream_options: (stream && !fields.lacks("stream_options"))
                .then_some(StreamOptions { include_usage: true }),
            sampling: Sampling {
                temperature: asked.temperature.filter(|_| !fields.lacks("temperature")),
                top_p: asked.top_p.filter(|_| !fields.lacks("top_p")),
                max_tokens: (!completion_tokens).then_some(max_tokens),
                ..asked
            },
            max_completion_tokens: completion_tokens.then_some(max_tokens),
            seed: config.seed(request).and_then(|seed| fields.seed(seed)),
            extra: &config.spec.request.extra_body,
        }
    }

    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        // Room for the texts, some escapes, and the fields: one allocation in nearly every call.
        let texts: usize = self.messages.iter().map(|message| message.content.len() + 48).sum();
        let mut bytes = Vec::with_capacity(texts + texts / 8 + 512);
        serde_json::to_writer(&mut bytes, self)?;
        Ok(bytes)
    }
}

/// Answer of `GET /v1/models`: a list, under `data` or `models` or bare. Entries of another form are left out.
pub(super) struct ModelList {
    pub(super) data: Vec<ServedModel>,
}

impl<'de> Deserialize<'de> for ModelList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = match Value::deserialize(deserializer)? {
            Value::Array(entries) => entries,
            Value::Object(mut fields) => {
                let listed = ["data", "models"].into_iter().find_map(|name| fields.remove(name));
                match listed.ok_or_else(|| Error::missing_field("data"))? {
                    Value::Array(entries) => entries,
                    other => return Err(Error::custom(format_args!("`data` is {other}, and no list"))),
                }
            }
            _ => return Err(Error::custom("it is no list")),
        };
        Ok(Self { data: entries.iter().filter_map(ServedModel::of).collect() })
    }
}

/// A model that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedModel {
    /// The name to ask for.
    pub id: String,
    /// What vLLM loaded under that name: a repository or a folder.
    pub root: Option<String>,
    /// The context in tokens, prompt and answer together.
    pub max_model_len: Option<u32>,
}

/// What servers call the context in their lists of models: vLLM and SGLang, Together and OpenRouter, LM Studio, Mistral, Groq.
const CONTEXTS: [&str; 5] =
    ["max_model_len", "context_length", "loaded_context_length", "max_context_length", "context_window"];

/// The same in what llama.cpp says of the model's file: the context as served, where it tells that, or as trained.
const CONTEXTS_OF_FILE: [&str; 2] = ["n_ctx", "n_ctx_train"];

impl ServedModel {
    fn of(entry: &Value) -> Option<Self> {
        let word = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let number =
            |of: &Value, name: &str| u32::try_from(of.get(name)?.as_u64()?).ok().filter(|tokens| *tokens > 0);
        let id = word("id").or_else(|| word("name")).or_else(|| entry.as_str().map(str::to_owned))?;
        let of_file = || CONTEXTS_OF_FILE.iter().find_map(|name| number(entry.get("meta")?, name));
        let max_model_len = CONTEXTS.iter().find_map(|name| number(entry, name)).or_else(of_file);
        Some(Self { id, root: word("root"), max_model_len })
    }
}

/// Body of vLLM's `POST /tokenize`.
#[derive(Serialize)]
pub(super) struct TokenizeRequest<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Message],
}

/// Its answer, without the tokens themselves.
#[derive(Deserialize)]
pub(super) struct TokenizeReply {
    pub(super) count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_listed_in_many_ways() {
        let model = |context| ServedModel { id: "m".into(), root: None, max_model_len: context };
        for (list, context) in [
            (r#"{"data":[{"id":"m","max_model_len":8192}]}"#, Some(8192)),
            (r#"[{"id":"m","object":"model","context_length":8192}]"#, Some(8192)),
            (r#"{"models":[{"name":"m"}]}"#, None),
            (r#"{"data":[{"id":"m","meta":{"n_ctx":0,"n_ctx_train":8192,"n_embd":64}}]}"#, Some(8192)),
            (r#"{"data":[{"id":"m","max_model_len":-1,"root":7},{"no":1}]}"#, None),
            (r#"["m"]"#, None),
        ] {
            let read: ModelList = serde_json::from_str(list).unwrap();
            assert_eq!(read.data, [model(context)], "{list}");
        }
        for no_list in ["{}", r#"{"data":{}}"#, "7", "<html>"] {
            assert!(serde_json::from_str::<ModelList>(no_list).is_err(), "{no_list}");
        }
    }
}
