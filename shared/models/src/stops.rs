//! Why models stop, in the words of all providers: one rule for all connectors.
//!
//! An answer that a provider's filter withheld is an answer, with what came of its text, and is scored as such. Some providers
//! say so in the place of a finish reason, others refuse the request: [`is_filtered`] knows these refusals. A further word is a
//! further entry here.

use domain::{Answer, FinishReason};

/// Words for a model that ended its answer itself.
const STOP: [&str; 6] = ["stop", "eos", "eos_token", "stop_sequence", "end_turn", "complete"];

/// Words for an answer that the limit of tokens or the context cut.
const LENGTH: [&str; 6] = [
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_length",
    // Mistral, Anthropic.
    "model_length",
    "model_context_window_exceeded",
];

/// Words with which those for a filter begin: OpenAI, Azure and, with its own word behind it, Google's OpenAI route; Anthropic;
/// Gemini; Bedrock; Zhipu; Cohere.
const FILTER: [&str; 12] = [
    "content_filter",
    "content-filter",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "guardrail_intervened",
    "sensitive",
    "moderation",
    "error_toxic",
];

/// Parts of a refusal by a filter, in lower case: of Azure, OpenAI, DashScope and LiteLLM by their codes, of Anthropic, OpenRouter,
/// xAI and others by their words.
const REFUSALS: [&str; 12] = [
    "\"content_filter\"",
    "responsibleaipolicyviolation",
    "content_policy_violation",
    "contentpolicyviolation",
    "data_inspection_failed",
    "datainspectionfailed",
    "content management policy",
    "content filtering policy",
    "violating our usage policy",
    "violates usage guidelines",
    "your input was flagged",
    "inappropriate content",
];

/// Whether this stands in the place of a reason that is not there yet: some servers say in every piece of a stream that it is not
/// the last one by an empty text (Ollama), or by the word for nothing (DashScope).
pub(crate) fn is_no_reason(word: &str) -> bool {
    let word = word.trim();
    word.is_empty() || word.eq_ignore_ascii_case("null") || word.eq_ignore_ascii_case("none")
}

/// The reason behind a server's word, whatever its case.
pub(crate) fn finish_reason(word: &str) -> FinishReason {
    let lower = word.trim().to_lowercase();
    match lower.as_str() {
        "repetition" => FinishReason::Repetition,
        known if STOP.contains(&known) => FinishReason::Stop,
        known if LENGTH.contains(&known) => FinishReason::Length,
        known if FILTER.iter().any(|start| known.starts_with(start)) => FinishReason::ContentFilter,
        // As it is: a key in it is known by its letters.
        _ => FinishReason::Other(word.to_owned()),
    }
}

/// Whether a refusal with this body is a filter's. Statuses do not tell: they are 400, 403 or, within a stream, none.
pub(crate) fn is_filtered(body: &str) -> bool {
    let body = body.to_lowercase();
    REFUSALS.iter().any(|part| body.contains(part))
}

/// The answer of a filter that let nothing through.
pub(crate) fn withheld() -> Answer {
    Answer { finish_reason: Some(FinishReason::ContentFilter), ..Answer::text("") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_has_many_words() {
        use FinishReason::{ContentFilter, Length, Other, Repetition, Stop};
        for (word, reason) in [
            ("stop", Stop),
            ("STOP", Stop),
            ("end_turn", Stop),
            ("length", Length),
            ("MAX_TOKENS", Length),
            ("model_length", Length),
            ("content_filter", ContentFilter),
            ("content_filter: PROHIBITED_CONTENT", ContentFilter),
            ("SAFETY", ContentFilter),
            ("refusal", ContentFilter),
            ("repetition", Repetition),
            ("Tool_Calls", Other("Tool_Calls".into())),
        ] {
            assert_eq!(finish_reason(word), reason, "{word}");
        }
    }

    #[test]
    fn a_filters_refusal_is_known_and_others_are_not() {
        for body in [
            r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","code":"invalid_prompt"}}"#,
            r#"{"type":"error","error":{"message":"Output blocked by content filtering policy"}}"#,
            r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain"}}"#,
            r#"{"error":{"code":403,"message":"openai/x requires moderation on Azure. Your input was flagged for \"violence\"."}}"#,
            r#"{"code":"permission denied","error":"Content violates usage guidelines."}"#,
        ] {
            assert!(is_filtered(body), "{body}");
        }
        for body in [r#"{"error":{"message":"content: Field required"}}"#, r#"{"error":"Forbidden"}"#, ""] {
            assert!(!is_filtered(body), "{body}");
        }
    }
}
