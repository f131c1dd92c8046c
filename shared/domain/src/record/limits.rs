//! How much a record may hold besides the texts of its dialogue. Whoever has a worker's token writes records, and
//! whoever gives a run away writes its log; neither may fill the memory or the screen of those who read them.
//!
//! What failures and servers say is [cut where it is read](crate::cut_text), and a record with more of anything than dialogues
//! have [cannot be read](super::bounded), when it is accepted as when a log is opened, so no reader can forget to.

use std::io;

use serde::Serialize;

/// Maximum size of a record's id, in bytes. Ids of workers have 36.
pub const ID_BYTES_MAX: usize = 100;

/// Maximum rounds of a dialogue. The benchmark's own tasks have up to three.
pub const ROUNDS_MAX: usize = 100;

/// Maximum failed calls of a round. A worker gives a round up after 60 of a kind.
pub const FAILED_CALLS_MAX: usize = 1_000;

/// Maximum scores of a dialogue, groups and what is within them included.
pub const SCORES_MAX: usize = 10_000;

/// Maximum size of the names of these scores and of texts among them, of all together, in bytes.
pub const SCORE_BYTES_MAX: usize = 1 << 20;

/// Largest score that is accepted, by its absolute value. Scores are shares, or counts of what stands in one answer; far larger ones
/// would have means that nobody can show.
pub const SCORE_ABS_MAX: f64 = 1e12;

/// Maximum size of a record's [`Provenance`](crate::Provenance) as JSON, in bytes.
pub const PROVENANCE_BYTES_MAX: usize = 64 << 10;

/// Maximum size of what this version does not read of a record, in bytes of its JSON: fields of later versions, and what
/// was cut off from messages.
pub const UNREAD_BYTES_MAX: usize = 64 << 10;

