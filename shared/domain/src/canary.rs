//! Canary prompts: a few short questions to every server of a model each time it was loaded. Servers that run the same
//! weights in the same way give the same answers to most of them.
//!
//! Not to all, even where the likeliest token is always taken: what a server computes at the same time changes the last
//! digits of its numbers, and where two tokens are about as likely, these decide. So a server is called unlike another
//! only if more than [`DIFFERING_MAX`] answers differ. That shows what is badly wrong, such as other weights, a broken
//! load or another chat template. What is a little wrong shows in scores alone.

use std::fmt;

use sha2::{Digest, Sha256};

/// The questions. Whoever changes one changes [`SET`], too.
pub const PROMPTS: [&str; 8] = [
    "Name three colours of the rainbow, separated by commas.",
    "Continue this series with four more numbers: 3, 6, 12, 24",
    "Write one sentence about a lighthouse in the fog.",
    "Translate into German: The library opens at nine.",
    "Which of these can be eaten: a lamp, a carrot, a stone? Answer with one word.",
    "Write one RDF triple in Turtle which says that ex:Anna knows ex:Bert.",
    "What is 17 times 23? Answer with the number only.",
    "Say in a few words what a graph database stores.",
];

/// The number of this set of questions: answers to another set cannot be compared.
const SET: u32 = 1;

/// The longest answer, in tokens.
pub const TOKENS_MAX: u32 = 24;

/// The sampling seed. Nothing is drawn at temperature 0, but some servers choose a seed if they get none.
pub const SEED: u64 = 1;

/// Two servers that answer so many questions differently may still be equal.
pub const DIFFERING_MAX: usize = 4;

/// How a server answered the questions: a short hash of each answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanaryPrint([u16; PROMPTS.len()]);

impl CanaryPrint {
    /// Of an answer to each question, in their order; `None` if some are missing.
    pub fn of(answers: &[String]) -> Option<Self> {
        let hash = |answer: &String| {
            let digest = Sha256::digest(answer);
            u16::from_be_bytes([digest[0], digest[1]])
        };
        let hashes: Vec<u16> = answers.iter().map(hash).collect();
        hashes.try_into().ok().map(Self)
    }

    /// What [`Display`](fmt::Display) wrote; `None` of anything else, and of another set of questions.
    pub fn read(text: &str) -> Option<Self> {
        let (set, hashes) = text.split_once(':')?;
        let hashes = hashes.split('-').map(|hash| u16::from_str_radix(hash, 16).ok());
        let hashes: Vec<u16> = hashes.collect::<Option<_>>()?;
        let hashes = hashes.try_into().ok()?;
        (set.parse() == Ok(SET)).then_some(Self(hashes))
    }

    /// The numbers, from 1, of the questions that another server answered differently.
    pub fn differing(&self, other: &Self) -> Vec<usize> {
        let answers = self.0.iter().zip(&other.0).enumerate();
        answers.filter(|(_, (own, others))| own != others).map(|(place, _)| place + 1).collect()
    }
}

impl fmt::Display for CanaryPrint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hashes: Vec<String> = self.0.iter().map(|hash| format!("{hash:04x}")).collect();
        write!(f, "{SET}:{}", hashes.join("-"))
    }
}

/// For each of several servers, the numbers of the questions that it answered as fewer than half of the others did.
pub fn unlike_most(prints: &[CanaryPrint]) -> Vec<Vec<usize>> {
    let others = prints.len().saturating_sub(1);
    let unlike = |print: &CanaryPrint| -> Vec<usize> {
        let is_unlike = |place: usize| {
            // It is one of those that agree with it.
            let agreeing = prints.iter().filter(|other| other.0[place] == print.0[place]).count() - 1;
            2 * agreeing < others
        };
        (0..PROMPTS.len()).filter(|place| is_unlike(*place)).map(|place| place + 1).collect()
    };
    prints.iter().map(unlike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers are "yes" but those to these questions.
    fn print(otherwise: &[usize]) -> CanaryPrint {
        let answer = |number: usize| if otherwise.contains(&number) { "no" } else { "yes" }.to_owned();
        CanaryPrint::of(&(1..=PROMPTS.len()).map(answer).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_print_is_read_as_it_was_written_and_nothing_else_is_one() {
        let text = print(&[2]).to_string();
        assert!(text.starts_with("1:8a79-9390-8a79-"), "{text}");
        assert_eq!(CanaryPrint::read(&text), Some(print(&[2])));
        for other in ["", "1:", "1:8a79", "9390", &format!("2{}", &text[1..]), &format!("{text}-0000")] {
            assert_eq!(CanaryPrint::read(other), None, "{other}");
        }
        assert_eq!(CanaryPrint::of(&["yes".to_owned()]), None);
    }

    #[test]
    fn answers_are_compared_one_by_one() {
        assert_eq!(print(&[2, 5]).differing(&print(&[5, 8])), [2, 8]);
        assert!(print(&[3]).differing(&print(&[3])).is_empty());
    }

    #[test]
    fn of_two_that_differ_both_are_unlike_and_of_three_one_is() {
        let (usual, other) = (|| print(&[]), || print(&[1, 7]));
        assert_eq!(unlike_most(&[usual(), other()]), [[1, 7], [1, 7]]);
        assert_eq!(unlike_most(&[usual(), other(), usual()]), [vec![], vec![1, 7], vec![]]);
        assert!(unlike_most(&[other()])[0].is_empty() && unlike_most(&[]).is_empty());
    }
}
