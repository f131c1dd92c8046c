//! Shows one dialogue: prompts, answers and verdicts. Its texts come from models, so they are escaped, and characters
//! that could mislead a reader are replaced by their names.

use domain::text::steers;
use maud::{Markup, html};
use serde_json::Value;

use crate::details::DialogueDetail;

/// Maximum number of characters shown of a text, because browsers become slow at megabytes.
pub const SHOWN_CHARS: usize = 100_000;

/// Maximum number of differences shown of one dialogue.
const DIFFERENCES_MAX: usize = 16;

/// Maximum depth at which differences are searched for in infos.
const DEPTH_MAX: usize = 8;

/// The dialogue, as a sequence of headed texts.
pub fn dialogue(detail: &DialogueDetail) -> Markup {
    let mut found = Vec::new();
    for (key, value) in &detail.infos {
        differences(key, value, 0, &mut found);
    }
    html! {
        @if let Some(system) = &detail.system { (text("System", system)) }
        @for (number, round) in detail.rounds.iter().enumerate() {
            @let kind = if round.kind.is_empty() { String::new() } else { format!(" ({})", round.kind) };
            (text(&format!("Prompt {}{kind}", number + 1), &round.prompt))
            @if let Some(reasoning) = &round.reasoning { (text(&format!("Reasoning {}", number + 1), reasoning)) }
            (text(&format!("Answer {}", number + 1), &round.answer))
        }
        @if let Some(message) = &detail.message { (text("Why there is no score", message)) }
        @for (path, content) in found.iter().take(DIFFERENCES_MAX) { (difference(path, content)) }
        @if !detail.scores.is_empty() { (text("Scores", &pretty(&detail.scores))) }
        @if !detail.infos.is_empty() { (text("Infos", &pretty(&detail.infos))) }
    }
}

fn pretty(fields: &serde_json::Map<String, Value>) -> String {
    serde_json::to_string_pretty(fields).unwrap_or_default()
}

/// A text under its heading, cut if it is very long.
fn text(heading: &str, content: &str) -> Markup {
    let (shown, cut) = cut(content);
    html! {
        h3 { (visible(heading)) }
        pre tabindex="0" role="region" aria-label=(visible(heading)) { (visible(shown)) }
        @if let Some(characters) = cut {
            p.note { "The first " (SHOWN_CHARS) " of " (characters) " characters (" (content.len()) " bytes) are shown." }
        }
    }
}

/// The part of a text that is shown, and the text's length in characters if that is not all.
fn cut(content: &str) -> (&str, Option<usize>) {
    match content.char_indices().nth(SHOWN_CHARS) {
        None => (content, None),
        Some((end, _)) => (&content[..end], Some(content.chars().count())),
    }
}

/// Lines of a unified difference in their colours.
fn difference(path: &str, content: &str) -> Markup {
    let (shown, _) = cut(content);
    let heading = format!("Difference: {path}");
    html! {
        h3 { (visible(&heading)) }
        pre tabindex="0" role="region" aria-label=(visible(&heading)) {
            @for line in shown.lines() {
                @if line.starts_with('+') { span.add { (visible(line)) "\n" } }
                @else if line.starts_with('-') { span.del { (visible(line)) "\n" } }
                @else { (visible(line)) "\n" }
            }
        }
    }
}

/// Collects the texts of infos whose names say that they are differences.
fn differences<'a>(path: &str, value: &'a Value, depth: usize, found: &mut Vec<(String, &'a str)>) {
    let name = path.rsplit('.').next().unwrap_or(path);
    match value {
        Value::String(text) if !text.is_empty() && name.to_ascii_lowercase().contains("diff") => {
            found.push((path.to_owned(), text));
        }
        Value::Object(fields) if depth < DEPTH_MAX => {
            for (key, value) in fields {
                differences(&format!("{path}.{key}"), value, depth + 1, found);
            }
        }
        _ => {}
    }
}

/// A text in which every character that steers a reader, or cannot be seen, is named.
pub fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && (steers(c) || is_unseen(c)) {
            seen.push_str(&format!("\u{27e6}U+{:04X}\u{27e7}", c as u32));
        } else {
            seen.push(c);
        }
    }
    seen
}

fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::details::DialogueDetail;

    fn shown(answer: &str, infos: Value) -> String {
        dialogue(&DialogueDetail::of_texts("Who?", answer, infos.as_object().cloned().unwrap_or_default()))
            .into_string()
    }

    #[test]
    fn a_hostile_answer_is_text() {
        let page = shown("</pre><script>alert(1)</script>\u{1b}[31m\u{202e}\u{200b}x\ty\n", json!({}));
        assert!(page.contains("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("⟦U+001B⟧[31m⟦U+202E⟧⟦U+200B⟧x\ty\n"), "{page}");
        assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    }

    #[test]
    fn a_long_answer_is_cut_and_its_size_is_said() {
        let page = shown(&"ä".repeat(10 << 20), json!({}));
        assert!(page.len() < 4 * SHOWN_CHARS, "{}", page.len());
        assert!(page.contains("The first 100000 of 10485760 characters (20971520 bytes) are shown."));
    }

    #[test]
    fn differences_have_their_colours() {
        let page = shown("a", json!({ "0": { "answerDiff": "-<a>\n+b\n c" }, "other": "-x" }));
        assert!(page.contains("Difference: 0.answerDiff"), "{page}");
        assert!(
            page.contains("<span class=\"del\">-&lt;a&gt;\n</span><span class=\"add\">+b\n</span>"),
            "{page}"
        );
        assert_eq!(page.matches("class=\"del\"").count(), 1);
    }
}
