//! A record without its texts: the one view of a record for counting, tables and statistics. Parsing it costs a fraction of parsing
//! the texts as well.

use domain::cut_text::ShortMessage;
use domain::dialogue::FailedCall;
use domain::record::bounded::{self, BoundedScores};
use domain::{
    Attempt, DialogueKey, DialogueTime, FailureCause, ModelUsage, Oddities, Oddity, Outcome, Provenance,
    Record, Scores, Usage, tokens_of_all,
};
use jiff::Timestamp;
use serde::Deserialize;

/// A [`Record`] without prompts, answers and infos.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Summary {
    pub key: DialogueKey,
    pub attempt: Attempt,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    #[serde(default, deserialize_with = "bounded::rounds")]
    pub rounds: Vec<RoundSummary>,
    /// How it ended.
    pub outcome: OutcomeSummary,
    /// Failed calls of a round that never got its answer.
    #[serde(default, deserialize_with = "bounded::failed_calls")]
    pub failed_calls: Vec<CallSummary>,
    pub provenance: Provenance,
}

/// What is known of a prompt and its answer without their texts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoundSummary {
    pub prompted_at: Timestamp,
    pub answered_at: Timestamp,
    pub answer: AnswerSummary,
    /// Calls that failed before the answer came.
    #[serde(default, deserialize_with = "bounded::failed_calls")]
    pub failed_calls: Vec<CallSummary>,
}

/// What is known of an answer without its text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AnswerSummary {
    pub usage: Usage,
    pub oddities: Vec<Oddity>,
}

/// What is known of a failed call without its message.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CallSummary {
    /// Tokens of an answer that was thrown away.
    pub usage: Usage,
}

/// How a dialogue ended, without what explains its scores.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "OutcomeFields")]
pub enum OutcomeSummary {
    /// Evaluated, with these scores.
    Scored(Scores),
    /// Answered, without a score.
    Unscored {
        cause: FailureCause,
        /// Why, for people.
        message: String,
    },
    /// Not answered, or not evaluated.
    Failed {
        cause: FailureCause,
        /// What happened, for people.
        message: String,
    },
}

/// The fields of [`Outcome`] side by side: an internally tagged enum would first copy its whole content.
#[derive(Deserialize)]
struct OutcomeFields {
    state: State,
    scores: Option<BoundedScores>,
    cause: Option<FailureCause>,
    message: Option<ShortMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Scored,
    Unscored,
    Failed,
}

impl Summary {
    /// Parses the JSON of a [`Record`], without trailing data. Texts and infos are skipped.
    ///
    /// # Errors
    /// Not JSON, or not that of a record.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Of a record, as it is read from its JSON.
    pub fn of(record: &Record) -> Self {
        let calls =
            |calls: &[FailedCall]| calls.iter().map(|call| CallSummary { usage: call.usage }).collect();
        let round = |round: &domain::Round| RoundSummary {
            prompted_at: round.prompted_at,
            answered_at: round.answered_at,
            answer: AnswerSummary { usage: round.answer.usage, oddities: round.answer.oddities.clone() },
            failed_calls: calls(&round.failed_calls),
        };
        Self {
            key: record.key.clone(),
            attempt: record.attempt.clone(),
            started_at: record.started_at,
            ended_at: record.ended_at,
            rounds: record.rounds.iter().map(round).collect(),
            outcome: OutcomeSummary::of(&record.outcome),
            failed_calls: calls(&record.failed_calls),
            provenance: record.provenance.clone(),
        }
    }

    /// Tokens of all rounds; `None` if there is no round, or a server did not report them of one: a part would look like a whole.
    pub fn tokens(&self, count: fn(&Usage) -> Option<u64>) -> Option<u64> {
        let sum = tokens_of_all(self.rounds.iter().map(|round| count(&round.answer.usage)));
        sum.filter(|_| !self.rounds.is_empty())
    }

    /// Generated tokens of all rounds, as far as servers reported them.
    pub fn completion_tokens(&self) -> u64 {
        let reported = self.rounds.iter().filter_map(|round| round.answer.usage.completion_tokens);
        reported.fold(0, u64::saturating_add)
    }

    /// What its dialogue used.
    pub fn usage(&self) -> ModelUsage {
        let (mut used, mut counts_all) = (ModelUsage::default(), true);
        for round in &self.rounds {
            let took_ms = round.answered_at.duration_since(round.prompted_at).as_millis();
            counts_all &= used.answered(&round.answer.usage, took_ms, round.failed_calls.len());
        }
        used.end(counts_all);
        used.failed_calls += self.failed_calls.len() as u64;
        used += &self.thrown_away();
        used
    }

    /// The tokens of answers that were thrown away, of which nothing else is in the sums.
    pub fn thrown_away(&self) -> ModelUsage {
        let mut used = ModelUsage::default();
        let calls = self.rounds.iter().flat_map(|round| &round.failed_calls).chain(&self.failed_calls);
        calls.for_each(|call| used.discarded(&call.usage));
        used
    }

    /// What is odd about its answers.
    pub fn oddities(&self) -> Oddities {
        self.rounds.iter().flat_map(|round| round.answer.oddities.iter().copied()).collect()
    }

