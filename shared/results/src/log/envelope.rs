//! One line of the log: `{"v":1,"ticket":7,"record":{…}}`.

use std::borrow::Cow;
use std::io::Write;

use domain::Record;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::LogError;
use super::frame::ENTRY_BYTES_MAX;
use crate::Summary;

/// The major version of written lines, and the newest that can be read. It is increased if an older reader would misread
/// the new format, not for a new optional field.
pub const FORMAT_VERSION: u32 = 1;

/// Prefix of every line of [`FORMAT_VERSION`]; the ticket follows.
const BEGIN: &str = "{\"v\":1,\"ticket\":";

/// Between ticket and record.
const MIDDLE: &str = ",\"record\":";

/// Suffix of every line.
const END: &str = "}\n";

/// A record with its ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry<R = Record> {
    /// Commit ticket: drawn before the entry is appended, rising within a run. It orders the records of a key if
    /// several writers append to several logs.
    pub ticket: u64,
    /// The outcome of one attempt at a dialogue, or a [part](Summary) of it.
    pub record: R,
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed<'a, R> {
    /// Commit ticket.
    pub ticket: u64,
    /// The requested part of the record.
    pub record: R,
    /// The whole record as JSON, as it was appended.
    pub json: Cow<'a, str>,
}

/// Why a line is not an entry.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, or not the JSON of an entry.
    #[error("not an entry: {0}")]
    Json(#[from] serde_json::Error),
    /// A newer major version.
    #[error("format version {0} is newer than this reader")]
    Newer(u32),
}

/// Appends a record given as JSON as one line, line feed included. [Check](check_raw) it before.
pub fn encode(ticket: u64, record: &str, line: &mut Vec<u8>) {
    line.reserve(BEGIN.len() + 20 + MIDDLE.len() + record.len() + END.len());
    // Writing to memory does not fail.
    let _ = write!(line, "{BEGIN}{ticket}{MIDDLE}{record}{END}");
}

/// Checks that a record given as JSON fits into a line: an object without line feeds and other control characters,
/// not too long. The caller must know that it is exactly one record, by [`Summary::parse`].
pub fn check_raw(record: &str) -> Result<(), LogError> {
    // JSON allows control characters only between tokens, where they are not needed.
    // The smallest of all bytes is found many bytes at a time, which the first small one is not.
    let control = record.bytes().fold(u8::MAX, u8::min) < 0x20;
    if control || !record.starts_with('{') || !record.ends_with('}') {
        return Err(LogError::NotALine { key: key_of(record) });
    }
    if record.len() > ENTRY_BYTES_MAX {
        let (key, bytes) = (key_of(record), record.len());
        return Err(LogError::EntryTooLong { key, bytes, limit: ENTRY_BYTES_MAX });
    }
    Ok(())
}

/// The dialogue of a record, for messages.
fn key_of(record: &str) -> String {
    Summary::parse(record).map_or_else(|_| "an unknown dialogue".to_owned(), |head| head.key.to_string())
}

/// Reads one line as an entry; unknown fields are ignored.
pub fn decode(line: &[u8]) -> Result<LogEntry, EnvelopeError> {
    parse(line).map(|Parsed { ticket, record, .. }| LogEntry { ticket, record })
}

/// Reads one line: the record or a part of it, and its JSON. `R` is `Record`, [`Summary`], or
/// [`IgnoredAny`](serde::de::IgnoredAny) for the JSON alone.
pub fn parse<R: DeserializeOwned>(line: &[u8]) -> Result<Parsed<'_, R>, EnvelopeError> {
    match parse_ours(line) {
        Some(parsed) => Ok(parsed?),
        None => parse_any(line),
    }
}

