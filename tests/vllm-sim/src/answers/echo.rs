//! The model that repeats what it hears: the cheapest one, and handy for checking what was sent.

use super::{AnswerModel, SimAnswer, SimAsk};

/// Answers with the last message.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl AnswerModel for Echo {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        SimAnswer::complete(ask.last_message())
    }
}
