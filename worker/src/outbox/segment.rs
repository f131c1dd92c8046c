//! The files of a spool as [`spool`](super::spool) describes them: their frames, and why one cannot be used.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use domain::{DialogueKey, FailureCause, RunId};
use serde::{Deserialize, Serialize};

/// First bytes of a segment: the format and its version.
pub(super) const MAGIC: &[u8; 8] = b"kgspool1";

/// Mode of files with records: for their owner alone.
pub(super) const PRIVATE: u32 = 0o600;

/// Bytes of a frame before its record.
pub(super) const FRAME_HEAD_BYTES: u64 = 8;

/// Maximum frame size in bytes; a larger length means damage.
const FRAME_BYTES_MAX: u64 = 512 << 20;
const _: () = assert!((domain::record::RECORD_BYTES_MAX as u64) < FRAME_BYTES_MAX);

#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A file or folder is inaccessible.
    #[error("the spool {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another worker uses the folder.
    #[error(
        "the spool {0} is in use by another worker; give every worker its own name (--name) or its own --work-dir"
    )]
    InUse(PathBuf),
    /// A file of another version, or not a spool.
    #[error("{0} is not a spool of this version; move it away, or let the version that wrote it deliver it")]
    Format(PathBuf),
}

/// The first line of a frame.
#[derive(Serialize, Deserialize)]
pub(super) struct FrameHead<'a> {
    pub run: Cow<'a, RunId>,
    pub key: Cow<'a, DialogueKey>,
    pub failure: Option<FailureCause>,
}

/// A whole, undamaged frame.
pub(super) struct SpoolFrame<'a> {
    /// All of it.
    pub whole: &'a [u8],
    /// Its two lines.
    pub record: &'a [u8],
}

impl SpoolFrame<'_> {
    /// The run of its record; an empty name if it cannot be parsed, because then the record cannot be read either.
    pub fn run(&self) -> RunId {
        let line = self.record.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice::<FrameHead>(line).map_or(RunId::new(""), |head| head.run.into_owned())
    }
}

/// The frames of a segment, up to its end or the first incomplete one.
pub(super) fn frames(content: &[u8]) -> impl Iterator<Item = SpoolFrame<'_>> {
    let mut rest = content.get(MAGIC.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let bytes = FRAME_HEAD_BYTES as usize + frame_at(rest)? as usize;
        let (whole, after) = rest.split_at_checked(bytes)?;
        rest = after;
        Some(SpoolFrame { whole, record: &whole[FRAME_HEAD_BYTES as usize..] })
    })
}

/// The segments of a folder, by number.
pub(super) fn segments_in(dir: &Path) -> Result<Vec<(u64, PathBuf)>, SpoolError> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(at(dir))? {
        let path = entry.map_err(at(dir))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".spool")?.parse::<u64>().ok());
        segments.extend(number.map(|number| (number, path)));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// The length of the record of a whole, undamaged frame.
fn frame_at(bytes: &[u8]) -> Option<u32> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    let [l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    if length == 0 || u64::from(length) > FRAME_BYTES_MAX {
        return None;
    }
    let record = rest.get(..length as usize)?;
    (crc32fast::hash(record) == u32::from_le_bytes([c0, c1, c2, c3])).then_some(length)
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> SpoolError {
    let path = path.to_owned();
    move |source| SpoolError::Io { path, source }
}
