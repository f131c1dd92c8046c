//! Pairs of texts as token ids. vLLM's `/classify` takes no pairs: both sides are tokenized and joined here with the
//! separators that the model was trained on.

use domain::PairLayout;
use serde::{Deserialize, Serialize};

/// The tokens that a model's tokenizer puts around a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenFrame {
    /// Before the text, such as `<s>`.
    opening: Vec<u32>,
    /// After it, such as `</s>`.
    separator: u32,
}

impl TokenFrame {
    /// Derives the frame from the tokens of the empty text. `None` for tokenizers that put nothing after a text, such
    /// as those of chat models.
    pub(super) fn of_nothing(mut tokens: Vec<u32>) -> Option<Self> {
        let separator = tokens.pop()?;
        // A single token opens a text and does not end it.
        (!tokens.is_empty()).then_some(Self { opening: tokens, separator })
    }

    /// The pair as the model reads it. If a text spells a separator, the tokenizer produces the real separator token
    /// and could end the text early; such tokens are removed, so that all separators are ours.
    pub(super) fn join(&self, layout: PairLayout, premise: &[u32], hypothesis: &[u32]) -> Vec<u32> {
        let separators = match layout {
            PairLayout::DoubleSeparator => 2,
            PairLayout::SingleSeparator => 1,
        };
        let text = |tokens: &[u32]| -> Vec<u32> {
            tokens.iter().copied().filter(|token| !self.is_frame(*token)).collect()
        };
        let mut joined = self.opening.clone();
        joined.extend(text(premise));
        joined.extend(std::iter::repeat_n(self.separator, separators));
        joined.extend(text(hypothesis));
        joined.push(self.separator);
        joined
    }

    fn is_frame(&self, token: u32) -> bool {
        token == self.separator || self.opening.contains(&token)
    }
}

/// Body of vLLM's `POST /tokenize` for a text.
#[derive(Serialize)]
pub(super) struct TokenizeText<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a str,
    pub(super) add_special_tokens: bool,
}

/// Its answer.
#[derive(Deserialize)]
pub(super) struct TokenList {
    pub(super) tokens: Vec<u32>,
    /// The model's context in tokens.
    pub(super) max_model_len: Option<u32>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_are_joined_as_tokenizers_do() {
        // What RoBERTa's and BERT's tokenizers make of nothing, and of a pair.
        let roberta = TokenFrame::of_nothing(vec![0, 2]).unwrap();
        let joined = roberta.join(PairLayout::DoubleSeparator, &[69, 264], &[71]);
        assert_eq!(joined, [0, 69, 264, 2, 2, 71, 2]);
        let bert = TokenFrame::of_nothing(vec![101, 102]).unwrap();
        assert_eq!(bert.join(PairLayout::SingleSeparator, &[7], &[8, 9]), [101, 7, 102, 8, 9, 102]);
    }

    #[test]
    fn a_tokenizer_without_an_end_has_no_frame() {
        assert_eq!(TokenFrame::of_nothing(vec![]), None);
        assert_eq!(TokenFrame::of_nothing(vec![1]), None);
    }

    proptest! {
        #[test]
        fn no_text_brings_a_separator_of_its_own(
            premise in prop::collection::vec(0..6_u32, 0..20), hypothesis in prop::collection::vec(0..6_u32, 0..20)
        ) {
            let frame = TokenFrame::of_nothing(vec![0, 2]).unwrap();
            let joined = frame.join(PairLayout::DoubleSeparator, &premise, &hypothesis);
            let parts: Vec<Vec<u32>> = joined.split(|token| *token == 2).map(<[u32]>::to_vec).collect();
            let kept = |tokens: &[u32]| -> Vec<u32> {
                tokens.iter().copied().filter(|token| ![0, 2].contains(token)).collect()
            };
            let opened = [&[0][..], &kept(&premise)].concat();
            prop_assert_eq!(parts, vec![opened, vec![], kept(&hypothesis), vec![]]);
        }
    }
}
