//! A model that repeats the last message: the cheapest one, and useful to check what was sent.

use super::{AnswerModel, SimAnswer, SimAsk};

/// Answers with the last message.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl AnswerModel for Echo {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        SimAnswer::complete(ask.last_message())
    }
}
