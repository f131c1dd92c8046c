//! Texts as answers in the form that a task asks for.

use tasks::families::declared::spec::{AnswerPart, AnswerRule};

/// A body as an answer of which just it counts.
pub(crate) fn in_form(body: &str, rule: &AnswerRule) -> String {
    let language = rule.language.first().map_or("", String::as_str);
    let marker = rule.after.as_deref().unwrap_or_default();
    match rule.take {
        AnswerPart::Block | AnswerPart::LastBlock => {
            format!("{marker}\n{}", written_answer(body, language)).trim_start().to_owned()
        }
        AnswerPart::Text | AnswerPart::Line | AnswerPart::Json => {
            format!("{marker} {body}").trim_start().to_owned()
        }
    }
}

/// A body as a fenced code block.
pub(crate) fn written_answer(body: &str, language: &str) -> String {
    format!("```{language}\n{}\n```", body.trim_matches('\n'))
}
