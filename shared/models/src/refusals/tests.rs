use super::*;

const BUSY: RetryAdvice = RetryAdvice::RateLimited { after: None };

/// Status, body, and what they mean.
type Case = (u16, &'static str, FailureCause, RetryAdvice, Option<Remedy>);

const CASES: &[Case] = &[
    // The shapes.
    (401, r#"{"error":"Unauthorized"}"#, FailureCause::Unauthorized, RetryAdvice::No, None),
    (404, r#"{"detail":"Not Found"}"#, FailureCause::BadRequest, RetryAdvice::No, None),
    (405, r#"{"detail":"Method Not Allowed"}"#, FailureCause::BadRequest, RetryAdvice::No, None),
    (
        422,
        r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"object":"error","message":"top_p must be in (0, 1]","type":"BadRequestError","param":null,"code":400}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        None,
    ),
    (502, "<html><h1>502 Bad Gateway</h1></html>", FailureCause::Server, RetryAdvice::Transient, None),
    (500, "", FailureCause::Server, RetryAdvice::Transient, None),
    // A full server, a strict one, a poor account.
    (
        503,
        r#"{"error":{"message":"The engine is currently busy and cannot accept new requests.","type":"Service Unavailable","param":null,"code":503}}"#,
        FailureCause::Overloaded,
        BUSY,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#,
        FailureCause::RateLimited,
        BUSY,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        FailureCause::QuotaExhausted,
        RetryAdvice::No,
        None,
    ),
    (
        402,
        r#"{"error":{"message":"Insufficient Balance"}}"#,
        FailureCause::QuotaExhausted,
        RetryAdvice::No,
        None,
    ),
    (
        500,
        r#"{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}"#,
        FailureCause::Server,
        RetryAdvice::Transient,
        None,
    ),
    (504, "upstream request timeout", FailureCause::Timeout, RetryAdvice::Transient, None),
    (
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan. Please retry in 2.5s.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"retryDelay":"2.5s"}]}}]"#,
        FailureCause::RateLimited,
        RetryAdvice::RateLimited { after: Some(Duration::from_millis(2_500)) },
        None,
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"34s"}]}}]"#,
        FailureCause::QuotaExhausted,
        RetryAdvice::No,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits","code":429}}"#,
        FailureCause::QuotaExhausted,
        RetryAdvice::No,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached on tokens per min (TPM): Limit 30000. Please try again in 1.2s."}}"#,
        FailureCause::RateLimited,
        RetryAdvice::RateLimited { after: Some(Duration::from_millis(1_200)) },
        None,
    ),
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain one"}"#,
        FailureCause::Unauthorized,
        RetryAdvice::No,
        None,
    ),
    // Models.
    (
        404,
        r#"{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.","type":"NotFoundError","param":"model","code":404}}"#,
        FailureCause::ModelNotFound,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
        FailureCause::ModelNotFound,
        RetryAdvice::No,
        None,
    ),
    (
        404,
        r#"{"error":{"message":"No endpoints found for m.","code":404}}"#,
        FailureCause::ModelNotFound,
        RetryAdvice::No,
        None,
    ),
    (
        404,
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
        FailureCause::ModelNotFound,
        RetryAdvice::No,
        None,
    ),
    // Requests.
    (
        400,
        r#"{"error":{"message":"temperature must be non-negative, got -1.0.","type":"BadRequestError","param":"temperature","code":400}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","code":400}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FoldRoles),
    ),
    (
        400,
        r#"{"error":{"message":"Only user and assistant roles are supported!","type":"BadRequestError","code":400}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FoldRoles),
    ),
    (
        400,
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::CompletionTokens),
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"Error: Jinja Exception: System role not supported","type":"server_error"}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FoldRoles),
    ),
    (
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":5}]},"type":"invalid_request_error","param":null,"code":null}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::Field { field: 0, steps: 2 }),
    ),
    (
        400,
        r#"{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","type":"invalid_request_error","param":"messages[0].role","code":"unsupported_value"}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FoldRoles),
    ),
    (
        422,
        r#"{"detail":[{"type":"literal_error","loc":["body","messages",0,"role"],"msg":"Input should be 'user' or 'assistant'","input":"system"}]}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FoldRoles),
    ),
    (
        500,
        r#"{"error":{"message":"litellm.BadRequestError: Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#,
        FailureCause::Server,
        RetryAdvice::Transient,
        Some(Remedy::CompletionTokens),
    ),
    (
        500,
        r#"{"error":{"message":"the seed node is gone"}}"#,
        FailureCause::Server,
        RetryAdvice::Transient,
        None,
    ),
    // Contexts.
    (
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, you requested 4500 tokens (500 in the messages, 4000 in the completion).\"}}"}}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        Some(Remedy::FewerTokens { context: 4096, prompt: Some(500) }),
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"object":"error","message":"Input length (8000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate.","code":400}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"object":"error","message":"Input length 8000 exceeds maximum allowed token size 4096","type":"BadRequestError"}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        422,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1200 `inputs` tokens and 4096 `max_new_tokens`","error_type":"validation"}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        Some(Remedy::FewerTokens { context: 4096, prompt: Some(1200) }),
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"the input length exceeds the context length","type":"invalid_request_error"}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens.","type":"BadRequestError","param":"input_tokens","code":400}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 512 tokens. However, you requested 4532 tokens (4528 in the messages, 4 in the completion).","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4500 tokens (500 in the messages, 4000 in the completion).","type":"BadRequestError","code":400}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        Some(Remedy::FewerTokens { context: 4096, prompt: Some(500) }),
    ),
    (
        400,
        r#"{"error":{"message":"You passed 900 input tokens and requested 200 output tokens. However, the model's context length is only 1024 tokens.","param":"input_tokens","code":400}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        Some(Remedy::FewerTokens { context: 1024, prompt: Some(900) }),
    ),
    (
        400,
        r#"{"error":{"message":"max_tokens=99999 cannot be greater than max_model_len=1024. Please request fewer output tokens.","type":"BadRequestError","param":"max_tokens","code":400}}"#,
        FailureCause::BadRequest,
        RetryAdvice::No,
        Some(Remedy::FewerTokens { context: 1024, prompt: None }),
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 514 tokens. However, your prompt contains 6000 characters (more than 3598 characters, which is the upper bound for 514 input tokens). Please reduce the length of the input prompt. (parameter=input_text, value=6000)","type":"BadRequestError","param":"input_text","code":400}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        500,
        "The decoder prompt (length 700) is longer than the maximum model length of 512.",
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"This model supports 512 tokens, but the prompt contains 700 input tokens","code":400}}"#,
        FailureCause::ContextExceeded,
        RetryAdvice::No,
        None,
    ),
];

