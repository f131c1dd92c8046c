//! Converts between our types and the API's.

use std::borrow::Cow;

use domain::{FinishReason, Message, Role, Usage};
use serde_json::Value;

use crate::stops;

/// Numbers from here on are no counts of tokens, whatever they are.
const COUNT_MAX: f64 = 1e15;

/// The conversation for models without a system role or with strict alternation: system messages are put before the
/// next user message, and neighbours with one role are merged, separated by an empty line.
pub(super) fn folded(messages: &[Message]) -> Cow<'_, [Message]> {
    if !needs_folding(messages) {
        return Cow::Borrowed(messages);
    }
    let mut folded: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let role = if message.role == Role::System { Role::User } else { message.role };
        match folded.last_mut() {
            Some(last) if last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&message.content);
            }
            _ => folded.push(Message { role, content: message.content.clone() }),
        }
    }
    Cow::Owned(folded)
}

/// Whether folding changes anything.
pub(super) fn needs_folding(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.role == Role::System)
        || messages.windows(2).any(|pair| pair[0].role == pair[1].role)
}

/// Parses the finish reason; `None` if the server itself stopped the generation.
pub(super) fn finish_reason(word: &str) -> Option<FinishReason> {
    match word {
        // vLLM: the engine dropped or failed the request, so the text is not an answer.
        "abort" | "error" => None,
        word => Some(stops::finish_reason(word)),
    }
}

/// Token counts of a question that generates no text. vLLM reports 0 generated tokens, OpenAI none; we store none.
pub(super) fn usage_of_inputs(wire: &Value) -> Usage {
    Usage { completion_tokens: None, reasoning_tokens: None, ..usage(wire).plausible() }
}

/// Converts token counts. Where the total is more than prompt and answer, the rest was generated, too: some providers leave
/// reasoning out of the answer's tokens, and bill it.
pub(super) fn usage(wire: &Value) -> Usage {
    let (prompt, stated) = (count(wire, "prompt_tokens"), count(wire, "completion_tokens"));
    let reasoning = count(&wire["completion_tokens_details"], "reasoning_tokens");
    let generated =
        count(wire, "total_tokens").zip(prompt).and_then(|(total, prompt)| total.checked_sub(prompt));
    let hidden = generated.unwrap_or_default().saturating_sub(stated.unwrap_or_default());
    Usage {
        prompt_tokens: prompt,
        completion_tokens: generated.filter(|_| hidden > 0).or(stated),
        cached_tokens: count(&wire["prompt_tokens_details"], "cached_tokens"),
        reasoning_tokens: reasoning.or((hidden > 0 && stated.is_some()).then_some(hidden)),
    }
}

/// A number of tokens, in whatever form a server writes it; `None` if it can be no number of tokens.
fn count(of: &Value, name: &str) -> Option<u64> {
    let number = match of.get(name)? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    // Negative ones stand for "not counted".
    (0.0..COUNT_MAX).contains(&number).then(|| number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_messages_go_into_the_users() {
        let system = Message { role: Role::System, content: "be brief".into() };
        let messages =
            [system, Message::user("a"), Message::assistant("b"), Message::user("c"), Message::user("d")];
        assert_eq!(
            folded(&messages).as_ref(),
            [Message::user("be brief\n\na"), Message::assistant("b"), Message::user("c\n\nd")]
        );
        let plain = [Message::user("a"), Message::assistant("b"), Message::user("c")];
        assert!(matches!(folded(&plain), Cow::Borrowed(_)));
    }

    #[test]
    fn what_the_total_holds_beyond_prompt_and_answer_was_generated() {
        let counts = |json: &str| {
            let usage = usage(&serde_json::from_str(json).unwrap());
            (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens)
        };
        for (json, expected) in [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, (Some(10), Some(5), None)),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}"#,
                (Some(10), Some(105), Some(100)),
            ),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}"#,
                (Some(10), Some(105), Some(100)),
            ),
            (r#"{"prompt_tokens":10,"total_tokens":15}"#, (Some(10), Some(5), None)),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}"#, (Some(10), Some(5), None)),
            (r#"{"total_tokens":3}"#, (None, None, None)),
        ] {
            assert_eq!(counts(json), expected, "{json}");
        }
    }

    #[test]
    fn finish_reasons_keep_unknown_words_and_refuse_aborts() {
        assert_eq!(finish_reason("stop"), Some(FinishReason::Stop));
        assert_eq!(finish_reason("repetition"), Some(FinishReason::Repetition));
        assert_eq!(finish_reason("tool_calls"), Some(FinishReason::Other("tool_calls".into())));
        assert_eq!(finish_reason("abort"), None);
    }
}