/// Parses a line in this program's own order of fields, in one pass. `None` for any other line.
fn parse_ours<R: DeserializeOwned>(line: &[u8]) -> Option<Result<Parsed<'_, R>, serde_json::Error>> {
    let text = std::str::from_utf8(line).ok()?;
    let (ticket, rest) = text.strip_prefix(BEGIN)?.split_once(MIDDLE)?;
    let ticket = ticket.parse().ok()?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<R>();
    let record = match values.next()? {
        Ok(record) => record,
        Err(error) => return Some(Err(error)),
    };
    let (json, end) = rest.split_at(values.byte_offset());
    (end.trim_end() == "}").then_some(Ok(Parsed { ticket, record, json: Cow::Borrowed(json) }))
}

/// Parses a line in any order of fields, or of another version.
fn parse_any<R: DeserializeOwned>(line: &[u8]) -> Result<Parsed<'_, R>, EnvelopeError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    #[derive(Deserialize)]
    struct Line {
        ticket: u64,
        record: Value,
    }
    // The version first, because the fields of a newer one are unknown.
    let Version { v } = serde_json::from_slice(line)?;
    if v > FORMAT_VERSION {
        return Err(EnvelopeError::Newer(v));
    }
    let Line { ticket, record } = serde_json::from_slice(line)?;
    let json = Cow::Owned(record.to_string());
    Ok(Parsed { ticket, record: serde_json::from_value(record)?, json })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::testing;

    #[test]
    fn an_entry_reads_back_also_with_fields_of_the_future() {
        let entry = testing::entry(7, "m", 3, true);
        let json = serde_json::to_string(&entry.record).unwrap();
        let mut line = Vec::new();
        encode(7, &json, &mut line);
        assert!(line.starts_with(b"{\"v\":1,\"ticket\":7,"));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(decode(&line).unwrap(), entry);
        let text = String::from_utf8(line).unwrap();
        for future in [
            text.replace("\"ticket\"", "\"hue\":[1],\"ticket\""),
            text.replace("}\n", ",\"hue\":{\"record\":{}}}\n"),
            text.replace("{\"v\":1,", "{ \"v\": 1, "),
        ] {
            assert_eq!(decode(future.as_bytes()).unwrap(), entry);
            assert_eq!(parse::<IgnoredAny>(future.as_bytes()).unwrap().json, json);
        }
    }

    #[test]
    fn a_newer_major_version_is_refused_whatever_it_holds() {
        assert!(matches!(decode(b"{\"v\":2,\"blob\":\"x\"}"), Err(EnvelopeError::Newer(2))));
        assert!(matches!(decode(b"{\"v\":1,\"blob\":\"x\"}"), Err(EnvelopeError::Json(_))));
        assert!(matches!(decode(b"{\"v\":1,\"ticket\":1,\"record\":\xff}"), Err(EnvelopeError::Json(_))));
    }

    proptest! {
        #[test]
        fn a_line_holds_the_record_that_was_given(
            ticket: u64, iteration: u32, scored: bool, model in ".*", answer in ".*",
        ) {
            let mut entry = testing::entry(ticket, &model, iteration, scored);
            entry.record.rounds[0].answer.text = answer;
            let json = serde_json::to_string(&entry.record).unwrap();
            let mut line = Vec::new();
            check_raw(&json).unwrap();
            encode(ticket, &json, &mut line);
            let parsed = parse::<Summary>(&line).unwrap();
            prop_assert_eq!(parsed.ticket, ticket);
            prop_assert_eq!(parsed.record, Summary::of(&entry.record));
            prop_assert_eq!(parsed.json, json);
        }
    }

    #[test]
    fn what_would_break_the_lines_is_refused_by_name() {
        let json = serde_json::to_string(&testing::entry(1, "m", 4, true).record).unwrap();
        for broken in [format!("{json}\n"), json.replace("\":", "\":\r\n"), json.replace("\":", "\":\t")] {
            let error = check_raw(&broken).unwrap_err().to_string();
            assert!(error.contains("m/RdfFriendCount-turtle-1/4"), "{error}");
        }
        for broken in ["", "[]", "1", "{", " {}"] {
            assert!(matches!(check_raw(broken), Err(LogError::NotALine { .. })), "{broken}");
        }
    }
}
