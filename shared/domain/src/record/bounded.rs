//! Reads the parts of a record of which there may be [so many at most](super::limits), and stops where there are more: a text of
//! some megabytes may hold millions.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::limits::{
    FAILED_CALLS_MAX, ID_BYTES_MAX, PROVENANCE_BYTES_MAX, ROUNDS_MAX, SCORE_ABS_MAX, SCORE_BYTES_MAX,
    SCORES_MAX, json_bytes,
};
use crate::Scores;
use crate::cut_text::NAME_BYTES_MAX;
use crate::ids::{RecordId, WorkerId};
use crate::provenance::Provenance;

fn excess<E: Error>(what: &str, most: usize) -> E {
    E::custom(format_args!("too many {what}; at most {most} are accepted"))
}

/// For rounds, or a part of each.
///
/// # Errors
/// There are more than [`ROUNDS_MAX`], or one cannot be read.
pub fn rounds<'de, D: Deserializer<'de>, T: Deserialize<'de>>(rounds: D) -> Result<Vec<T>, D::Error> {
    rounds.deserialize_seq(List { what: "rounds", most: ROUNDS_MAX, of: PhantomData })
}

/// For failed calls, or a part of each.
///
/// # Errors
/// There are more than [`FAILED_CALLS_MAX`], or one cannot be read.
pub fn failed_calls<'de, D: Deserializer<'de>, T: Deserialize<'de>>(calls: D) -> Result<Vec<T>, D::Error> {
    calls.deserialize_seq(List { what: "failed calls", most: FAILED_CALLS_MAX, of: PhantomData })
}

/// For the id of a record.
///
/// # Errors
/// It is no text, or one of more than [`ID_BYTES_MAX`].
pub fn id<'de, D: Deserializer<'de>>(id: D) -> Result<RecordId, D::Error> {
    id.deserialize_str(Text { what: "bytes of id", most: ID_BYTES_MAX }).map(RecordId::new)
}

/// For the name of a worker.
///
/// # Errors
/// It is no text, or one of more than [`NAME_BYTES_MAX`].
pub fn worker<'de, D: Deserializer<'de>>(name: D) -> Result<WorkerId, D::Error> {
    name.deserialize_str(Text { what: "bytes in the name of its worker", most: NAME_BYTES_MAX })
        .map(WorkerId::new)
}

/// For the provenance.
///
/// # Errors
/// It has more than [`PROVENANCE_BYTES_MAX`], or cannot be read.
pub fn provenance<'de, D: Deserializer<'de>>(provenance: D) -> Result<Provenance, D::Error> {
    let read = Provenance::deserialize(provenance)?;
    if json_bytes(&read) <= PROVENANCE_BYTES_MAX {
        Ok(read)
    } else {
        Err(excess("bytes of provenance", PROVENANCE_BYTES_MAX))
    }
}

/// Scores that are read within bounds.
pub struct BoundedScores(pub Scores);

impl<'de> Deserialize<'de> for BoundedScores {
    fn deserialize<D: Deserializer<'de>>(scores: D) -> Result<Self, D::Error> {
        let mut left = Left { values: SCORES_MAX, bytes: SCORE_BYTES_MAX };
        match (Within { left: &mut left }).deserialize(scores)? {
            Value::Object(scores) => Ok(Self(scores)),
            _ => Err(D::Error::custom("scores are not an object")),
        }
    }
}

struct List<T> {
    what: &'static str,
    most: usize,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(part) = list.next_element()? {
            if read.len() == self.most {
                return Err(excess(self.what, self.most));
            }
            read.push(part);
        }
        Ok(read)
    }
}

struct Text {
    what: &'static str,
    most: usize,
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        if text.len() <= self.most { Ok(text.to_owned()) } else { Err(excess(self.what, self.most)) }
    }
}

/// How much more scores may hold.
struct Left {
    values: usize,
    /// Of names and texts.
    bytes: usize,
}

impl Left {
    fn take_value<E: Error>(&mut self) -> Result<(), E> {
        self.values = self.values.checked_sub(1).ok_or_else(|| excess("scores", SCORES_MAX))?;
        Ok(())
    }

    fn take_number<E: Error>(&mut self, value: f64) -> Result<(), E> {
        if value.abs() > SCORE_ABS_MAX {
            return Err(E::custom(format_args!(
                "a score of {value:e}; at most {SCORE_ABS_MAX:e} is accepted"
            )));
        }
        self.take_value()
    }

    fn take_text<E: Error>(&mut self, text: &str) -> Result<(), E> {
        let left = self.bytes.checked_sub(text.len());
        self.bytes = left.ok_or_else(|| excess("bytes in names and texts of scores", SCORE_BYTES_MAX))?;
        Ok(())
    }
}

/// Reads any JSON of which this much is left.
struct Within<'a> {
    left: &'a mut Left,
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scores")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.left.take_value().map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.left.take_value().map(|()| value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.left.take_number(value as f64).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.left.take_number(value as f64).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.left.take_number(value).map(|()| Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.left.take_value()?;
        self.left.take_text(text)?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        // One that holds nothing counts too, so that nothing is free.
        self.left.take_value()?;
        let mut read = Vec::new();
        while let Some(value) = list.next_element_seed(Within { left: &mut *self.left })? {
            read.push(value);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.left.take_value()?;
        let mut read = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            self.left.take_text(&name)?;
            read.insert(name, fields.next_value_seed(Within { left: &mut *self.left })?);
        }
        Ok(Value::Object(read))
    }
}
