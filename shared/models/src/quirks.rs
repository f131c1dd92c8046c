//! What servers say in words of their own, and what is done about it: one table for each thing that can be done. The next
//! server is a row. Texts are in lower case; those of a stand-in of each server are in `harness::quirks`.

use std::time::Duration;

use jiff::Timestamp;

use crate::rates;

/// A correction of the request that the refusal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The model has no system role, or requires strict alternation.
    FoldRoles,
    /// The token limit is called `max_completion_tokens`.
    CompletionTokens,
    /// Prompt and answer together exceed the context; the prompt alone does not, as far as known.
    FewerTokens {
        /// The context in tokens.
        context: u32,
        /// The prompt in tokens, if the server said so exactly.
        prompt: Option<u32>,
    },
    /// None: a filter of the provider withheld the answer, which is an answer, too.
    Withheld,
    /// The server broke off before it said anything. A seed beyond its numbers has this end at some (cyllama).
    Mute,
    /// The model generates at most so many tokens.
    AtMost(u32),
    /// A field that the server does not take as it is.
    Field {
        /// Its number in [`FIELDS`].
        field: usize,
        /// How many of its steps are to be taken at least.
        steps: usize,
    },
}

/// A field of a request that some servers refuse.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// What is done the first time it is refused, the second time, and so on, in the words of records. With the last step it is
    /// left out.
    pub(crate) steps: &'static [&'static str],
    /// Whether a refusal must say that the field is not supported. Of a field that the configuration sets, a value may be
    /// wrong, which a person has to mend.
    by_words: bool,
}

/// The fields that can do without, in the order of [`FieldUse`](crate::openai).
pub(crate) const FIELDS: [Field; 5] = [
    Field { name: "seed", steps: &["seed in 31 bits", "without seed"], by_words: false },
    Field { name: "stream_options", steps: &["without stream_options"], by_words: false },
    Field { name: "temperature", steps: &["without temperature"], by_words: true },
    Field { name: "top_p", steps: &["without top_p"], by_words: true },
    // The last one, because refusals of options name it beside them.
    Field { name: "stream", steps: &["without stream"], by_words: true },
];

/// Words about a field that a server does not know or take at all.
const UNSUPPORTED: &[&str] = &[
    "extra_forbidden",
    "extra inputs",
    "not permitted",
    "unsupported",
    "not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "only the default",
    "cannot find field",
    "cannot both be specified",
    "not allowed",
    "deprecated for this model",
    "allowed for this model",
];

/// Words about a number that is too large for the server, where a smaller one may do.
const TOO_LARGE: &[&str] = &[
    "less_than",
    "less than",
    "int32",
    "i32",
    "u32",
    "range",
    "between",
    "too large",
    "integer",
    "overflow",
];

impl Field {
    /// The step to begin with: a field that is not known at all is not sent in another form.
    fn first(&self, text: &str) -> usize {
        let is_unknown = UNSUPPORTED.iter().any(|words| text.contains(words));
        let is_large = TOO_LARGE.iter().any(|words| text.contains(words));
        if self.steps.len() > 1 && (is_unknown || !is_large) { self.steps.len() } else { 1 }
    }
}

/// Which field a refusal is about, by its number in [`FIELDS`], and how many of its steps are to be taken at least.
pub(crate) fn refused_field(text: &str) -> Option<(usize, usize)> {
    let places = places_in(text);
    let text_of_names = if places.is_empty() { text } else { &places };
    let is_refused = |field: &&Field| {
        names(text_of_names, field.name)
            && (!field.by_words || UNSUPPORTED.iter().any(|words| text.contains(words)))
    };
    let at = FIELDS.iter().position(|field| is_refused(&field))?;
    Some((at, FIELDS[at].first(text)))
}

/// What a refusal asks for that comes with the status of a server's fault. It must name a field and say what is wrong with it: a
/// fault may quote anything.
pub(crate) fn remedy_of_fault(text: &str) -> Option<Remedy> {
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    if let Some(remedy) = most_tokens(text) {
        return Some(remedy);
    }
    match refused_field(text) {
        Some((field, steps)) if says(UNSUPPORTED) || says(TOO_LARGE) => Some(Remedy::Field { field, steps }),
        None if refuses_max_tokens(text) => Some(Remedy::CompletionTokens),
        _ => None,
    }
}

/// The places that validators of Python name: `"loc":["body","seed"]`, or with the quotes and brackets of Python. Beside them may
/// stand the whole request.
fn places_in(text: &str) -> String {
    let mut places = String::new();
    for mark in ["\"loc\"", "'loc'"] {
        for part in text.split(mark).skip(1) {
            let inside = part.trim_start_matches([':', ' ', '[', '(']);
            places.push_str(&inside[..inside.find([']', ')']).unwrap_or(inside.len())]);
            places.push(' ');
        }
    }
    places
}

