//! A segment that is one object.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;

use crate::files;
use crate::log::SegmentEnd;
use crate::log::writer::{SegmentFile, SyncError};

/// Collects a group and makes it an object when it is synced: from then on it is durable. Every segment holds one group.
pub(super) struct ObjectSegment {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Name of the object.
    pub(super) location: Path,
    /// The same in the mirror, for readers of this process.
    pub(super) mirror: PathBuf,
    /// Where the store's connections live; the writer's thread waits for them.
    pub(super) runtime: Handle,
    pub(super) content: Vec<u8>,
}

impl SegmentFile for ObjectSegment {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    /// Unlike a sync of a file, this may be tried again after a failure, and the log does: the content is still in memory,
    /// an object appears as a whole or not at all, and to put the same content under the same name twice is to put it
    /// once. Other content never comes under this name, so that nobody who has read it has read something else.
    fn sync(&mut self, _end: SegmentEnd) -> Result<(), SyncError> {
        let content = Bytes::copy_from_slice(&self.content);
        self.runtime
            .block_on(self.store.put(&self.location, content.into()))
            .map_err(|error| SyncError::Again(io::Error::other(error)))?;
        // The records are durable now. What the mirror lacks, the next refresh fetches.
        let _ = files::replace_shared(&self.mirror, &self.content);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}
