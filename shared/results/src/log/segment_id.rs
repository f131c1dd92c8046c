//! Names of segment files: `EPOCH-NUMBER.kglog`, each of eight digits, for example `00000003-00000001.kglog`.
//!
//! The writer of an [epoch](super::epochs) creates its segments and nobody opens them again for writing.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::LogError;
use crate::files::{self, Doing};

/// File name extension of segments.
pub(super) const EXTENSION: &str = "kglog";

/// One segment of a log. Segments are ordered as they were written: by epoch, then by number. In JSON it is its file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SegmentId {
    /// The epoch in which it is written, from 1.
    pub epoch: u32,
    /// Its number among the segments of its epoch, from 1.
    pub number: u32,
}

impl SegmentId {
    /// The first segment of an epoch.
    pub fn first(epoch: u32) -> Self {
        Self { epoch, number: 1 }
    }

    /// The next segment of the same epoch.
    pub fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }

    /// Its path in the folder of the log.
    pub fn path(self, folder: &Path) -> PathBuf {
        folder.join(self.to_string())
    }

    /// Parses a file name; `None` if it is not a segment.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let (epoch, number) = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.split_once('-')?;
        let id = Self { epoch: epoch.parse().ok()?, number: number.parse().ok()? };
        // Each segment has exactly one name; any other spelling is not from this program.
        (id.epoch > 0 && id.number > 0 && id.to_string() == name).then_some(id)
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
        write!(f, "{:08}-{:08}.{EXTENSION}", self.epoch, self.number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_segment_is_known_by_its_file_name(epoch in 1..=u32::MAX, number in 1..=u32::MAX) {
            let id = SegmentId { epoch, number };
            prop_assert_eq!(SegmentId::of_file_name(&id.to_string()), Some(id));
        }

        #[test]
        fn no_two_file_names_are_one_segment(name in "([0-9]{0,9}-[0-9]{0,9}\\.kglog|.{0,20})") {
            prop_assert!(SegmentId::of_file_name(&name).is_none_or(|id| id.to_string() == name));
        }
    }

    #[test]
    fn the_names_are_those_that_are_documented() {
        assert_eq!(SegmentId { epoch: 3, number: 12 }.to_string(), "00000003-00000012.kglog");
        for name in ["1.kglog", "00000001.kglog", "00000000-00000001.kglog", "00000001-00000000.kglog"] {
            assert_eq!(SegmentId::of_file_name(name), None, "{name}");
        }
    }
}
