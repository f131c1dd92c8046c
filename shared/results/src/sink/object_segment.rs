//! A log segment stored as one object.

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

/// Collects a group and writes it as an object on sync; then it is durable. Every segment holds one group.
pub(super) struct ObjectSegment {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) location: Path,
    /// The copy in the mirror, for readers of this process.
    pub(super) mirror: PathBuf,
    /// The runtime of the store's connections; the writer's thread blocks on it.
    pub(super) runtime: Handle,
    pub(super) content: Vec<u8>,
}

impl SegmentFile for ObjectSegment {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    /// Unlike syncing a file, this may be retried after a failure, and the log does so: the content is still in memory, an
    /// object appears as a whole or not at all, and writing the same content under the same name twice is harmless. No
    /// other content is ever written under this name, so readers always see the same.
    fn sync(&mut self, _end: SegmentEnd) -> Result<(), SyncError> {
        let content = Bytes::copy_from_slice(&self.content);
        self.runtime
            .block_on(self.store.put(&self.location, content.into()))
            .map_err(|error| SyncError::Again(io::Error::other(error)))?;
        // The records are durable now. If the mirror lacks them, the next refresh fetches them.
        let _ = files::replace_shared(&self.mirror, &self.content);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}
