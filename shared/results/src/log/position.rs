//! Places in a log.

use super::segment_id::SegmentId;
use super::synced::SegmentEnd;

/// How far a writer has synced: everything of the segment up to its end, and all earlier segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub segment: SegmentId,
    pub end: SegmentEnd,
}
