//! Packs that were sent and wait for the submission that names them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use domain::text::hex;
use domain::{ErrorCode, ServiceError};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::limits::{LONG_CALL_TIMEOUT, PACK_BYTES, SENT_PACKS};

/// The newest packs by their hashes. One is received at a time: they are large, and operators alone may send them.
pub(in crate::server) struct SentPacks {
    kept: Mutex<VecDeque<(String, Arc<[u8]>)>>,
    turn: Semaphore,
}

impl Default for SentPacks {
    fn default() -> Self {
        Self { kept: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl SentPacks {
    /// Receives a pack with this hash and keeps it.
    ///
    /// # Errors
    /// It is too long, another one, or breaks off.
    pub(super) async fn receive(&self, hash: &str, body: Body) -> Result<(), ServiceError> {
        let invalid = |message: String| ServiceError::new(ErrorCode::Invalid, message);
        if body.size_hint().lower() > PACK_BYTES {
            return Err(invalid(format!("the pack has more than {PACK_BYTES} bytes")));
        }
        let late = |_| ServiceError::new(ErrorCode::Unavailable, "the pack did not arrive in time");
        let receiving = async {
            let Ok(_turn) = self.turn.acquire().await else { return Ok(None) };
            Limited::new(body, PACK_BYTES as usize).collect().await.map(Some)
        };
        let whole = tokio::time::timeout(LONG_CALL_TIMEOUT, receiving).await.map_err(late)?;
        let whole = whole.map_err(|error| invalid(format!("the pack cannot be received: {error}")))?;
        let bytes: Arc<[u8]> = whole.map(|whole| whole.to_bytes().to_vec()).unwrap_or_default().into();
        let found = hex(Sha256::digest(&bytes));
        if !found.eq_ignore_ascii_case(hash) {
            return Err(invalid(format!("the pack has the SHA-256 {found}, not {hash}")));
        }
        self.keep(found, bytes);
        Ok(())
    }

    fn keep(&self, hash: String, pack: Arc<[u8]>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != hash);
        kept.push_back((hash, pack));
        if kept.len() > SENT_PACKS {
            kept.pop_front();
        }
    }

    /// A pack that was sent.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`]: none with this hash was, or others came since.
    pub(super) fn get(&self, hash: &str) -> Result<Arc<[u8]>, ServiceError> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known.eq_ignore_ascii_case(hash));
        found.map(|(_, pack)| Arc::clone(pack)).ok_or_else(|| {
            let message = format!("no pack {hash} was sent here lately: send it by PUT packs/{hash} first");
            ServiceError::new(ErrorCode::NotFound, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pack_is_kept_under_its_own_hash_until_newer_ones_take_its_place() {
        let sent = SentPacks::default();
        let hash = |bytes: &[u8]| hex(Sha256::digest(bytes));
        for pack in [b"a", b"b", b"c"] {
            sent.receive(&hash(pack), Body::from(pack.to_vec())).await.unwrap();
            assert_eq!(*sent.get(&hash(pack)).unwrap(), pack[..]);
        }
        assert_eq!(sent.get(&hash(b"a")).unwrap_err().code, ErrorCode::NotFound);
        assert!(sent.get(&hash(b"b")).is_ok());
        let error = sent.receive(&hash(b"d"), Body::from("e")).await.unwrap_err();
        assert!(error.message.contains("SHA-256"), "{error}");
    }
}
