//! Separates reasoning from answers.
//!
//! If the server has no reasoning parser, reasoning models write their thoughts into the answer, between markers that
//! their chat templates gave them: `<think>…</think>answer`. Some templates put the opening marker into the prompt, so that
//! only the closing one appears; a model that runs out of tokens never closes it. Reasoning is stored and never scored.
//!
//! [`MARKERS`] is the table of markers; a further model is a further row. gpt-oss' channels are no pairs and have their own
//! reader.

use domain::ReasoningMarks;

/// What a model puts around its thoughts.
struct Markers {
    open: &'static str,
    close: &'static str,
    at: Place,
    /// What it puts around the answer, if anything.
    answer: Option<(&'static str, &'static str)>,
}

/// Where a block of thoughts is one. The less a marker looks like something that an answer could hold, the more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Anywhere; also without its opening marker.
    Anywhere,
    /// Where the answer begins; also without its opening marker.
    Start,
    /// Where the answer begins, with its opening marker: an answer may speak of such a thing.
    StartOpened,
    /// Where the answer begins, with both markers: they are words of a language.
    StartWhole,
}

const fn row(open: &'static str, close: &'static str, at: Place) -> Markers {
    Markers { open, close, at, answer: None }
}

/// The markers of models.
const MARKERS: &[Markers] = &[
    // DeepSeek, Qwen and most others.
    row("<think>", "</think>", Place::Anywhere),
    // Mistral.
    row("[THINK]", "[/THINK]", Place::Start),
    // Kimi.
    row("◁think▷", "◁/think▷", Place::Start),
    // Seed.
    row("<seed:think>", "</seed:think>", Place::Start),
    // Apertus.
    row("<|inner_prefix|>", "<|inner_suffix|>", Place::Start),
    // Gemma 4.
    row("<|channel>thought", "<channel|>", Place::Start),
    // MedGemma.
    row("<unused94>", "<unused95>", Place::Start),
    // Cohere.
    Markers {
        answer: Some(("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
        ..row("<|START_THINKING|>", "<|END_THINKING|>", Place::Start)
    },
    // OpenThinker, Sky-T1.
    Markers {
        answer: Some(("<|begin_of_solution|>", "<|end_of_solution|>")),
        ..row("<|begin_of_thought|>", "<|end_of_thought|>", Place::Start)
    },
    // Models that were taught by prompts.
    row("<thinking>", "</thinking>", Place::StartOpened),
    row("<reasoning>", "</reasoning>", Place::StartOpened),
    row("<reflection>", "</reflection>", Place::StartOpened),
    row("<scratchpad>", "</scratchpad>", Place::StartOpened),
    // EXAONE, Gemini.
    row("<thought>", "</thought>", Place::StartOpened),
    // Granite.
    row("Here is my thought process:", "Here is my response:", Place::StartWhole),
    // gpt-oss where the server has dropped the markers of its channels.
    row("analysis", "assistantfinal", Place::StartWhole),
];

/// gpt-oss: what begins a channel, what ends its head, and what ends its text.
const CHANNEL: &str = "<|channel|>";
const CHANNEL_TEXT: &str = "<|message|>";
const CHANNEL_ENDS: [&str; 4] = ["<|end|>", "<|return|>", "<|call|>", "<|start|>"];

/// The channel that is the answer.
const CHANNEL_ANSWER: &str = "final";

/// Splits a model's output into the text to score and its reasoning: by the table, or by what the model's configuration says
/// of it.
///
/// - A block is removed, with the white space after it. The first closing marker ends it, because thoughts may mention
///   the opening one. Where blocks may be anywhere, the next rule removes truly nested ones completely.
/// - A closing marker without an opening one ends a block that began with the text (the template opened it).
/// - An opening marker without a closing one begins a block that ends with the text (the tokens ran out).
///
/// `field` is the reasoning that the server sent separately; it comes first. Reasoning of only white space counts as
/// none.
pub fn split(
    text: String,
    field: Option<String>,
    marks: Option<&ReasoningMarks>,
) -> (String, Option<String>) {
    let mut thoughts: Vec<String> = field.into_iter().collect();
    let answer = match marks {
        Some(ReasoningMarks::Off) => text,
        Some(ReasoningMarks::Between { open, close }) => without_blocks(text, open, close, &mut thoughts),
        None => by_table(text, &mut thoughts),
    };
    thoughts.retain(|thought| !thought.trim().is_empty());
    (answer, if thoughts.is_empty() { None } else { Some(thoughts.join("\n")) })
}

/// Whether a text holds markers of reasoning, known ones or some of their form, although it was split.
pub fn holds_markers(text: &str) -> bool {
    let of_row =
        |row: &Markers| row.at != Place::StartWhole && (text.contains(row.open) || text.contains(row.close));
    text.contains(CHANNEL) || MARKERS.iter().any(of_row)
}

fn by_table(mut text: String, thoughts: &mut Vec<String>) -> String {
    if text.contains(CHANNEL) && text.contains(CHANNEL_TEXT) {
        return of_channels(&text, thoughts);
    }
    for row in MARKERS {
        match row.at {
            Place::Anywhere => text = without_blocks(text, row.open, row.close, thoughts),
            at => {
                while let Some((thought, rest)) = block_at_start(&text, row, at) {
                    thoughts.push(thought.to_owned());
                    text = rest.trim_start().to_owned();
                }
            }
        }
        if let Some((open, close)) = row.answer
            && let Some(inner) = text.trim_start().strip_prefix(open)
        {
            let inner = inner.trim_end();
            text = inner.strip_suffix(close).unwrap_or(inner).to_owned();
        }
    }
    text
}

/// The block that a text begins with, and what comes after it.
fn block_at_start<'a>(text: &'a str, row: &Markers, at: Place) -> Option<(&'a str, &'a str)> {
    // Some servers begin with a byte order mark.
    let begun = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    match begun.strip_prefix(row.open) {
        Some(inside) => match inside.split_once(row.close) {
            None if at == Place::StartWhole => None,
            None => Some((inside, "")),
            found => found,
        },
        None if at == Place::Start => text.split_once(row.close),
        None => None,
    }
}

/// The text without the blocks between these markers, which may be anywhere.
fn without_blocks(text: String, open: &str, close: &str, thoughts: &mut Vec<String>) -> String {
    if !text.contains(open) && !text.contains(close) {
        return text;
    }
    let (mut answer, mut block, mut inside) = (String::new(), String::new(), false);
    let mut rest = text.as_str();
    while let Some((at, tag)) = next_tag(rest, open, close) {
        let before = &rest[..at];
        rest = &rest[at + tag.len()..];
        if inside { &mut block } else { &mut answer }.push_str(before);
        if tag == open {
            inside = true;
            continue;
        }
        if !inside {
            // The template opened it: everything so far is reasoning.
            block = std::mem::take(&mut answer);
        }
        inside = false;
        thoughts.push(std::mem::take(&mut block));
        rest = rest.trim_start();
    }
    if inside {
        block.push_str(rest);
        thoughts.push(block);
    } else {
        answer.push_str(rest);
    }
    answer
}

/// The first tag of either kind, with its position.
fn next_tag<'a>(text: &str, open: &'a str, close: &'a str) -> Option<(usize, &'a str)> {
    match (text.find(open), text.find(close)) {
        (Some(opens), Some(closes)) if closes < opens => Some((closes, close)),
        (Some(opens), _) => Some((opens, open)),
        (None, closes) => closes.map(|at| (at, close)),
    }
}

