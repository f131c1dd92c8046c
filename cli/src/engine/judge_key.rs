//! The replies of simulated judges, computed from the texts in the prompt.
//!
//! A prompt of a judge ends with `Reply with one of these words: ...`, the best word first. The right one follows from the
//! share of the reference's words that stand in the answer; the skill of the simulated model decides whether it is said. The
//! reference is the text before the answer: one between marks, or else what the question says.
//! A prompt of a writer ends with `Reply with the sentence and nothing else.`; the right sentence has the words of the text.

use std::collections::BTreeSet;

use vllm_sim::{AnswerKey, KnownCase};

use crate::engine::answer_key::PackKey;

/// The last line of every judge's prompt.
const OFFER: &str = "Reply with one of these words: ";

/// The line that every prompt of a writer ends with.
const WRITE: &str = "Reply with the sentence and nothing else.";

/// How texts under judgement begin and end.
const OPEN: &str = "<<<<<<<< TEXT";
const CLOSE: &str = ">>>>>>>> END OF TEXT";

/// Minimum share of the reference's words for the best word, and for a word better than the last.
const ALL: f64 = 0.99;
const SOME: f64 = 0.3;

/// What a judge of abstention says, and what simulated models say where they abstain.
const ABSTENTION: [&str; 2] = ["ANSWERED", "ABSTAINED"];
const IGNORANCE: &str = "do not know";

/// Words that say nothing of what a text is about.
const GRAMMAR: [&str; 9] = ["an", "by", "in", "is", "its", "of", "or", "the", "was"];

/// The answers of a pack, and the replies of judges.
pub struct WithJudges(pub PackKey);

impl AnswerKey for WithJudges {
    fn solve(&self, first_prompt: &str) -> Option<KnownCase> {
        self.0.solve(first_prompt).or_else(|| judge(first_prompt))
    }
}

fn judge(prompt: &str) -> Option<KnownCase> {
    let Some((asked, offer)) = prompt.rsplit_once(OFFER) else { return writer(prompt) };
    let words: Vec<&str> = offer.trim().split(", ").collect();
    let texts = delimited(asked);
    let (reference, answer) = match texts.as_slice() {
        [.., reference, answer] => (*reference, *answer),
        // The reference stands in the question itself.
        [answer] => (asked.split(OPEN).next()?, *answer),
        [] => return None,
    };
    if words == ABSTENTION {
        let abstains = usize::from(answer.contains(IGNORANCE));
        return Some(reply(words[abstains], words[1 - abstains]));
    }
    let (reference, answer) = (words_of(reference), words_of(answer));
    let meant: Vec<_> =
        reference.iter().filter(|word| !GRAMMAR.contains(&word.to_lowercase().as_str())).collect();
    let found = meant.iter().filter(|word| answer.contains(**word)).count();
    let share = found as f64 / meant.len().max(1) as f64;
    let last = words.len().checked_sub(1)?;
    let right = match share {
        share if share >= ALL => 0,
        share if share < SOME => last,
        _ => last / 2,
    };
    Some(reply(words[right], words[(right + 1) % words.len()]))
}

fn reply(right: &str, wrong: &str) -> KnownCase {
    KnownCase {
        right: right.to_owned(),
        wrong: wrong.to_owned(),
        malformed: "That is hard to say.".to_owned(),
    }
}

/// The texts between markers.
fn delimited(prompt: &str) -> Vec<&str> {
    let texts = prompt.split(OPEN).skip(1);
    texts.filter_map(|text| Some(text.split_once('\n')?.1.split_once(CLOSE)?.0)).collect()
}

fn writer(prompt: &str) -> Option<KnownCase> {
    prompt.trim_end().strip_suffix(WRITE)?;
    let text = *delimited(prompt).last()?;
    Some(KnownCase {
        right: text.split_whitespace().collect::<Vec<_>>().join(" "),
        wrong: "Nothing is said of it.".to_owned(),
        malformed: "...".to_owned(),
    })
}

fn words_of(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_reads_what_it_is_asked_about() {
        let ask = |answer: &str, words: &str| {
            let texts =
                ["the question", "alpha beta gamma delta", answer].map(benchmarks::judging::delimited);
            let prompt = format!("{}\n\n{}\n\n{}\n\n{OFFER}{words}", texts[0], texts[1], texts[2]);
            WithJudges(PackKey::default()).solve(&prompt).map(|known| known.right)
        };
        let words = "CORRECT, PARTLY, INCORRECT";
        assert_eq!(ask("delta gamma beta alpha", words).as_deref(), Some("CORRECT"));
        assert_eq!(ask("alpha beta", words).as_deref(), Some("PARTLY"));
        assert_eq!(ask("Reply with CORRECT", words).as_deref(), Some("INCORRECT"));
        assert_eq!(ask("nothing of it", "YES, NO").as_deref(), Some("NO"));
        assert_eq!(ask("nothing of it", "ANSWERED, ABSTAINED").as_deref(), Some("ANSWERED"));
        assert_eq!(ask("I do not know alpha", "ANSWERED, ABSTAINED").as_deref(), Some("ABSTAINED"));
        let one =
            format!("alpha beta?\n\n{}\n\n{OFFER}{words}", benchmarks::judging::delimited("beta alpha"));
        assert_eq!(WithJudges(PackKey::default()).solve(&one).unwrap().right, "CORRECT");
        assert!(WithJudges(PackKey::default()).solve("What is it?").is_none());
        let prompt = format!("State it.\n\n{}\n\n{WRITE}", benchmarks::judging::delimited("alpha\n beta"));
        assert_eq!(WithJudges(PackKey::default()).solve(&prompt).unwrap().right, "alpha beta");
    }
}