/// The size of a value as JSON, in bytes, without writing it anywhere.
pub fn json_bytes(value: &impl Serialize) -> usize {
    struct Counted(usize);

    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // What cannot be serialised, of which records have nothing, counts as far as it was.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cut_text::{MESSAGE_BYTES_MAX, NAME_BYTES_MAX};
    use crate::outcome::Outcome;
    use crate::record::Record;

    /// A record without rounds.
    fn failed() -> Value {
        json!({
            "key": {"model": "m", "task": "t", "iteration": 0},
            "attempt": {"id": "id", "generation": 1, "number": 1, "worker": "w"},
            "started_at": "2025-01-01T00:00:00Z",
            "ended_at": "2025-01-01T00:00:01Z",
            "rounds": [],
            "outcome": {"state": "failed", "cause": "timeout", "message": "late"},
            "provenance": {
                "kgfleet": "0", "sampling": {}, "seed": 1,
                "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s"},
                "model": {"connector": "played", "requested": "m"},
            },
        })
    }

    fn read(change: impl FnOnce(&mut Value)) -> Result<Record, String> {
        let mut json = failed();
        change(&mut json);
        serde_json::from_str(&json.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_record_says_of_failures_is_read_as_one_short_line() {
        let long = format!("no\n\u{1b}[2J\u{202e}{}", "é".repeat(30 << 20));
        let call = json!({"at": "2025-01-01T00:00:00Z", "cause": "timeout", "message": long});
        let record = read(|json| {
            json["outcome"]["message"] = json!(long);
            json["failed_calls"] = json!([call]);
            json["provenance"]["model"]["reported"] = json!(long);
            json["provenance"]["model"]["system_fingerprint"] = json!(long);
        });
        let record = record.unwrap();
        let Outcome::Failed { message, .. } = &record.outcome else { panic!("{:?}", record.outcome) };
        let model = &record.provenance.model;
        let [reported, fingerprint] =
            [&model.reported, &model.system_fingerprint].map(|name| name.as_ref().unwrap());
        for (text, most) in [
            (message, MESSAGE_BYTES_MAX),
            (&record.failed_calls[0].message, MESSAGE_BYTES_MAX),
            (reported, NAME_BYTES_MAX),
            (fingerprint, NAME_BYTES_MAX),
        ] {
            assert!(text.len() <= most && text.starts_with("no  [2J é"), "{}", text.len());
        }
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!((json_bytes(&record), serde_json::from_str(&written).unwrap()), (written.len(), record));
        assert!(written.len() < 10_000, "{}", written.len());
    }

    #[test]
    fn a_record_with_more_of_anything_than_dialogues_have_cannot_be_read() {
        let call = json!({"at": "2025-01-01T00:00:00Z", "cause": "timeout", "message": ""});
        let round = json!({
            "prompt": {"kind": "first", "text": ""}, "prompted_at": "2025-01-01T00:00:00Z",
            "answer": {"text": ""}, "answered_at": "2025-01-01T00:00:00Z",
        });
        let failing = |count: usize| {
            let mut round = round.clone();
            round["failed_calls"] = json!(vec![call.clone(); count]);
            json!([round])
        };
        let names = |count: usize| -> Value { (0..count).map(|n| (n.to_string(), json!(0))).collect() };
        let scored = |scores: Value| json!({"state": "scored", "scores": scores, "infos": {}});
        let number = |score: Value| scored(json!({"mean": {"f1": score}}));
        let name = |bytes: usize| json!("n".repeat(bytes));
        let text = |bytes: usize| scored(json!({"x": "n".repeat(bytes)}));
        let cases: [(&str, &str, Value, Value); 13] = [
            (
                "rounds",
                "/rounds",
                json!(vec![round.clone(); ROUNDS_MAX]),
                json!(vec![round.clone(); ROUNDS_MAX + 1]),
            ),
            ("failed calls", "/rounds", failing(FAILED_CALLS_MAX), failing(FAILED_CALLS_MAX + 1)),
            (
                "failed calls",
                "/failed_calls",
                json!(vec![call.clone(); FAILED_CALLS_MAX]),
                json!(vec![call.clone(); FAILED_CALLS_MAX + 1]),
            ),
            // Two are the groups around them.
            (
                "scores",
                "/outcome",
                scored(json!({"0": names(SCORES_MAX - 3), "mean": 1})),
                scored(json!({"0": names(SCORES_MAX - 2), "mean": 1})),
            ),
            (
                "scores",
                "/outcome",
                scored(json!({"0": vec![json!([]); SCORES_MAX - 2]})),
                scored(json!({"0": vec![json!([]); SCORES_MAX - 1]})),
            ),
            ("names and texts of scores", "/outcome", text(SCORE_BYTES_MAX - 1), text(SCORE_BYTES_MAX)),
            (
                "names and texts of scores",
                "/outcome",
                scored(json!({"n".repeat(SCORE_BYTES_MAX): 0})),
                scored(json!({"n".repeat(SCORE_BYTES_MAX + 1): 0})),
            ),
            ("a score of", "/outcome", number(json!(1e12)), number(json!(1.7e308))),
            ("a score of", "/outcome", number(json!(-1_000_000_000_000_i64)), number(json!(i64::MIN))),
            ("a score of", "/outcome", number(json!(0)), number(json!(u64::MAX))),
            ("bytes of id", "/attempt/id", name(ID_BYTES_MAX), name(ID_BYTES_MAX + 1)),
            ("bytes in the name", "/attempt/worker", name(NAME_BYTES_MAX), name(NAME_BYTES_MAX + 1)),
            (
                "bytes of provenance",
                "/provenance/task/scorer",
                name(PROVENANCE_BYTES_MAX - 1_000),
                name(PROVENANCE_BYTES_MAX),
            ),
        ];
        for (what, place, fits, exceeds) in cases {
            let with = |value: &Value| {
                read(|json| match place {
                    "/failed_calls" => json["failed_calls"] = value.clone(),
                    place => *json.pointer_mut(place).unwrap() = value.clone(),
                })
            };
            assert_eq!(with(&fits).map(drop), Ok(()), "{what}");
            let refused = with(&exceeds).unwrap_err();
            assert!(refused.contains(what) && refused.contains("at most"), "{what}: {refused}");
        }
    }
}
