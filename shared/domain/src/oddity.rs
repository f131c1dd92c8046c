//! What people should know of an answer, although it is one: that it was cut, is empty, or was withheld.
//!
//! A record says it of its answers once, when it is made ([`odd_answer`](crate::odd_answer)); summaries, tables and metrics count what
//! records say. A further oddity is a further variant with its words here.

named! {
    /// What is odd about an answer.
    pub enum Oddity {
        /// The limit of tokens cut it.
        Cut = "cut",
        /// It has no text, or only white space.
        Empty = "empty",
        /// A filter of the provider withheld it, or the rest of it.
        Filtered = "filtered",
        /// The server counted fewer tokens than the prompt can have, so it has cut the prompt.
        PromptCut = "prompt-cut",
        /// Its stream was ended, and the server did not say why the model stopped.
        NoFinishReason = "no-finish-reason",
        /// Its text holds markers of reasoning.
        ReasoningMarkers = "reasoning-markers",
    }
}

impl Oddity {
    /// What is said of so many answered dialogues of all.
    pub fn told(self, dialogues: u64, of: u64) -> String {
        let words = match self {
            Self::Cut => "answers were cut by the limit of tokens, `max_tokens` or the model's context",
            Self::Empty => "answers are empty",
            Self::Filtered => "answers were refused by a filter of the provider",
            Self::PromptCut => {
                "prompts have more words than their server counted tokens: it cuts them, so it needs a larger context"
            }
            Self::NoFinishReason => "answers came without a finish reason, so some of them may be cut off",
            Self::ReasoningMarkers => {
                "answers hold markers of reasoning; `reasoning` of the model says which are its own"
            }
        };
        format!("{dialogues} of {of} {words}")
    }
}

/// The oddities of an answer, or of all answers of a dialogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities(u8);

impl Oddities {
    fn bit(oddity: Oddity) -> u8 {
        1 << oddity as u8
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, oddity: Oddity) -> bool {
        self.0 & Self::bit(oddity) != 0
    }

    /// Whether a part of an answer or prompt is missing, or all of it.
    pub fn is_cut(self) -> bool {
        [Oddity::Cut, Oddity::Empty, Oddity::Filtered, Oddity::PromptCut]
            .into_iter()
            .any(|of| self.contains(of))
    }

    /// For tables, such as `cut, empty`.
    pub fn names(self) -> String {
        let names = Oddity::ALL.into_iter().filter(|oddity| self.contains(*oddity)).map(Oddity::as_str);
        names.collect::<Vec<_>>().join(", ")
    }

    /// How many of some dialogues are odd in each way; ways that do not occur are left out.
    pub fn count(dialogues: impl IntoIterator<Item = Self>) -> Vec<(Oddity, u64)> {
        let mut counts = Oddity::ALL.map(|oddity| (oddity, 0));
        for dialogue in dialogues {
            counts.iter_mut().for_each(|(oddity, count)| *count += u64::from(dialogue.contains(*oddity)));
        }
        counts.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

impl FromIterator<Oddity> for Oddities {
    fn from_iter<T: IntoIterator<Item = Oddity>>(oddities: T) -> Self {
        Self(oddities.into_iter().fold(0, |bits, oddity| bits | Self::bit(oddity)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialogues_are_counted_by_what_is_odd_about_them() {
        let both: Oddities = [Oddity::Empty, Oddity::Cut, Oddity::Cut].into_iter().collect();
        let marked: Oddities = [Oddity::ReasoningMarkers].into_iter().collect();
        let counts = Oddities::count([both, Oddities::default(), marked, both]);
        assert_eq!(counts, [(Oddity::Cut, 2), (Oddity::Empty, 2), (Oddity::ReasoningMarkers, 1)]);
        assert!(both.is_cut() && !marked.is_cut() && !marked.is_empty());
    }
}
