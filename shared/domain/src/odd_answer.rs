//! Finds what is [odd](crate::oddity) about an answer.

use crate::chat::FinishReason;
use crate::dialogue::Answer;
use crate::oddity::Oddity;

/// Notes what is odd about an answer to these texts, beside what its connector has noted.
pub fn note_oddities<'a>(answer: &mut Answer, asked: impl IntoIterator<Item = &'a str>) {
    let least: u64 = asked.into_iter().map(least_tokens).sum();
    let counted = answer.usage.prompt_tokens.filter(|tokens| *tokens > 0);
    let (tokens, words) = TOKENS_PER_WORDS;
    let found = [
        (Oddity::Cut, answer.finish_reason == Some(FinishReason::Length)),
        (Oddity::Empty, answer.text.trim().is_empty()),
        (Oddity::Filtered, answer.finish_reason == Some(FinishReason::ContentFilter)),
        (
            Oddity::PromptCut,
            least >= PROMPT_WORDS_MIN
                && counted
                    .is_some_and(|counted| counted.saturating_mul(words) < least.saturating_mul(tokens)),
        ),
    ];
    answer.oddities.extend(found.into_iter().filter(|(_, is_so)| *is_so).map(|(oddity, _)| oddity));
}

/// Words of a prompt below which no count of tokens says that it was cut: every server reads as many.
const PROMPT_WORDS_MIN: u64 = 256;

/// A prompt was cut if its server counted fewer than 3 tokens for 4 words. Usual tokenizers split at the ends of words, so
/// each word takes a token at least, English prose takes 1.3 and Turtle more than 2; the few tokenizers that join words take 0.85.
const TOKENS_PER_WORDS: (u64, u64) = (3, 4);

/// Bytes of a word for which every tokenizer takes a token at least, so that texts without spaces count, too.
const TOKEN_BYTES_MAX: usize = 16;

/// The fewest tokens that a text has with a tokenizer that does not join words: one for each run of letters and each run of
/// digits. Punctuation and white space count nothing, because a token may hold much of them.
fn least_tokens(text: &str) -> u64 {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 2,
        _ => 0,
    };
    let runs = text.as_bytes().chunk_by(|one, next| kind(*one) == kind(*next));
    runs.filter(|run| kind(run[0]) > 0).map(|run| (run.len() / TOKEN_BYTES_MAX).max(1) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Usage;
    use crate::oddity::Oddities;

    fn odd(answer: Answer, asked: &str) -> String {
        let mut answer = answer;
        note_oddities(&mut answer, ["You answer.", asked]);
        answer.oddities.into_iter().collect::<Oddities>().names()
    }

    #[test]
    fn an_answer_says_what_it_lacks() {
        let answer =
            |text: &str, reason| Answer { finish_reason: Some(reason), ..Answer::text(text.to_owned()) };
        assert_eq!(odd(answer("yes", FinishReason::Stop), "well?"), "");
        assert_eq!(odd(answer(" \n", FinishReason::Stop), "well?"), "empty");
        assert_eq!(odd(answer("", FinishReason::Length), "well?"), "cut, empty");
        assert_eq!(odd(answer("ye", FinishReason::ContentFilter), "well?"), "filtered");
        let known = Answer { oddities: vec![Oddity::ReasoningMarkers], ..answer("", FinishReason::Length) };
        assert_eq!(odd(known, "well?"), "cut, empty, reasoning-markers");
    }

    #[test]
    fn a_prompt_is_cut_whose_tokens_are_fewer_than_its_words_can_be() {
        let counted = |tokens, asked: &str| {
            let usage = Usage { prompt_tokens: tokens, ..Usage::default() };
            odd(Answer { usage, ..Answer::text("yes") }, asked) == "prompt-cut"
        };
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(1_000);
        assert!(counted(Some(4_096), &prose) && counted(Some(6_700), &prose));
        // With a tokenizer that joins words, with a usual one, and where nobody counted.
        assert!(!counted(Some(7_700), &prose) && !counted(Some(10_001), &prose));
        assert!(!counted(None, &prose) && !counted(Some(0), &prose));
        assert!(!counted(Some(1), &"word ".repeat(200)), "every server reads as much");
        // Few tokens may hold much white space and punctuation.
        assert!(!counted(Some(300), &format!("{}{}", " ".repeat(100_000), "word = ".repeat(350))));
        // Without spaces: Chinese has two characters in a token, and no tokenizer has ten.
        let chinese = "知识图谱是一种".repeat(1_500);
        assert!(counted(Some(1_000), &chinese) && !counted(Some(5_000), &chinese));
        let turtle = ":a1 foaf:knows :b2 ; rdfs:label \"A 1\"@en .\n".repeat(500);
        assert!(counted(Some(2_048), &turtle) && !counted(Some(9_000), &turtle));
    }
}