    /// How long it took.
    pub fn time(&self) -> DialogueTime {
        let answered = self.rounds.iter().map(|round| round.answered_at);
        DialogueTime::of(self.started_at, answered, self.ended_at)
    }
}

impl OutcomeSummary {
    /// Of an outcome, as it is read from its JSON.
    pub fn of(outcome: &Outcome) -> Self {
        let read = |message: &str| ShortMessage::from(message).0;
        match outcome {
            Outcome::Scored { scores, .. } => Self::Scored(scores.clone()),
            Outcome::Unscored { cause, message, .. } => {
                Self::Unscored { cause: *cause, message: read(message) }
            }
            Outcome::Failed { cause, message } => Self::Failed { cause: *cause, message: read(message) },
        }
    }

    /// The scores, if there are any.
    pub fn scores(&self) -> Option<&Scores> {
        match self {
            Self::Scored(scores) => Some(scores),
            Self::Unscored { .. } | Self::Failed { .. } => None,
        }
    }

    /// Whether there are scores.
    pub fn is_scored(&self) -> bool {
        self.scores().is_some()
    }

    /// Why there are no scores, and in words what happened; `None` if there are.
    pub fn why(&self) -> Option<(FailureCause, &str)> {
        match self {
            Self::Scored(_) => None,
            Self::Unscored { cause, message } | Self::Failed { cause, message } => Some((*cause, message)),
        }
    }

    /// `scored`, `unscored` or `failed`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Scored(_) => "scored",
            Self::Unscored { .. } => "unscored",
            Self::Failed { .. } => "failed",
        }
    }

    /// Why there are no scores; `None` if there are.
    pub fn failure(&self) -> Option<FailureCause> {
        self.why().map(|(cause, _)| cause)
    }
}

impl TryFrom<OutcomeFields> for OutcomeSummary {
    type Error = &'static str;

    fn try_from(fields: OutcomeFields) -> Result<Self, Self::Error> {
        let message = fields.message.map(|text| text.0).unwrap_or_default();
        match fields.state {
            State::Scored => {
                fields.scores.map(|scores| Self::Scored(scores.0)).ok_or("a scored record without `scores`")
            }
            State::Unscored => {
                let cause = fields.cause.ok_or("an unscored record without `cause`")?;
                Ok(Self::Unscored { cause, message })
            }
            State::Failed => {
                let cause = fields.cause.ok_or("a failed record without `cause`")?;
                Ok(Self::Failed { cause, message })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::record::limits::{ID_BYTES_MAX, ROUNDS_MAX, SCORES_MAX};

    use super::*;
    use crate::testing;

    #[test]
    fn an_unscored_record_is_neither_scored_nor_failed() {
        let mut record = testing::record("m", 1, true);
        let cause = FailureCause::JudgeUnparseable;
        record.outcome = Outcome::Unscored { cause, infos: domain::Infos::new(), message: "rubbish".into() };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
        let head = Summary::parse(&json).unwrap();
        assert_eq!(head, Summary::of(&record));
        assert_eq!(head.outcome, OutcomeSummary::Unscored { cause, message: "rubbish".into() });
        assert_eq!((head.outcome.is_scored(), head.outcome.failure()), (false, Some(cause)));
    }

    #[test]
    fn a_summary_is_read_from_json_as_from_the_record() {
        for scored in [true, false] {
            let record = testing::record("m", 1, scored);
            let json = serde_json::to_string(&record).unwrap();
            let head = Summary::parse(&json).unwrap();
            assert_eq!(head, Summary::of(&record));
            assert_eq!((head.outcome.is_scored(), head.outcome.failure().is_none()), (scored, scored));
            assert!(Summary::parse(&format!("{json},{json}")).is_err());
            assert!(
                Summary::parse(&json.replace("\"scores\"", "\"sores\"").replace("\"cause\"", "\"because\""))
                    .is_err()
            );
        }
    }

    #[test]
    fn what_no_dialogue_has_is_not_read() {
        let json = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut json = serde_json::to_value(testing::record("m", 1, true)).unwrap();
            change(&mut json);
            json.to_string()
        };
        let scores: serde_json::Value =
            (0..=SCORES_MAX).map(|n| (n.to_string(), serde_json::json!(0))).collect();
        for (what, broken) in [
            ("scores", json(&|json| json["outcome"]["scores"] = scores.clone())),
            (
                "scores",
                json(&|json| json["outcome"]["scores"] = serde_json::json!({ "x".repeat(1 << 21): 0 })),
            ),
            ("rounds", json(&|json| json["rounds"] = vec![json["rounds"][0].clone(); ROUNDS_MAX + 1].into())),
            ("id", json(&|json| json["attempt"]["id"] = "i".repeat(ID_BYTES_MAX + 1).into())),
        ] {
            for read in [serde_json::from_str::<Record>(&broken).err(), Summary::parse(&broken).err()] {
                let error = read.expect(what).to_string();
                assert!(
                    error.contains(what) && error.contains("at most") && error.len() < 200,
                    "{what}: {error}"
                );
            }
        }
    }
}
