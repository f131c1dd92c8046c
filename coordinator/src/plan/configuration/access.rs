//! What may be said of the way to a model: its key, its names, its headers.

use domain::{Ask, Connector, ModelSpec};

/// Names of a model's answers, headers and parts of an address that a model may have, each.
const ENTRIES_MAX: usize = 32;

/// Longest of their texts, in bytes.
const ENTRY_BYTES_MAX: usize = 4 * 1024;

/// Headers that the program or the key fills.
const FILLED: [&str; 8] = [
    "accept-encoding",
    "authorization",
    "api-key",
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// What stands for the key in the value of a header.
const KEY: &str = "{key}";

/// The first setting that cannot be, and the problem, for a model that is asked so.
pub(super) fn problem(model: &ModelSpec, asks: Ask) -> Option<(&'static str, String)> {
    let keys = [
        ("key_env", model.key_env.is_some()),
        ("key_file", model.key_file.is_some()),
        ("key_command", !model.key_command.is_empty()),
    ];
    let given: Vec<&'static str> =
        keys.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    if let [first, second, ..] = given[..] {
        return Some((first, format!("and `{second}` exclude each other")));
    }
    let sends = matches!(model.connector, Connector::OpenaiCompatible | Connector::Simulated);
    if model.reasoning.is_some() && !(sends && asks == Ask::Chat) {
        let problem = format!(
            "is for `openai-compatible` models that are asked to chat, not for `{}` asked to {asks}",
            model.connector
        );
        return Some(("reasoning", problem));
    }
    for (name, texts) in [
        ("answers_as", model.answers_as.iter().map(|name| ("", name)).collect::<Vec<_>>()),
        ("headers", model.headers.iter().map(|(name, value)| (name.as_str(), value)).collect()),
        ("query", model.query.iter().map(|(name, value)| (name.as_str(), value)).collect()),
    ] {
        if !texts.is_empty() && !sends {
            return Some((name, format!("is for `openai-compatible`, not for `{}`", model.connector)));
        }
        if texts.len() > ENTRIES_MAX {
            return Some((name, format!("has {} entries; it may have {ENTRIES_MAX}", texts.len())));
        }
        if texts.iter().any(|(name, text)| name.len() + text.len() > ENTRY_BYTES_MAX) {
            return Some((name, format!("has an entry of more than {ENTRY_BYTES_MAX} bytes")));
        }
    }
    for (name, value) in &model.headers {
        let is_filled = FILLED.contains(&name.to_ascii_lowercase().as_str());
        if is_filled && !value.contains(KEY) {
            return Some(("headers", format!("holds `{name}`, which kgfleet fills itself")));
        }
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let is_value = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if !is_name || !is_value {
            return Some(("headers", format!("holds `{name}`, which cannot be sent as it is")));
        }
    }
    for (name, rate) in
        [("calls_per_minute", model.calls_per_minute), ("tokens_per_minute", model.tokens_per_minute)]
    {
        if rate == Some(0) {
            return Some((name, "is 0; it must be at least 1".to_owned()));
        }
    }
    model.time_limits.problem(asks == Ask::Chat && model.streams())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(fields: &Value) -> Option<&'static str> {
        asked(Ask::Chat, fields)
    }

    fn asked(asks: Ask, fields: &Value) -> Option<&'static str> {
        let mut model = json!({"label": "m", "connector": "openai-compatible"});
        model.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        problem(&serde_json::from_value(model).unwrap(), asks).map(|(field, _)| field)
    }

    #[test]
    fn the_way_to_a_model_may_be_told() {
        for fields in [
            json!({"key_command": ["print-key"], "answers_as": ["gpt-4.1-*"], "tokens_per_minute": 30_000}),
            json!({"headers": {"x-team": "kg", "Ocp-Apim-Subscription-Key": "{key}"}, "query": {"api-version": "1"}}),
            json!({"headers": {"api-key": "{key}"}, "reasoning": {"open": "((", "close": "))"}}),
            json!({"reasoning": "off"}),
            json!({"time_limits": {"first_token": "30m", "between_tokens": "90s", "call": "2h"}}),
            json!({"connector": "anthropic", "time_limits": {"call": "5m"}}),
        ] {
            assert_eq!(of(&fields), None, "{fields}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_name() {
        for (fields, field) in [
            (json!({"key_env": "A", "key_command": ["b"]}), "key_env"),
            (json!({"key_env": "A", "key_file": "/b"}), "key_env"),
            (json!({"headers": {"Authorization": "Bearer abc"}}), "headers"),
            (json!({"headers": {"x": "a\nb"}}), "headers"),
            (json!({"headers": {"a b": "c"}}), "headers"),
            (json!({"connector": "gemini", "query": {"a": "b"}}), "query"),
            (json!({"answers_as": vec!["a"; 40]}), "answers_as"),
            (json!({"tokens_per_minute": 0}), "tokens_per_minute"),
            (json!({"calls_per_minute": 0}), "calls_per_minute"),
            (json!({"connector": "anthropic", "reasoning": "off"}), "reasoning"),
            (json!({"time_limits": {"call": "0s"}}), "time_limits.call"),
            (json!({"stream": false, "time_limits": {"first_token": "1m"}}), "time_limits.first_token"),
        ] {
            assert_eq!(of(&fields), Some(field), "{fields}");
        }
        for (asks, fields, field) in [
            (Ask::Embed, json!({"reasoning": "off"}), Some("reasoning")),
            (
                Ask::Classify,
                json!({"time_limits": {"between_tokens": "1m"}}),
                Some("time_limits.between_tokens"),
            ),
            (
                Ask::Embed,
                json!({"answers_as": ["x"], "headers": {"x": "y"}, "time_limits": {"call": "5m"}}),
                None,
            ),
        ] {
            assert_eq!(asked(asks, &fields), field, "{asks} {fields}");
        }
        for reasoning in [json!("on"), json!({"open": "", "close": "b"})] {
            let model = json!({"label": "m", "connector": "openai-compatible", "reasoning": reasoning});
            assert!(serde_json::from_value::<ModelSpec>(model).is_err());
        }
    }
}
