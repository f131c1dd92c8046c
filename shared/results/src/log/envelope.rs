//! One line of the log: `{"v":1,"record":{…}}`, or `{"v":1,"event":{…}}` for what happened to its run.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::error::LogError;
use super::frame::ENTRY_BYTES_MAX;
use crate::Summary;

/// The major version of written lines, and the newest that can be read. It is increased if an older reader would misread
/// the new format, not for a new optional field.
pub const FORMAT_VERSION: u32 = 1;

/// Prefix of a record of [`FORMAT_VERSION`].
const RECORD: &str = "{\"v\":1,\"record\":";

/// Prefix of an event.
const EVENT: &str = "{\"v\":1,\"event\":";

/// Suffix of every line.
const END: &str = "}\n";

/// What is written as a line: JSON without line feeds, as `serde_json` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLine<T = Arc<str>> {
    /// The outcome of one attempt at a dialogue.
    Record(T),
    /// What happened to the run. Its writer defines the content.
    Event(T),
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed<'a, R> {
    Record {
        /// The requested part of the record.
        record: R,
        /// The whole record as JSON, as it was appended.
        json: Cow<'a, str>,
    },
    /// An event as JSON.
    Event(Cow<'a, str>),
}

/// Why a line cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, or not that of a line.
    #[error("neither a record nor an event: {0}")]
    Json(#[from] serde_json::Error),
    /// A newer major version.
    #[error("format version {0} is newer than this reader")]
    Newer(u32),
}

/// Appends a line, line feed included. [Check](check_raw) its content before.
pub fn encode<T: AsRef<str>>(content: &LogLine<T>, line: &mut Vec<u8>) {
    let (begin, json) = match content {
        LogLine::Record(json) => (RECORD, json.as_ref()),
        LogLine::Event(json) => (EVENT, json.as_ref()),
    };
    line.reserve(begin.len() + json.len() + END.len());
    for part in [begin, json, END] {
        line.extend_from_slice(part.as_bytes());
    }
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

/// Reads one line; unknown fields are ignored. `R` is `Record`, [`Summary`], or [`IgnoredAny`](serde::de::IgnoredAny) for the
/// JSON alone.
pub fn parse<R: DeserializeOwned>(line: &[u8]) -> Result<Parsed<'_, R>, EnvelopeError> {
    match parse_ours(line) {
        Some(parsed) => Ok(parsed?),
        None => parse_any(line),
    }
}

/// Parses a line in this program's own order of fields, in one pass. `None` for any other line.
fn parse_ours<R: DeserializeOwned>(line: &[u8]) -> Option<Result<Parsed<'_, R>, serde_json::Error>> {
    let text = std::str::from_utf8(line).ok()?;
    let Some(rest) = text.strip_prefix(RECORD) else {
        let json = text.strip_prefix(EVENT)?.trim_end().strip_suffix('}')?;
        serde_json::from_str::<IgnoredAny>(json).ok()?;
        return Some(Ok(Parsed::Event(Cow::Borrowed(json))));
    };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<R>();
    let record = match values.next()? {
        Ok(record) => record,
        Err(error) => return Some(Err(error)),
    };
    let (json, end) = rest.split_at(values.byte_offset());
    (end.trim_end() == "}").then_some(Ok(Parsed::Record { record, json: Cow::Borrowed(json) }))
}

/// Parses a line in any order of fields, or of another version.
fn parse_any<R: DeserializeOwned>(line: &[u8]) -> Result<Parsed<'_, R>, EnvelopeError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Content {
        Record(Value),
        Event(Value),
    }
    #[derive(Deserialize)]
    struct Line {
        #[serde(flatten)]
        content: Content,
    }
    // The version first, because the fields of a newer one are unknown.
    let Version { v } = serde_json::from_slice(line)?;
    if v > FORMAT_VERSION {
        return Err(EnvelopeError::Newer(v));
    }
    let Line { content } = serde_json::from_slice(line)?;
    Ok(match content {
        Content::Event(event) => Parsed::Event(Cow::Owned(event.to_string())),
        Content::Record(record) => {
            let json = Cow::Owned(record.to_string());
            Parsed::Record { record: serde_json::from_value(record)?, json }
        }
    })
}

#[cfg(test)]
mod tests {
    use domain::Record;
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn line_of(content: &LogLine<String>) -> Vec<u8> {
        let mut line = Vec::new();
        encode(content, &mut line);
        line
    }

    #[test]
    fn a_line_reads_back_also_with_fields_of_the_future() {
        let record = testing::record("m", 3, true);
        let json = serde_json::to_string(&record).unwrap();
        let line = line_of(&LogLine::Record(json.clone()));
        assert!(line.starts_with(b"{\"v\":1,\"record\":{"));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let text = String::from_utf8(line).unwrap();
        for future in [
            text.clone(),
            text.replace("\"record\"", "\"hue\":[1],\"record\""),
            text.replace("}\n", ",\"hue\":{\"record\":{}}}\n"),
            text.replace("{\"v\":1,", "{ \"v\": 1, "),
        ] {
            let parsed = parse::<Record>(future.as_bytes()).unwrap();
            assert_eq!(parsed, Parsed::Record { record: record.clone(), json: json.clone().into() });
        }
        let event = String::from_utf8(line_of(&LogLine::Event("{\"paused\":1}".to_owned()))).unwrap();
        for event in [event.clone(), event.replace("\"event\"", "\"hue\":[1],\"event\"")] {
            let parsed = parse::<IgnoredAny>(event.as_bytes()).unwrap();
            assert!(matches!(&parsed, Parsed::Event(json) if json == "{\"paused\":1}"), "{parsed:?}");
        }
    }

    #[test]
    fn a_newer_major_version_is_refused_whatever_it_holds() {
        let parse = parse::<Record>;
        assert!(matches!(parse(b"{\"v\":2,\"blob\":\"x\"}"), Err(EnvelopeError::Newer(2))));
        for broken in
            [&b"{\"v\":1,\"blob\":\"x\"}"[..], b"{\"v\":1,\"record\":\xff}", b"{\"v\":1,\"event\":{}"]
        {
            assert!(matches!(parse(broken), Err(EnvelopeError::Json(_))), "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn a_line_holds_the_record_that_was_given(
            iteration: u32, scored: bool, model in ".*", answer in ".*",
        ) {
            let mut record = testing::record(&model, iteration, scored);
            record.rounds[0].answer.text = answer;
            let json = serde_json::to_string(&record).unwrap();
            check_raw(&json).unwrap();
            let line = line_of(&LogLine::Record(json.clone()));
            let parsed = parse::<Summary>(&line).unwrap();
            prop_assert_eq!(parsed, Parsed::Record { record: Summary::of(&record), json: json.into() });
        }
    }

    #[test]
    fn what_would_break_the_lines_is_refused_by_name() {
        let json = serde_json::to_string(&testing::record("m", 4, true)).unwrap();
        for broken in [format!("{json}\n"), json.replace("\":", "\":\r\n"), json.replace("\":", "\":\t")] {
            let error = check_raw(&broken).unwrap_err().to_string();
            assert!(error.contains("m/RdfFriendCount-turtle-1/4"), "{error}");
        }
        for broken in ["", "[]", "1", "{", " {}"] {
            assert!(matches!(check_raw(broken), Err(LogError::NotALine { .. })), "{broken}");
        }
    }
}