/// Whether a text holds a name as a word.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// Texts about roles: the model has no system role, or wants them to alternate.
pub(crate) const ROLES: &[&str] = &[
    "roles must alternate",
    "only user and assistant roles are supported",
    "only user, assistant and tool roles are supported",
    "after the optional system message",
    "system role not supported",
    "system role is not supported",
    "does not support 'system'",
    "input should be 'user' or 'assistant'",
    "permitted: 'user', 'assistant'",
    "system messages are not supported",
    "system message is not supported",
    "system instruction is not supported",
    "role 'system' is not supported",
    "does not support system",
    "doesn't support system",
    "developer instruction is not enabled",
    "must start with a user",
    "first message must be from the user",
    "unexpected role",
    "invalid role: system",
    "unknown role: system",
];

/// Texts about a token limit beyond what the model generates at once, with the number behind them.
const TOKEN_LIMITS: &[&str] = &[
    "model limit of ",
    "(inclusive) to ",
    "supports at most ",
    "less than or equal to ",
    "should be at most ",
    "must be <= ",
    "cannot exceed ",
    "no more than ",
    "must be at most ",
    "should be [1, ",
    "is [1, ",
    "maximum value is ",
    "maximum allowed number of output tokens for ",
];

/// What stands behind the number.
const AFTER_TOKEN_LIMIT: &[&str] = &[", which is the maximum"];

/// How many tokens an answer may have at most, where a refusal says so.
pub(crate) fn most_tokens(text: &str) -> Option<Remedy> {
    let is_about =
        ["max_tokens", "max_completion_tokens", "max_new_tokens", "maxoutputtokens", "maximum tokens"]
            .iter()
            .any(|name| names(text, name));
    let before = TOKEN_LIMITS.iter().find_map(|mark| number_after(text, mark));
    let number = before.or_else(|| AFTER_TOKEN_LIMIT.iter().find_map(|mark| number_before(text, mark)))?;
    let is_beyond = text.contains(&format!("{number} (exclusive)"));
    let most = number.saturating_sub(u32::from(is_beyond));
    (is_about && most > 0).then_some(Remedy::AtMost(most))
}

/// Whether the old name of the token limit is not known.
pub(crate) fn refuses_max_tokens(text: &str) -> bool {
    let places = places_in(text);
    names(if places.is_empty() { text } else { &places }, "max_tokens")
        && UNSUPPORTED.iter().any(|words| text.contains(words))
}

/// Codes, types and texts of refusals to an account without money, which say nothing else.
pub(crate) const POOR: &[&str] = &["insufficient_quota", "billing_error", "credit balance", "usage limits"];

/// Other texts about an account without money.
pub(crate) const NO_MONEY: &[&str] = &[
    "exceeded your current quota",
    "insufficient balance",
    "insufficient_quota",
    "insufficient credits",
    "insufficient funds",
    "billing hard limit",
    "budget has been exceeded",
    "quota exhausted",
    "requires more credits",
];

/// Texts about a limit of a day.
pub(crate) const PER_DAY: &[&str] =
    &["perday", "per day", "per-day", "/day", "daily", "(rpd)", "(tpd)", "per month", "monthly"];

/// Texts about a limit of a minute or less.
pub(crate) const PER_MINUTE: &[&str] = &[
    "perminute",
    "per-minute",
    "per min",
    "/min",
    "(rpm)",
    "(tpm)",
    "per second",
    "persecond",
    "per-second",
];

/// Texts after which servers say how long to wait.
const WAITS: &[&str] = &[
    "\"retrydelay\":\"",
    "\"retrydelay\": \"",
    "retry in ",
    "try again in ",
    "retry after ",
    "try again after ",
];

/// What stands before the moment at which a limit is reset, where a gateway repeats headers in the body (OpenRouter).
const RESET: &str = "\"x-ratelimit-reset\":";

