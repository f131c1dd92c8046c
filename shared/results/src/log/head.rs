//! The part of a record needed for counting and scoring. Parsing it costs a fraction of parsing the texts as well.

use domain::cut_text::{ShortMessage, ShortName};
use domain::record::bounded::{self, BoundedScores};
use domain::{
    DialogueKey, FailureCause, ModelUsage, Oddities, Oddity, Outcome, Record, RecordId, Scores, Usage,
};
use jiff::Timestamp;
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
    #[serde(default, deserialize_with = "bounded::failed_calls")]
    failed_calls: Vec<FailedCallHead>,
    /// The scorer version; empty if the record has none.
    #[serde(rename = "provenance", default, deserialize_with = "scorer")]
    pub scorer: String,
}

/// The summary of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AttemptHead {
    /// Unique per record.
    #[serde(deserialize_with = "bounded::id")]
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

/// What the rounds used, without their texts.
#[derive(Clone, Debug, Default, PartialEq)]
struct RoundsHead {
    used: ModelUsage,
    /// Generated tokens as far as servers reported them.
    completion_tokens: u64,
    /// What is odd about its answers.
    oddities: Oddities,
}

/// The summary of a failed call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct FailedCallHead {
    usage: Usage,
}

impl<'de> Deserialize<'de> for RoundsHead {
    fn deserialize<D: Deserializer<'de>>(rounds: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RoundHead {
            prompted_at: Timestamp,
            answered_at: Timestamp,
            answer: AnswerHead,
            #[serde(default, deserialize_with = "bounded::failed_calls")]
            failed_calls: Vec<FailedCallHead>,
        }
        #[derive(Deserialize)]
        struct AnswerHead {
            #[serde(default)]
            usage: Usage,
            #[serde(default)]
            oddities: Vec<Oddity>,
        }
        let rounds = bounded::rounds::<_, RoundHead>(rounds)?;
        let (mut used, mut counts_all, mut completion_tokens) = (ModelUsage::default(), true, 0);
        let (mut thrown_away, mut oddities) = (ModelUsage::default(), Vec::new());
        for RoundHead { prompted_at, answered_at, answer, failed_calls } in rounds {
            let took_ms = answered_at.duration_since(prompted_at).as_millis();
            counts_all &= used.answered(&answer.usage, took_ms, failed_calls.len());
            let tokens = answer.usage.completion_tokens.unwrap_or_default();
            completion_tokens = u64::saturating_add(completion_tokens, tokens);
            failed_calls.iter().for_each(|call| thrown_away.discarded(&call.usage));
            oddities.extend(answer.oddities);
        }
        used.end(counts_all);
        used += &thrown_away;
        Ok(Self { used, completion_tokens, oddities: oddities.into_iter().collect() })
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
        scorer: Option<ShortName>,
    }
    let scorer = ProvenanceHead::deserialize(provenance)?.task.scorer;
    Ok(scorer.map(|text| text.0).unwrap_or_default())
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
        let outcome = OutcomeHead::of(&record.outcome);
        let tokens = record.rounds.iter().filter_map(|round| round.answer.usage.completion_tokens);
        let completion_tokens = tokens.fold(0, u64::saturating_add);
        let oddities = record.rounds.iter().flat_map(|round| round.answer.oddities.iter().copied()).collect();
        let used = ModelUsage::of_dialogue(&record.rounds, []);
        let rounds = RoundsHead { used, completion_tokens, oddities };
        let failed_calls =
            record.failed_calls.iter().map(|call| FailedCallHead { usage: call.usage }).collect();
        let (key, ended_at) = (record.key.clone(), record.ended_at);
        let scorer = ShortName::from(record.provenance.task.scorer.as_str()).0;
        Self { key, attempt, outcome, ended_at, rounds, failed_calls, scorer }
    }

    /// Generated tokens of all rounds, as far as the server reported them.
    pub fn completion_tokens(&self) -> u64 {
        self.rounds.completion_tokens
    }

    /// What its dialogue used.
    pub fn usage(&self) -> ModelUsage {
        let mut used = self.rounds.used;
        used.failed_calls += self.failed_calls.len() as u64;
        self.failed_calls.iter().for_each(|call| used.discarded(&call.usage));
        used
    }

    /// What is odd about its answers.
    pub fn oddities(&self) -> Oddities {
        self.rounds.oddities
    }
}

impl OutcomeHead {
    /// As it is read from the JSON of the outcome.
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

    #[test]
    fn what_no_dialogue_has_is_not_read() {
        let json = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut json = serde_json::to_value(testing::entry(3, "m", 1, true).record).unwrap();
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
            for read in [serde_json::from_str::<Record>(&broken).err(), RecordHead::parse(&broken).err()] {
                let error = read.expect(what).to_string();
                assert!(
                    error.contains(what) && error.contains("at most") && error.len() < 200,
                    "{what}: {error}"
                );
            }
        }
    }
}