/// The answer among channels; the others are thoughts.
fn of_channels(text: &str, thoughts: &mut Vec<String>) -> String {
    let mut answer = String::new();
    let mut channels = text.split(CHANNEL);
    // Before the first one stands who speaks, if anything.
    channels.next();
    for channel in channels {
        let (head, said) = channel.split_once(CHANNEL_TEXT).unwrap_or((channel, ""));
        let end = CHANNEL_ENDS.iter().filter_map(|end| said.find(end)).min().unwrap_or(said.len());
        match head.split_whitespace().next() {
            Some(CHANNEL_ANSWER) => answer.push_str(&said[..end]),
            _ => thoughts.push(said[..end].to_owned()),
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str) -> (String, Option<String>) {
        split(text.to_owned(), None, None)
    }

    #[test]
    fn blocks_are_taken_out_of_the_answer() {
        for (text, answer, reasoning) in [
            ("plain", "plain", None),
            ("I think> so", "I think> so", None),
            ("<think>a</think>\n\nb", "b", Some("a")),
            ("<think>\n\n</think>\n\nb", "b", None),
            ("x <think>a</think> y <think>b</think>z", "x y z", Some("a\nb")),
            // The template opened the block.
            ("a</think>\nb", "b", Some("a")),
            // The tokens ran out.
            ("<think>a <b", "", Some("a <b")),
            ("b<think>a", "b", Some("a")),
            // Nested, in earnest and in passing.
            ("<think>a<think>b</think>c</think>d", "d", Some("ab\nc")),
            ("<think>a<think>b</think>c", "c", Some("ab")),
            // One closing tag too many: what stood before it counts as thought.
            ("<think>a</think>b</think>c", "c", Some("a\nb")),
            ("<think></think>", "", None),
        ] {
            let (got_answer, got_reasoning) = parts(text);
            assert_eq!((got_answer.as_str(), got_reasoning.as_deref()), (answer, reasoning), "{text:?}");
        }
    }

    #[test]
    fn the_markers_of_every_row_are_known() {
        for row in MARKERS {
            let (open, close) = (row.open, row.close);
            let closed = parts(&format!("\n{open} a {close}\n b"));
            assert_eq!((closed.0.trim(), closed.1.as_deref().map(str::trim)), ("b", Some("a")), "{open}");
            let cut = parts(&format!("{open}a"));
            let unopened = parts(&format!("a{close}b"));
            if row.at == Place::StartWhole {
                assert!(cut.1.is_none() && unopened.1.is_none(), "{open}");
            } else {
                assert_eq!(cut, (String::new(), Some("a".to_owned())), "{open}");
                assert!(holds_markers(&format!("b{close}")), "{open}");
            }
            if matches!(row.at, Place::Anywhere | Place::Start) {
                assert_eq!(unopened, ("b".to_owned(), Some("a".to_owned())), "{open}");
            }
            if row.at == Place::StartOpened {
                let spoken = format!("An element {open} is {close}");
                assert_eq!(parts(&spoken), (spoken, None));
            }
            if let Some((begin, end)) = row.answer {
                assert_eq!(parts(&format!("{open}a{close}{begin}b{end}")).0, "b");
                assert_eq!(parts(&format!("{begin}b{end}")).0, "b");
            }
        }
        assert!(!holds_markers("I think so; analysis follows."));
    }

    #[test]
    fn the_answer_of_gpt_oss_is_its_last_channel() {
        let said = "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=x<|message|>b<|call|>\
                    <|start|>assistant<|channel|>final <|constrain|>json<|message|>c<|return|>";
        assert_eq!(parts(said), ("c".to_owned(), Some("a\nb".to_owned())));
        assert_eq!(parts("<|channel|>analysis<|message|>a").0, "", "the tokens ran out");
        assert_eq!(parts("analysisWe need it.assistantfinalc").0, "c");
    }

    #[test]
    fn a_model_may_have_markers_of_its_own_or_none() {
        let own = ReasoningMarks::Between { open: "((".into(), close: "))".into() };
        assert_eq!(
            split("((a))<think>b".into(), None, Some(&own)),
            ("<think>b".to_owned(), Some("a".to_owned()))
        );
        assert_eq!(split("a))b".into(), None, Some(&own)), ("b".to_owned(), Some("a".to_owned())));
        let off = split("<think>b".into(), Some("a".into()), Some(&ReasoningMarks::Off));
        assert_eq!(off, ("<think>b".to_owned(), Some("a".to_owned())));
    }

    #[test]
    fn the_servers_own_field_comes_first() {
        assert_eq!(
            split("<think>b</think>c".into(), Some("a".into()), None),
            ("c".to_owned(), Some("a\nb".to_owned()))
        );
        assert_eq!(split("c".into(), Some("a".into()), None), ("c".to_owned(), Some("a".to_owned())));
        assert_eq!(split("c".into(), Some(" ".into()), None), ("c".to_owned(), None));
    }

    proptest! {
        #[test]
        fn no_tag_is_ever_left_and_plain_text_never_changes(
            pieces in proptest::collection::vec(
                prop_oneof![Just("<think>".to_owned()), Just("</think>".to_owned()), "[a-z é\n]{0,6}"], 0..12)
        ) {
            let text = pieces.concat();
            let (answer, _) = parts(&text);
            prop_assert!(!answer.contains("<think>") && !answer.contains("</think>"));
            if !text.contains("think>") {
                prop_assert_eq!(answer, text);
            }
        }
    }
}
