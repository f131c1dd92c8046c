//! Encryption of frames, for runs whose texts must not be stored in plaintext.
//!
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) with one random key per run and one random nonce per frame: nonces
//! of 24 bytes can be drawn at random without repeating. The frame's header and position are authenticated too, so
//! that a frame that was changed, moved or repeated does not open. [`run_key`](crate::run_key) stores the key.

use std::fmt;

use chacha20poly1305::aead::{AeadCore, AeadInPlace, KeyInit, OsRng};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};

use super::segment_id::SegmentId;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// Bytes in front of an encrypted text: its nonce.
const NONCE_BYTES: usize = 24;

/// Bytes behind an encrypted text: its authentication code.
const TAG_BYTES: usize = 16;

/// By how many bytes encryption lengthens a text.
pub const OVERHEAD_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// The position of a frame: the context that encryption binds it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    pub segment: SegmentId,
    /// Start of the frame in the segment, in bytes.
    pub offset: u64,
}

/// Encrypts and decrypts the frames of one run.
#[derive(Clone)]
pub struct LogCipher(Key);

impl LogCipher {
    /// A cipher with a fresh key from the operating system's random source.
    pub fn generate() -> Self {
        Self(XChaCha20Poly1305::generate_key(&mut OsRng))
    }

    /// The cipher of a key.
    pub fn from_key(key: [u8; KEY_BYTES]) -> Self {
        Self(key.into())
    }

    /// The key. Store it wrapped only, see [`run_key`](crate::run_key).
    pub fn key(&self) -> &[u8] {
        &self.0
    }

    /// Encrypts `text`, which becomes [`OVERHEAD_BYTES`] longer. `None` if it exceeds the cipher's limit (256 GiB).
    pub(crate) fn encrypt(&self, text: &[u8], associated: &[u8]) -> Option<Vec<u8>> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let mut sealed = Vec::with_capacity(text.len() + OVERHEAD_BYTES);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(text);
        let body = sealed.get_mut(NONCE_BYTES..)?;
        let tag = XChaCha20Poly1305::new(&self.0).encrypt_in_place_detached(&nonce, associated, body).ok()?;
        sealed.extend_from_slice(&tag);
        Some(sealed)
    }

    /// Decrypts. `None` if the key, `associated` or any byte differs.
    pub(crate) fn decrypt(&self, sealed: &[u8], associated: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (body, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let mut text = body.to_vec();
        XChaCha20Poly1305::new(&self.0)
            .decrypt_in_place_detached(XNonce::from_slice(nonce), associated, &mut text, Tag::from_slice(tag))
            .ok()?;
        Some(text)
    }
}

/// Without the key, so that it never appears in a message.
impl fmt::Debug for LogCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogCipher")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_the_same_key_and_context_and_bytes_give_the_text_back(
            text in prop::collection::vec(any::<u8>(), 0..200),
            flip in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let cipher = LogCipher::generate();
            let mut sealed = cipher.encrypt(&text, b"here").unwrap();
            prop_assert_eq!(sealed.len(), text.len() + OVERHEAD_BYTES);
            prop_assert_ne!(&sealed, &cipher.encrypt(&text, b"here").unwrap(), "nonces are random");
            prop_assert_eq!(cipher.decrypt(&sealed, b"here"), Some(text));
            prop_assert_eq!(cipher.decrypt(&sealed, b"there"), None);
            prop_assert_eq!(LogCipher::generate().decrypt(&sealed, b"here"), None);
            let at = flip.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert_eq!(cipher.decrypt(&sealed, b"here"), None);
            prop_assert_eq!(cipher.decrypt(&sealed[..at.min(OVERHEAD_BYTES - 1)], b"here"), None);
        }
    }

    /// The test vector of draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn frames_open_with_any_implementation_of_the_draft() {
        let text: &[u8] =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
                            future, sunscreen would be it.";
        let key: Vec<u8> = (0x80..=0x9f).collect();
        let mut sealed: Vec<u8> = (0x40..=0x57).collect();
        let body = "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49";
        sealed
            .extend((0..body.len()).step_by(2).map(|at| u8::from_str_radix(&body[at..at + 2], 16).unwrap()));
        let associated = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let cipher = LogCipher::from_key(key.try_into().unwrap());
        assert_eq!(cipher.decrypt(&sealed, &associated).as_deref(), Some(text));
    }
}
