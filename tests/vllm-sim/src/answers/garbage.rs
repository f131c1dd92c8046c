//! A model that answers with random words, as an untrained network does.

use super::{AnswerModel, SimAnswer, SimAsk, filler};
use crate::identity::Draw;

/// Answers with random words of fixed total length.
#[derive(Clone, Copy, Debug)]
pub struct Garbage {
    tokens: u32,
}

impl Garbage {
    /// Answers of so many tokens.
    pub fn new(tokens: u32) -> Self {
        Self { tokens }
    }
}

impl AnswerModel for Garbage {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        let mut draw = Draw::new(&[ask.identity.conversation, u64::from(ask.identity.round)]);
        SimAnswer::complete(filler::letters(&mut draw, self.tokens))
    }
}
