//! The part of a record that counting and scoring need: reading it costs a fraction of reading texts, too.

use domain::{DialogueKey, FailureCause, Outcome, Record, RecordId, Scores};
use serde::Deserialize;

/// What a record says in short.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RecordHead {
    /// Which dialogue.
    pub key: DialogueKey,
    /// Which attempt.
    pub attempt: AttemptHead,
    /// How it ended.
    pub outcome: OutcomeHead,
}

/// An attempt in short.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AttemptHead {
    /// Unique per record.
    pub id: RecordId,
    /// Generation of the run's queue.
    pub generation: u64,
}

/// An outcome in short.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "OutcomeFields")]
pub enum OutcomeHead {
    /// Evaluated, with these scores.
    Scored(Scores),
    /// Not evaluated, for this reason.
    Failed(FailureCause),
}

/// The fields of [`Outcome`] beside each other: an enum with an inner tag would first copy everything it holds.
#[derive(Deserialize)]
struct OutcomeFields {
    state: State,
    #[serde(default)]
    scores: Option<Scores>,
    #[serde(default)]
    cause: Option<FailureCause>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Scored,
    Failed,
}

impl RecordHead {
    /// Reads the JSON of a [`Record`], and nothing behind it. Times, texts, infos and provenance are passed over, as JSON
    /// only.
    ///
    /// # Errors
    /// Not JSON, or not that of a record.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Of a record.
    pub fn of(record: &Record) -> Self {
        let attempt = AttemptHead { id: record.attempt.id.clone(), generation: record.attempt.generation };
        let outcome = match &record.outcome {
            Outcome::Scored { scores, .. } => OutcomeHead::Scored(scores.clone()),
            Outcome::Failed { cause, .. } => OutcomeHead::Failed(*cause),
        };
        Self { key: record.key.clone(), attempt, outcome }
    }
}

impl OutcomeHead {
    /// Whether there are scores.
    pub fn is_scored(&self) -> bool {
        matches!(self, Self::Scored(_))
    }

    /// Why there are none; `None` when there are.
    pub fn failure(&self) -> Option<FailureCause> {
        match self {
            Self::Scored(_) => None,
            Self::Failed(cause) => Some(*cause),
        }
    }
}

impl TryFrom<OutcomeFields> for OutcomeHead {
    type Error = &'static str;

    fn try_from(fields: OutcomeFields) -> Result<Self, Self::Error> {
        match fields.state {
            State::Scored => fields.scores.map(Self::Scored).ok_or("a scored record without `scores`"),
            State::Failed => fields.cause.map(Self::Failed).ok_or("a failed record without `cause`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

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
