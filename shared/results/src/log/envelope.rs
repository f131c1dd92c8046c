//! One line of the log.

use domain::Record;
use serde::{Deserialize, Serialize};

/// Major version that is written, and the newest that is read. It rises when a reader of before would
/// misunderstand what is written now; a new optional field is no such case.
pub const FORMAT_VERSION: u32 = 1;

/// A record with its place in the order of commits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Commit ticket: drawn before the entry is appended, rising within a run. Orders the records of a key
    /// where several writers append to several logs.
    pub ticket: u64,
    /// The outcome of one attempt at a dialogue.
    pub record: Record,
}

/// Why a line is no entry.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, or not the JSON of an entry.
    #[error("not an entry: {0}")]
    Json(#[from] serde_json::Error),
    /// Of a later major version.
    #[error("format version {0} is newer than this reader")]
    Newer(u32),
}

#[derive(Serialize)]
struct Written<'a> {
    v: u32,
    ticket: u64,
    record: &'a Record,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// Appends the entry as one line, line feed included. JSON escapes line feeds, so none can be inside.
pub fn encode(entry: &LogEntry, line: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let written = Written { v: FORMAT_VERSION, ticket: entry.ticket, record: &entry.record };
    serde_json::to_writer(&mut *line, &written)?;
    line.push(b'\n');
    Ok(())
}

/// Reads one line; unknown fields are ignored.
pub fn decode(line: &[u8]) -> Result<LogEntry, EnvelopeError> {
    // The version comes first in every line, so reading it alone costs little; a line that parses as ours is
    // ours, unless it says otherwise.
    let version: Version = serde_json::from_slice(line)?;
    if version.v > FORMAT_VERSION {
        return Err(EnvelopeError::Newer(version.v));
    }
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_entry_reads_back_also_with_fields_of_the_future() {
        let entry = testing::entry(7, "m", 3, true);
        let mut line = Vec::new();
        encode(&entry, &mut line).unwrap();
        assert!(line.starts_with(b"{\"v\":1,\"ticket\":7,"));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(decode(&line).unwrap(), entry);
        let future = String::from_utf8(line).unwrap().replace("\"ticket\"", "\"hue\":[1],\"ticket\"");
        assert_eq!(decode(future.as_bytes()).unwrap(), entry);
    }

    #[test]
    fn a_newer_major_version_is_refused_whatever_it_holds() {
        assert!(matches!(decode(b"{\"v\":2,\"blob\":\"x\"}"), Err(EnvelopeError::Newer(2))));
        assert!(matches!(decode(b"{\"v\":1,\"blob\":\"x\"}"), Err(EnvelopeError::Json(_))));
    }
}
