use super::*;

#[test]
fn numbers_are_read_from_every_known_wording() {
    for (message, expected) in [
        (
            "This model's maximum context length is 512 tokens. However, you requested 4532 tokens (4528 in the messages, 4 in the completion).",
            Some((512, Some(4528))),
        ),
        (
            "You passed 900 input tokens and requested 200 output tokens. However, the model's context length is only 1024 tokens",
            Some((1024, Some(900))),
        ),
        (
            "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit",
            Some((1024, Some(1025))),
        ),
        (
            "This model's maximum context length is 1024 tokens. However, you requested 500 output tokens and your prompt contains at least 525 input tokens",
            Some((1024, None)),
        ),
        (
            "max_tokens=99999 cannot be greater than max_model_len=1024. Please request fewer",
            Some((1024, None)),
        ),
        (
            "The decoder prompt (length 700) is longer than the maximum model length of 512.",
            Some((512, Some(700))),
        ),
        ("maximum context length is many tokens", None),
        ("something else", None),
        // SGLang.
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 8000 tokens from the input messages and 1000 tokens for the completion.",
            Some((8192, Some(8000))),
        ),
        (
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            Some((8192, Some(9000))),
        ),
        // TGI.
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1200 `inputs` tokens and 4096 `max_new_tokens`",
            Some((4096, Some(1200))),
        ),
        // llama.cpp, LM Studio.
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            Some((4096, Some(5000))),
        ),
        (
            "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            Some((4096, Some(15857))),
        ),
        // OpenRouter, Mistral, xAI, Google, Anthropic.
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens (8000 of text input, 1000 in the output).",
            Some((8192, Some(8000))),
        ),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some((32768, None)),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
            Some((131_072, Some(200_000))),
        ),
        (
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
            Some((1_048_576, Some(2_000_000))),
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", Some((200_000, Some(210_000)))),
    ] {
        assert_eq!(context_numbers(&message.to_lowercase()), expected, "{message}");
    }
}

#[test]
fn a_refused_field_is_found_whoever_refuses_it() {
    let (seed, options, temperature) = (0, 1, 2);
    for (text, expected) in [
        // Mistral, FastAPI.
        (
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]}"#,
            Some((seed, 2)),
        ),
        (
            r#"{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required","input":{"seed":1,"stream_options":{}}}]}"#,
            None,
        ),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs'}]",
            Some((options, 1)),
        ),
        // OpenAI, Azure.
        ("Unrecognized request argument supplied: seed", Some((seed, 2))),
        ("Unknown parameter: 'stream_options'.", Some((options, 1))),
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
            Some((temperature, 1)),
        ),
        // LiteLLM, Google.
        (
            "litellm.UnsupportedParamsError: bedrock does not support parameters: ['seed'], for model=m",
            Some((seed, 2)),
        ),
        (r#"Invalid JSON payload received. Unknown name "seed": Cannot find field."#, Some((seed, 2))),
        ("Invalid value at 'generation_config.seed' (TYPE_INT32), 5368709120", Some((seed, 1))),
        // Servers of 32 bits.
        (
            r#"{"detail":[{"type":"less_than_equal","loc":["body","seed"],"msg":"Input should be less than or equal to 2147483647"}]}"#,
            Some((seed, 1)),
        ),
        ("seed: invalid value: integer `5368709120`, expected u32", Some((seed, 1))),
        // Kimi.
        ("invalid temperature: only 1 is allowed for this model", Some((temperature, 1))),
        // A value that a person has to mend, and what only looks like the name.
        ("temperature must be non-negative, got -1.0.", None),
        ("random_seed is odd", None),
        ("Field required: messages", None),
    ] {
        assert_eq!(refused_field(&text.to_lowercase()), expected, "{text}");
    }
}

#[test]
fn a_token_limit_is_cut_to_what_the_server_says() {
    for (text, expected) in [
        ("max_tokens is too large: 4096. This model supports at most 2048 completion tokens", Some(2048)),
        ("Range of max_tokens should be [1, 2048]", Some(2048)),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", Some(8192)),
        ("temperature must be less than or equal to 2", None),
        ("max_tokens must be <= 2048", Some(2048)),
        // Groq, Anthropic, Bedrock, Google.
        ("`max_tokens` must be less than or equal to `1024`, the maximum value for it", Some(1024)),
        ("max_tokens: 4096 > 1024, which is the maximum allowed number of output tokens for x-3", Some(1024)),
        ("The maximum tokens you requested exceeds the model limit of 1024. Try again", Some(1024)),
        (
            "a maxOutputTokens value of 4096 but the supported range is from 1 (inclusive) to 1025 (exclusive).",
            Some(1024),
        ),
    ] {
        assert_eq!(most_tokens(&text.to_lowercase()), expected.map(Remedy::AtMost), "{text}");
    }
}

#[test]
fn a_wait_is_read_from_every_known_wording() {
    for (text, milliseconds) in [
        (r#"please retry in 2.5s.", "details":[]"#, Some(2_500)),
        (r#"{"@type":"retryinfo","retrydelay":"34s"}"#, Some(34_000)),
        ("limit 3. please try again in 6m0s. visit", Some(360_000)),
        ("please try again in 20ms.", Some(20)),
        ("try again after 20 seconds", Some(20_000)),
        ("retry after 2 minutes", Some(120_000)),
        ("please try again later", None),
        (
            r#""retry_after":1,"headers":{"x-ratelimit-remaining":"0","x-ratelimit-reset":"1800000030000"}"#,
            Some(30_000),
        ),
        (r#""x-ratelimit-reset": 1800000030"#, Some(30_000)),
        (r#""x-ratelimit-reset":"soon""#, None),
    ] {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(wait(text, now), milliseconds.map(Duration::from_millis), "{text}");
    }
}
