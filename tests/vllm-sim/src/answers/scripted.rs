//! The model that reads from a script. For answers computed by a function, implement [`AnswerModel`] with a closure.

use domain::FinishReason;
use serde::{Deserialize, Serialize};

use super::{AnswerModel, SimAnswer, SimAsk};

/// One answer of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// The answer's text.
    pub text: String,
    /// The thoughts before it; none by default.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Why the model stopped; `stop` by default.
    #[serde(default = "stop")]
    pub finish: FinishReason,
}

fn stop() -> FinishReason {
    FinishReason::Stop
}

impl From<&str> for ScriptedAnswer {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), reasoning: None, finish: FinishReason::Stop }
    }
}

/// Gives the answer of the round it is asked in, whatever the question; the last one repeats.
#[derive(Clone, Debug)]
pub struct ScriptedAnswers {
    answers: Vec<ScriptedAnswer>,
}

impl ScriptedAnswers {
    /// One answer per round. Without any answer the model says nothing at all.
    pub fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self { answers }
    }
}

impl AnswerModel for ScriptedAnswers {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        let round = ask.identity.round as usize;
        match self.answers.get(round).or(self.answers.last()) {
            Some(ScriptedAnswer { text, reasoning, finish }) => {
                SimAnswer { text: text.clone(), reasoning: reasoning.clone(), finish: finish.clone() }
            }
            None => SimAnswer::complete(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Message;

    use super::*;

    #[test]
    fn each_round_has_its_answer_and_the_last_repeats() {
        let model = ScriptedAnswers::new(vec!["one".into(), "two".into()]);
        let mut messages = vec![Message::user("p")];
        for expected in ["one", "two", "two"] {
            assert_eq!(model.answer(&SimAsk::new("m", &messages, 0)).text, expected);
            messages.extend([Message::assistant("a"), Message::user("again")]);
        }
    }
}
