//! Names of segment files.
//!
//! Several writers may append to one folder at once, each to its own segments: `00000001.kglog`, `00000002.kglog`, …
//! for the writer that holds the run's lock, and `5be0cd19-00000001.kglog`, … for any other, with the writer's number
//! in front. No writer appends to another one's segments, so no lock is needed.

use std::fmt;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::machine;
use serde::{Deserialize, Serialize};

use super::error::LogError;
use crate::files::{self, Doing};

/// File name extension of segments.
pub(super) const EXTENSION: &str = "kglog";

/// A writer of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(u32);

impl WriterId {
    /// The one process that holds the [lock](crate::run_dir::RunLock) of the run. It continues where its predecessor
    /// stopped.
    pub const LOCK_HOLDER: Self = Self(0);

    /// A concurrent writer: a random number, so that no coordination is needed. It lives as long as one
    /// [`LogWriter`](super::LogWriter) and never returns.
    pub fn random() -> Self {
        loop {
            let number = machine::random(|| u64::from(OsRng.next_u32())) as u32;
            if number != 0 {
                return Self(number);
            }
        }
    }

    /// The writer of this number; 0 is [`LOCK_HOLDER`](Self::LOCK_HOLDER).
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// One segment of a log. Segments are ordered by writer, then by number, as readers read. In JSON it is its file
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SegmentId {
    /// Who writes it.
    pub writer: WriterId,
    /// Its number among the segments of its writer, from 1.
    pub number: u32,
}

impl SegmentId {
    /// The first segment of a writer.
    pub fn first(writer: WriterId) -> Self {
        Self { writer, number: 1 }
    }

    /// The next segment of the same writer.
    pub fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    /// Its path in the folder of the log.
    pub fn path(self, folder: &Path) -> PathBuf {
        folder.join(self.to_string())
    }

    /// Parses a file name; `None` if it is not a segment.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let id = match stem.split_once('-') {
            None => Self { writer: WriterId::LOCK_HOLDER, number: stem.parse().ok()? },
            Some((writer, number)) => {
                Self { writer: WriterId(u32::from_str_radix(writer, 16).ok()?), number: number.parse().ok()? }
            }
        };
        // Each segment has exactly one name; any other spelling is not from this program.
        (id.number > 0 && id.to_string() == name).then_some(id)
    }

    /// The segments in a folder, in order. Other files are ignored.
    pub fn list(folder: &Path) -> Result<Vec<Self>, LogError> {
        let names = files::names(folder).doing("list", folder)?;
        let mut segments: Vec<Self> =
            names.iter().filter_map(|name| Self::of_file_name(name.to_str()?)).collect();
        segments.sort_unstable();
        Ok(segments)
    }
}

impl From<SegmentId> for String {
    fn from(id: SegmentId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SegmentId {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::of_file_name(&name).ok_or_else(|| format!("`{name}` is no segment"))
    }
}

/// The file name.
impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.writer != WriterId::LOCK_HOLDER {
            write!(f, "{}-", self.writer)?;
        }
        write!(f, "{:08}.{EXTENSION}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_segment_is_known_by_its_file_name(writer in prop_oneof![Just(0), any::<u32>()], number in 1..=u32::MAX) {
            let id = SegmentId { writer: WriterId::from_number(writer), number };
            prop_assert_eq!(SegmentId::of_file_name(&id.to_string()), Some(id));
        }

        #[test]
        fn no_two_file_names_are_one_segment(name in "(([0-9a-fA-F]{0,9}-)?[0-9]{0,9}\\.kglog|.{0,20})") {
            prop_assert!(SegmentId::of_file_name(&name).is_none_or(|id| id.to_string() == name));
        }
    }

    #[test]
    fn the_names_are_those_that_are_documented() {
        let id = |writer, number| SegmentId { writer: WriterId::from_number(writer), number };
        assert_eq!(id(0, 1).to_string(), "00000001.kglog");
        assert_eq!(id(0x5be0_cd19, 12).to_string(), "5be0cd19-00000012.kglog");
        for name in ["1.kglog", "00000000.kglog", "00000000-00000001.kglog", "5BE0CD19-00000001.kglog"] {
            assert_eq!(SegmentId::of_file_name(name), None, "{name}");
        }
    }
}
