//! The JSON of Google's `generateContent`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Body of `POST /v1beta/models/MODEL:generateContent`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateBody<'a> {
    pub(super) contents: Vec<Content<'a>>,
    /// There is no system role; instructions have a field of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<Content<'a>>,
    pub(super) generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    pub(super) parts: [TextPart<'a>; 1],
}

#[derive(Serialize)]
pub(super) struct TextPart<'a> {
    pub(super) text: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    pub(super) max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_config: Option<ThinkingConfig<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig<'a> {
    pub(super) thinking_level: &'a str,
}

/// A whole answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateReply {
    #[serde(default)]
    pub(super) candidates: Vec<GeminiCandidate>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    pub(super) usage_metadata: UsageMetadata,
    pub(super) model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiCandidate {
    /// Absent if the answer was withheld.
    pub(super) content: Option<CandidateContent>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CandidateContent {
    #[serde(default)]
    pub(super) parts: Vec<CandidatePart>,
}

#[derive(Deserialize)]
pub(super) struct CandidatePart {
    #[serde(default)]
    pub(super) text: String,
    /// A summary of the model's thoughts.
    #[serde(default)]
    pub(super) thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    pub(super) prompt_token_count: Option<u64>,
    pub(super) candidates_token_count: Option<u64>,
    pub(super) cached_content_token_count: Option<u64>,
    pub(super) thoughts_token_count: Option<u64>,
}

/// Body of an error.
#[derive(Deserialize)]
pub(super) struct GeminiErrorReply {
    pub(super) error: GeminiErrorDetail,
}

#[derive(Default, Deserialize)]
pub(super) struct GeminiErrorDetail {
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) details: Vec<Extra>,
}

/// One of the typed details of a Google error, with the fields of all types that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Extra {
    /// Of `ErrorInfo`, such as `API_KEY_INVALID`.
    pub(super) reason: Option<String>,
    /// Of `QuotaFailure`.
    #[serde(default)]
    pub(super) violations: Vec<Violation>,
    /// Of `RetryInfo`, such as `34s`.
    pub(super) retry_delay: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Violation {
    #[serde(default)]
    pub(super) quota_id: String,
}
