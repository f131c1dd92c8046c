//! Sealed packs in pieces.

use std::sync::Arc;

use domain::{ErrorCode, ServiceError};
use prost::bytes::Bytes;

use crate::limits::{PACK_BYTES, PACK_CHUNK_BYTES};
use crate::wire;

/// Splits a pack into chunks, at least one; the bytes are shared, not copied.
pub(crate) fn chunks(pack: Arc<[u8]>) -> impl Iterator<Item = wire::PackChunk> + Send + 'static {
    let pack = Bytes::from_owner(pack);
    let total = pack.len();
    (0..total.max(1)).step_by(PACK_CHUNK_BYTES).map(move |start| wire::PackChunk {
        total_bytes: total as u64,
        data: pack.slice(start..total.min(start + PACK_CHUNK_BYTES)),
    })
}

/// A pack being assembled.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    total: u64,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Takes the next chunk.
    ///
    /// # Errors
    /// [`ErrorCode::Invalid`]: the pack is larger than [`PACK_BYTES`], or than announced.
    pub(crate) fn push(&mut self, chunk: &wire::PackChunk) -> Result<(), ServiceError> {
        self.total = chunk.total_bytes;
        if self.total > PACK_BYTES {
            let message = format!("the pack has {} bytes; the limit is {PACK_BYTES}", self.total);
            return Err(ServiceError::new(ErrorCode::Invalid, message));
        }
        self.bytes.extend_from_slice(&chunk.data);
        if self.bytes.len() as u64 > self.total {
            let message = format!("the pack is longer than the announced {} bytes", self.total);
            return Err(ServiceError::new(ErrorCode::Invalid, message));
        }
        Ok(())
    }

    /// The whole pack.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`]: the stream ended early; a retry may succeed.
    pub(crate) fn finish(self) -> Result<Arc<[u8]>, ServiceError> {
        if self.bytes.len() as u64 == self.total {
            return Ok(self.bytes.into());
        }
        let message = format!("{} of {} bytes of the pack arrived", self.bytes.len(), self.total);
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(bytes: usize) -> Arc<[u8]> {
        (0..bytes).map(|i| (i % 251) as u8).collect::<Vec<_>>().into()
    }

    #[test]
    fn chunks_make_the_pack_again() {
        for size in [0, 1, PACK_CHUNK_BYTES - 1, PACK_CHUNK_BYTES, PACK_CHUNK_BYTES + 1, 3 * PACK_CHUNK_BYTES]
        {
            let mut assembly = Assembly::default();
            let mut count = 0;
            for chunk in chunks(pack(size)) {
                assert!(chunk.data.len() <= PACK_CHUNK_BYTES);
                assembly.push(&chunk).unwrap();
                count += 1;
            }
            assert_eq!(count, size.div_ceil(PACK_CHUNK_BYTES).max(1));
            assert_eq!(assembly.finish().unwrap(), pack(size));
        }
    }

    #[test]
    fn a_pack_cut_short_or_too_long_is_noticed() {
        let all: Vec<_> = chunks(pack(2 * PACK_CHUNK_BYTES)).collect();
        let mut short = Assembly::default();
        short.push(&all[0]).unwrap();
        assert_eq!(short.finish().unwrap_err().code, ErrorCode::Unavailable);
        let mut long = Assembly::default();
        for chunk in &all {
            long.push(chunk).unwrap();
        }
        assert_eq!(long.push(&all[0]).unwrap_err().code, ErrorCode::Invalid);
        let huge = wire::PackChunk { total_bytes: PACK_BYTES + 1, data: Bytes::new() };
        assert_eq!(Assembly::default().push(&huge).unwrap_err().code, ErrorCode::Invalid);
    }
}