/// How long to wait, where a refusal says so in its body.
pub(crate) fn wait(text: &str, now: Timestamp) -> Option<Duration> {
    let reset = text.split_once(RESET).and_then(|(_, rest)| {
        let rest = rest.strip_prefix(' ').unwrap_or(rest).trim_start_matches('"');
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rates::until(&rest[..end], now)
    });
    if reset.is_some() {
        return reset;
    }
    WAITS.iter().find_map(|mark| {
        let rest = &text[text.find(mark)? + mark.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
        let (number, unit) = (rest[..end].trim_end_matches('.'), rest[end..].trim_start());
        // "20 seconds" beside "20s".
        let plain = number
            .parse::<f64>()
            .ok()
            .map(|number| if unit.starts_with("min") { number * 60.0 } else { number });
        match plain {
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => rates::duration(number),
        }
    })
}

/// Texts about a key that is not right, with a status of a request that is not.
pub(crate) const WRONG_KEY: &[&str] = &[
    "incorrect api key",
    "invalid api key",
    "api key not valid",
    "api key not found",
    "invalid_api_key",
    "api_key_invalid",
    "api_key_service_blocked",
];

/// Texts about a model that is not there: of OpenAI, LiteLLM, OpenRouter, Azure, Google.
pub(crate) const NO_MODEL: &[&str] = &[
    "model_not_found",
    "invalid model name",
    "not a valid model id",
    "no endpoints found for",
    "deploymentnotfound",
    "requested entity was not found",
];

/// Texts about a conversation that is too long.
pub(crate) const CONTEXT: &[&str] = &[
    // vLLM, OpenAI.
    "maximum context length",
    "context length is only",
    "maximum model length",
    "max_model_len",
    "but the prompt contains",
    // llama.cpp.
    "exceeds the available context size",
    "context window",
    "too large to process",
    "context shift is disabled",
    // SGLang.
    "longer than the model's context length",
    "maximum allowed input length",
    "exceeds the maximum allowed length",
    // NVIDIA.
    "exceeds maximum allowed token size",
    // TGI.
    "`inputs` tokens + `max_new_tokens` must be",
    "`inputs` must have less than",
    // LM Studio.
    "context the overflows",
    "context overflow",
    "loaded with context length",
    "reached context length",
    "greater than the context length",
    // Ollama.
    "exceeds the context length",
    "exceeds context length",
    // Anthropic, Fireworks, Bedrock, xAI, Google, Groq, Mistral.
    "prompt is too long",
    "exceed context limit",
    "input is too long",
    "maximum prompt length",
    "maximum number of tokens allowed",
    "reduce the length of the messages",
    "too large for model with",
];

/// What stands before the length of the context.
const BEFORE_CONTEXT: &[&str] = &[
    "maximum context length is ",
    "maximum context length of ",
    "maximum context length: ",
    "context length is only ",
    "context length of only ",
    "context length (",
    "max_model_len=",
    "model length of ",
    "\"n_ctx\":",
    "available context size (",
    "`max_new_tokens` must be <= ",
    "must have less than ",
    "maximum prompt length is ",
    "maximum number of tokens allowed (",
    " tokens > ",
];

/// What stands after it.
const AFTER_CONTEXT: &[&str] = &[" maximum context length"];

/// What stands before the length of the prompt.
const BEFORE_PROMPT: &[&str] = &[
    "prompt (length ",
    "\"n_prompt_tokens\":",
    "request (",
    "request contains ",
    "keep the first ",
    "token count (",
    "prompt is too long: ",
];

/// What stands after it.
const AFTER_PROMPT: &[&str] = &[
    " in the messages",
    " input tokens",
    " tokens from the input messages",
    " of text input",
    " `inputs` tokens",
    " tokens) is longer",
];

/// The context and, if it is exact, the prompt's length, from a server's refusal in lower case.
pub(crate) fn context_numbers(text: &str) -> Option<(u32, Option<u32>)> {
    let find = |before: &[&str], after: &[&str]| {
        let behind = before.iter().find_map(|mark| number_after(text, mark));
        behind.or_else(|| after.iter().find_map(|mark| number_before(text, mark)))
    };
    let context = find(BEFORE_CONTEXT, AFTER_CONTEXT)?;
    let prompt =
        AFTER_PROMPT.iter().find_map(|mark| number_before(text, mark)).or_else(|| find(BEFORE_PROMPT, &[]));
    // "at least N" is where the tokenizer stopped counting: it only proves that the prompt is too long.
    let known = prompt.filter(|prompt| *prompt >= context || !text.contains("at least"));
    Some((context, known))
}

fn number_after(text: &str, mark: &str) -> Option<u32> {
    text.match_indices(mark).find_map(|(at, _)| {
        let rest = text[at + mark.len()..].trim_start_matches(['`', '\'', '"']);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

fn number_before(text: &str, mark: &str) -> Option<u32> {
    text.match_indices(mark).find_map(|(at, _)| {
        let rest = &text[..at];
        let digits = rest.bytes().rev().take_while(u8::is_ascii_digit).count();
        rest[rest.len() - digits..].parse().ok()
    })
}

#[cfg(test)]
mod tests;
