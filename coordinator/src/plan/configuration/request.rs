//! What may be said of the requests for a model: by what its connector sends, and by what it is asked.

use domain::{Ask, ClassifyApi, Connector, ModelSpec, PairLayout};

/// Longest vector that may be asked for, in numbers.
const DIMENSIONS_MAX: u32 = 65_536;

/// Largest `extra_body`, in bytes of JSON: it is sent with every request.
pub(crate) const EXTRA_BODY_BYTES_MAX: usize = 16 * 1024;

/// Fields of a request that the connector fills itself, or that other settings name.
const FILLED: [&str; 21] = [
    "model",
    "messages",
    "input",
    "encoding_format",
    "dimensions",
    "stream",
    "stream_options",
    "n",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "reasoning_effort",
    "seed",
    "truncate_prompt_tokens",
];

/// The first setting that cannot be, and the problem, for a model that is asked so.
pub(crate) fn problem(model: &ModelSpec, asks: Ask) -> Option<(&'static str, String)> {
    let request = &model.request;
    let only = |name, asked| {
        Some((name, format!("is for models that are asked to {asked}; this one is asked to {asks}")))
    };
    if request.dimensions.is_some() && asks != Ask::Embed {
        return only("dimensions", Ask::Embed);
    }
    if request.pair_layout != PairLayout::default() && asks != Ask::Classify {
        return only("pair_layout", Ask::Classify);
    }
    if request.classify_api != ClassifyApi::default() && asks != Ask::Classify {
        return only("classify_api", Ask::Classify);
    }
    if request.classify_api != ClassifyApi::Vllm && request.pair_layout != PairLayout::default() {
        return Some((
            "pair_layout",
            "is for `classify_api = \"vllm\"`; other servers join pairs themselves".to_owned(),
        ));
    }
    if !request.labels.is_empty() && asks != Ask::Classify {
        return only("labels", Ask::Classify);
    }
    if let Some(given) = request.dimensions.filter(|given| !(1..=DIMENSIONS_MAX).contains(given)) {
        return Some(("dimensions", format!("is {given}; it must be between 1 and {DIMENSIONS_MAX}")));
    }
    if request.labels.len() == 1 || request.labels.iter().any(String::is_empty) {
        return Some(("labels", "needs two names at least, none of them empty".to_owned()));
    }
    if request.extra_body.is_empty() {
        return None;
    }
    let sends = matches!(model.connector, Connector::OpenaiCompatible | Connector::Simulated);
    if !sends || asks == Ask::Classify {
        let problem = format!("is not sent by `{}` to models that are asked to {asks}", model.connector);
        return Some(("extra_body", problem));
    }
    if let Some(name) = request.extra_body.keys().find(|name| FILLED.contains(&name.as_str())) {
        return Some(("extra_body", format!("holds `{name}`, which kgfleet fills itself")));
    }
    let bytes = serde_json::to_vec(&request.extra_body).map_or(usize::MAX, |json| json.len());
    (bytes > EXTRA_BODY_BYTES_MAX)
        .then(|| ("extra_body", format!("has {bytes} bytes of JSON; it may have {EXTRA_BODY_BYTES_MAX}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(connector: &str, asks: Ask, request: &Value) -> Option<&'static str> {
        let model = json!({"label": "m", "connector": connector, "request": request});
        problem(&serde_json::from_value(model).unwrap(), asks).map(|(field, _)| field)
    }

    #[test]
    fn what_a_connector_sends_may_be_said() {
        let asked = "openai-compatible";
        for (asks, request) in [
            (Ask::Chat, json!({"extra_body": {"chat_template_kwargs": {"enable_thinking": false}}})),
            (Ask::Embed, json!({"dimensions": 256, "extra_body": {"priority": 1}})),
            (Ask::Classify, json!({"pair_layout": "single-separator", "labels": ["ENTAILMENT", "NEUTRAL"]})),
            (Ask::Classify, json!({"classify_api": "text-embeddings-inference"})),
        ] {
            assert_eq!(of(asked, asks, &request), None, "{request}");
        }
    }

    #[test]
    fn what_nobody_sends_is_refused_by_name() {
        let asked = "openai-compatible";
        let large = json!({"extra_body": {"guided_regex": "x".repeat(EXTRA_BODY_BYTES_MAX)}});
        for (connector, asks, request, field) in [
            (asked, Ask::Chat, json!({"dimensions": 256}), "dimensions"),
            (asked, Ask::Embed, json!({"dimensions": 0}), "dimensions"),
            (asked, Ask::Embed, json!({"pair_layout": "single-separator"}), "pair_layout"),
            (asked, Ask::Chat, json!({"labels": ["a", "b"]}), "labels"),
            (asked, Ask::Embed, json!({"classify_api": "text-embeddings-inference"}), "classify_api"),
            (
                asked,
                Ask::Classify,
                json!({"classify_api": "text-embeddings-inference", "pair_layout": "single-separator"}),
                "pair_layout",
            ),
            (asked, Ask::Classify, json!({"labels": ["a"]}), "labels"),
            (asked, Ask::Classify, json!({"extra_body": {"a": 1}}), "extra_body"),
            ("anthropic", Ask::Chat, json!({"extra_body": {"a": 1}}), "extra_body"),
            (asked, Ask::Chat, json!({"extra_body": {"temperature": 1}}), "extra_body"),
            (asked, Ask::Chat, large, "extra_body"),
        ] {
            assert_eq!(of(connector, asks, &request), Some(field), "{connector} {asks} {request}");
        }
    }
}
