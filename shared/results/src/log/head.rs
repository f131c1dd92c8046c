//! The part of a record needed for counting and scoring. Parsing it costs a fraction of parsing the texts as well.

use domain::{DialogueKey, FailureCause, ModelUsage, Outcome, Record, RecordId, Scores, Usage};
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// The summary of a record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RecordHead {
    pub key: DialogueKey,
    pub attempt: AttemptHead,
    /// How it ended.
    pub outcome: OutcomeHead,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The sums of its rounds.
    #[serde(default)]
    rounds: RoundsHead,
    /// Failed calls of a round that never got its answer.
    #[serde(default)]
    failed_calls: Vec<IgnoredAny>,
    /// The scorer version; empty if the record has none.
    #[serde(rename = "provenance", default, deserialize_with = "scorer")]
    pub scorer: String,
}

/// The summary of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AttemptHead {
    /// Unique per record.
    pub id: RecordId,
    /// Generation of the run's queue.
    pub generation: u64,
}

/// The summary of an outcome.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "OutcomeFields")]
pub enum OutcomeHead {
    /// Evaluated, with these scores.
    Scored(Scores),
    /// Answered, without a score.
    Unscored {
        /// For this reason.
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
    scores: Option<Scores>,
    cause: Option<FailureCause>,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Scored,
    Unscored,
    Failed,
}

/// What the rounds used, without their texts.
#[derive(Clone, Debug, Default, PartialEq)]
struct RoundsHead {
    used: ModelUsage,
    /// Generated tokens as far as servers reported them.
    completion_tokens: u64,
}

impl<'de> Deserialize<'de> for RoundsHead {
    fn deserialize<D: Deserializer<'de>>(rounds: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RoundHead {
            prompted_at: Timestamp,
            answered_at: Timestamp,
            answer: AnswerHead,
            #[serde(default)]
            failed_calls: Vec<IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct AnswerHead {
            #[serde(default)]
            usage: Usage,
        }
        let rounds = Vec::<RoundHead>::deserialize(rounds)?;
        let (mut used, mut counts_all, mut completion_tokens) = (ModelUsage::default(), true, 0);
        for RoundHead { prompted_at, answered_at, answer, failed_calls } in rounds {
            let took_ms = answered_at.duration_since(prompted_at).as_millis();
            counts_all &= used.answered(&answer.usage, took_ms, failed_calls.len());
            completion_tokens += answer.usage.completion_tokens.unwrap_or_default();
        }
        used.end(counts_all);
        Ok(Self { used, completion_tokens })
    }
}

/// The scorer version of a provenance.
fn scorer<'de, D: Deserializer<'de>>(provenance: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct ProvenanceHead {
        task: TaskHead,
    }
    #[derive(Deserialize)]
    struct TaskHead {
        #[serde(default)]
        scorer: String,
    }
    Ok(ProvenanceHead::deserialize(provenance)?.task.scorer)
}

impl RecordHead {
    /// Parses the JSON of a [`Record`], without trailing data. Texts and infos are skipped.
    ///
    /// # Errors
    /// Not JSON, or not that of a record.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub fn of(record: &Record) -> Self {
        let attempt = AttemptHead { id: record.attempt.id.clone(), generation: record.attempt.generation };
        let outcome = match &record.outcome {
            Outcome::Scored { scores, .. } => OutcomeHead::Scored(scores.clone()),
            Outcome::Unscored { cause, message, .. } => {
                OutcomeHead::Unscored { cause: *cause, message: message.clone() }
            }
            Outcome::Failed { cause, message } => {
                OutcomeHead::Failed { cause: *cause, message: message.clone() }
            }
        };
        let tokens = record.rounds.iter().filter_map(|round| round.answer.usage.completion_tokens);
        let rounds =
            RoundsHead { used: ModelUsage::of_dialogue(&record.rounds, 0), completion_tokens: tokens.sum() };
        let failed_calls = vec![IgnoredAny; record.failed_calls.len()];
        let (key, ended_at) = (record.key.clone(), record.ended_at);
        let scorer = record.provenance.task.scorer.clone();
        Self { key, attempt, outcome, ended_at, rounds, failed_calls, scorer }
    }

    /// Generated tokens of all rounds, as far as the server reported them.
    pub fn completion_tokens(&self) -> u64 {
        self.rounds.completion_tokens
    }

    /// What its dialogue used.
    pub fn usage(&self) -> ModelUsage {
        let ModelUsage { failed_calls, .. } = self.rounds.used;
        ModelUsage { failed_calls: failed_calls + self.failed_calls.len() as u64, ..self.rounds.used }
    }
}

impl OutcomeHead {
    /// Whether there are scores.
    pub fn is_scored(&self) -> bool {
        matches!(self, Self::Scored(_))
    }

    /// Why there are no scores; `None` if there are.
    pub fn failure(&self) -> Option<FailureCause> {
        match self {
            Self::Scored(_) => None,
            Self::Unscored { cause, .. } | Self::Failed { cause, .. } => Some(*cause),
        }
    }
}

impl TryFrom<OutcomeFields> for OutcomeHead {
    type Error = &'static str;

    fn try_from(fields: OutcomeFields) -> Result<Self, Self::Error> {
        match fields.state {
            State::Scored => fields.scores.map(Self::Scored).ok_or("a scored record without `scores`"),
            State::Unscored => {
                let cause = fields.cause.ok_or("an unscored record without `cause`")?;
                Ok(Self::Unscored { cause, message: fields.message })
            }
            State::Failed => {
                let cause = fields.cause.ok_or("a failed record without `cause`")?;
                Ok(Self::Failed { cause, message: fields.message })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_unscored_record_is_neither_scored_nor_failed() {
        let mut record = testing::entry(3, "m", 1, true).record;
        let cause = FailureCause::JudgeUnparseable;
        record.outcome = Outcome::Unscored { cause, infos: domain::Infos::new(), message: "rubbish".into() };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
        let head = RecordHead::parse(&json).unwrap();
        assert_eq!(head, RecordHead::of(&record));
        assert_eq!(head.outcome, OutcomeHead::Unscored { cause, message: "rubbish".into() });
        assert_eq!((head.outcome.is_scored(), head.outcome.failure()), (false, Some(cause)));
    }

    #[test]
    fn a_head_is_read_from_json_as_from_the_record() {
        for scored in [true, false] {
            let record = testing::entry(3, "m", 1, scored).record;
            let json = serde_json::to_string(&record).unwrap();
            let head = RecordHead::parse(&json).unwrap();
            assert_eq!(head, RecordHead::of(&record));
            assert_eq!((head.outcome.is_scored(), head.outcome.failure().is_none()), (scored, scored));
            assert!(RecordHead::parse(&format!("{json},{json}")).is_err());
            assert!(
                RecordHead::parse(
                    &json.replace("\"scores\"", "\"sores\"").replace("\"cause\"", "\"because\"")
                )
                .is_err()
            );
        }
    }
}