#[test]
fn every_known_refusal_is_understood() {
    for (status, body, cause, retry, remedy) in CASES {
        let rejected = classify(*status, None, body, None);
        let got = (rejected.error.cause, rejected.error.retry, rejected.remedy);
        assert_eq!(got, (*cause, *retry, *remedy), "{status} {body}");
        assert_eq!(rejected.error.status, Some(*status));
        assert!(!rejected.error.in_words().is_empty());
    }
}

#[test]
fn the_message_is_the_servers_own() {
    assert_eq!(classify(401, None, r#"{"error":"Unauthorized"}"#, None).error.message, "Unauthorized");
    assert_eq!(
        classify(405, None, r#"{"detail":"Method Not Allowed"}"#, None).error.message,
        "Method Not Allowed"
    );
    assert_eq!(classify(400, None, r#"{"error":{"message":"why"}}"#, None).error.message, "why");
    assert_eq!(classify(500, None, "", None).error.in_words(), "HTTP 500, without a message");
}

#[test]
fn the_servers_delay_is_kept() {
    let after = Some(Duration::from_secs(7));
    for status in [429, 503] {
        assert_eq!(classify(status, after, "{}", None).error.retry, RetryAdvice::RateLimited { after });
    }
}

#[test]
fn an_error_within_a_stream_carries_its_own_status() {
    let busy = classify_within_success(r#"{"error":{"message":"busy","code":503}}"#, None);
    assert_eq!((busy.error.cause, busy.error.status), (FailureCause::Overloaded, Some(503)));
    assert_eq!(classify_within_success(r#"{"error":{"message":"x"}}"#, None).error.status, Some(500));
}

#[test]
fn every_documented_error_of_anthropic_is_understood() {
    use FailureCause::{
        BadRequest, ContextExceeded, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Server, Timeout,
        Unauthorized,
    };
    let after = Some(Duration::from_secs(9));
    let (no, busy, again) = (RetryAdvice::No, RetryAdvice::RateLimited { after }, RetryAdvice::Transient);
    for (status, kind, message, cause, retry) in [
        (400, "invalid_request_error", "messages: at least one message is required", BadRequest, no),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ContextExceeded,
            no,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            ContextExceeded,
            no,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            QuotaExhausted,
            no,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits.",
            QuotaExhausted,
            no,
        ),
        (401, "authentication_error", "invalid x-api-key", Unauthorized, no),
        (402, "billing_error", "payment required", QuotaExhausted, no),
        (403, "permission_error", "not allowed", Unauthorized, no),
        (404, "not_found_error", "model: claude-0", ModelNotFound, no),
        (404, "not_found_error", "no such route", BadRequest, no),
        (413, "request_too_large", "Request exceeds the maximum size", BadRequest, no),
        (429, "rate_limit_error", "too many tokens per minute", RateLimited, busy),
        (500, "api_error", "Internal server error", Server, again),
        (504, "timeout_error", "timed out", Timeout, again),
        (529, "overloaded_error", "Overloaded", Overloaded, busy),
    ] {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#
        );
        let error = classify(status, after, &body, None).error;
        assert_eq!((error.cause, error.retry, error.message.as_str()), (cause, retry, message));
    }
    assert_eq!(classify(502, None, "<html>", None).error.cause, Server);
}

#[test]
fn every_known_error_of_google_is_understood() {
    use FailureCause::{
        BadRequest, ContextExceeded, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Server, Timeout,
        Unauthorized,
    };
    let (no, again) = (RetryAdvice::No, RetryAdvice::Transient);
    let busy = |after| RetryAdvice::RateLimited { after };
    let minute = r#"[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerMinutePerProject"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]"#;
    let day =
        r#"[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"34s"}]"#;
    for (status, message, details, cause, retry) in [
        (400, "Invalid value at 'generation_config'", "[]", BadRequest, no),
        (
            400,
            "API key not valid.",
            r#"[{"reason":"API_KEY_INVALID","domain":"googleapis.com"}]"#,
            Unauthorized,
            no,
        ),
        (
            400,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
            "[]",
            ContextExceeded,
            no,
        ),
        (403, "Permission denied", "[]", Unauthorized, no),
        (404, "models/x is not found for API version v1beta", "[]", ModelNotFound, no),
        (
            429,
            "You exceeded your current quota",
            minute,
            RateLimited,
            busy(Some(Duration::from_millis(34_500))),
        ),
        (429, "You exceeded your current quota", day, QuotaExhausted, no),
        (429, "Resource has been exhausted", "[]", RateLimited, busy(None)),
        (500, "An internal error has occurred", "[]", Server, again),
        (503, "The model is overloaded.", "[]", Overloaded, busy(None)),
        (504, "Deadline exceeded", "[]", Timeout, again),
    ] {
        let body = format!(
            r#"{{"error":{{"code":{status},"message":"{message}","status":"X","details":{details}}}}}"#
        );
        let error = classify(status, None, &body, None).error;
        assert_eq!((error.cause, error.retry, error.message.as_str()), (cause, retry, message));
    }
    assert_eq!(classify(502, None, "<html>", None).error.cause, Server);
}
