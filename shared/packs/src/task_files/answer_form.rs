//! Puts a text into the form in which a task asks for answers, so that an expected value becomes an answer that can be read, and
//! an invented one a wrong answer.

use tasks::families::declared::spec::{AnswerPart, AnswerRule};

/// An answer of which only this body counts.
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

/// The body of an answer that [`in_form`] made.
pub(crate) fn body_of<'a>(answer: &'a str, rule: &AnswerRule) -> &'a str {
    let answer =
        rule.after.as_deref().and_then(|marker| answer.strip_prefix(marker)).unwrap_or(answer).trim();
    match rule.take {
        AnswerPart::Block | AnswerPart::LastBlock => {
            let inside = answer.split_once('\n').and_then(|(_, rest)| rest.rsplit_once("\n```"));
            inside.map_or(answer, |(body, _)| body)
        }
        AnswerPart::Text | AnswerPart::Line | AnswerPart::Json => answer,
    }
}

/// A body as a fenced code block.
pub(crate) fn written_answer(body: &str, language: &str) -> String {
    format!("```{language}\n{}\n```", body.trim_matches('\n'))
}
