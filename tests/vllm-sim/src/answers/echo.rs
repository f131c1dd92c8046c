//! The model that repeats what it hears: the cheapest one, and handy for checking what was sent.

use super::{AnswerModel, Ask, SimAnswer};

/// Answers with the last message.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl AnswerModel for Echo {
    fn answer(&self, ask: &Ask<'_>) -> SimAnswer {
        SimAnswer::complete(ask.last_message())
    }
}
