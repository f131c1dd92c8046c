//! Bodies of responses, decompressed where a server or a gateway compressed what nobody asked it to compress.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brotli_decompressor::DecompressorWriter as BrotliDecoder;
use bytes::{Bytes, BytesMut};
use domain::text::with_causes;
use domain::{FailureCause, RetryAdvice, Usage};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use serde::de::IgnoredAny;
use zstd::stream::write::Decoder as ZstdDecoder;

use crate::error::CallError;

/// Maximum size of a reply body read in one piece, in bytes: a text of [`crate::chat::ANSWER_BYTES_MAX`] may take
/// several times as many bytes as JSON.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Maximum size of what one received piece decompresses to, in bytes.
const PIECE_BYTES_MAX: usize = BODY_BYTES_MAX + 1;

/// The buffer of a decoder of Brotli, in bytes.
const BROTLI_BUFFER_BYTES: usize = 16 << 10;

/// Logarithm of the largest window of Zstandard in bytes: what RFC 9659 allows in HTTP, 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// What the pieces so far decompress to, until it is taken: at most [`PIECE_BYTES_MAX`] from each, because a few bytes may stand for
/// gigabytes. Shared with the decoder that writes it.
#[derive(Clone, Default)]
struct Decompressed(Arc<Mutex<Vec<u8>>>);

impl Decompressed {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Decompressed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut made = self.bytes();
        if made.len() + bytes.len() > PIECE_BYTES_MAX {
            return Err(io::Error::other("it decompresses to more than any answer has"));
        }
        made.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body of a response, piece by piece.
pub(crate) struct ResponseBody {
    response: Response,
    coding: Coding,
}

/// How a body is compressed. Gateways compress without saying so, or say so and do not, so the first bytes tell.
enum Coding {
    /// Nothing has come yet. By the name that the headers give it.
    Unseen(String),
    Plain,
    /// By a decoder, and what it makes.
    Compressed(Box<dyn Write + Send>, Decompressed),
    /// By its name.
    Unknown(String),
}

impl Coding {
    fn named(headers: &HeaderMap) -> Self {
        let named = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Self::Unseen(named.trim().to_ascii_lowercase())
    }

    /// How a body is compressed that is named so and begins with these bytes.
    fn of(named: &str, first: &[u8]) -> io::Result<Self> {
        /// The first byte of gzip's format, which no text has.
        const GZIP: u8 = 0x1f;
        /// The lower half of the first byte of zlib's format.
        const ZLIB_METHOD: u8 = 8;
        /// The first byte of Zstandard's format, with which no JSON begins.
        const ZSTD: u8 = 0x28;
        let first = first.first().copied().unwrap_or_default();
        let made = Decompressed::default();
        let into = made.clone();
        let decoder: Box<dyn Write + Send> = match named {
            // What HTTP calls `deflate` is meant to be zlib's format, and is often without its frame.
            "deflate" if first & 0x0f == ZLIB_METHOD => Box::new(ZlibDecoder::new(into)),
            "deflate" => Box::new(DeflateDecoder::new(into)),
            _ if first == GZIP => Box::new(MultiGzDecoder::new(into)),
            _ if first == ZSTD => {
                let mut decoder = ZstdDecoder::new(into)?;
                decoder.set_parameter(zstd::zstd_safe::DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
                Box::new(decoder)
            }
            "" | "identity" | "gzip" | "x-gzip" => return Ok(Self::Plain),
            // A body of Brotli may begin with a bracket, and with nothing else with which texts begin.
            "br" if first == b'[' || !is_of_text(first) => {
                Box::new(BrotliDecoder::new(into, BROTLI_BUFFER_BYTES))
            }
            // Words such as `utf-8` and `aws-chunked` stand for no compression.
            _ if is_of_text(first) => return Ok(Self::Plain),
            other => return Ok(Self::Unknown(other.to_owned())),
        };
        Ok(Self::Compressed(decoder, made))
    }

    /// Looks at the first piece that is not empty; others change nothing.
    fn see(&mut self, piece: &[u8]) -> io::Result<()> {
        if let (Self::Unseen(named), false) = (&*self, piece.is_empty()) {
            *self = Self::of(named, piece)?;
        }
        Ok(())
    }

    /// Decompresses a piece.
    fn decode(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        self.see(piece)?;
        let Self::Compressed(decoder, made) = self else { return Ok(piece.to_vec().into()) };
        decoder.write_all(piece)?;
        decoder.flush()?;
        Ok(std::mem::take(&mut *made.bytes()).into())
    }
}

/// Whether the JSON of an answer or a stream of events may begin with this byte.
fn is_of_text(first: u8) -> bool {
    first.is_ascii_whitespace()
        || matches!(first, b'{' | b'[' | b':' | b'd' | b'e' | b'i' | b'r' | b'<' | 0xef)
}

impl ResponseBody {
    pub(crate) fn of(response: Response) -> Self {
        let coding = Coding::named(response.headers());
        Self { response, coding }
    }

    /// The next piece, which may be empty; `None` at the end.
    ///
    /// # Errors
    /// It breaks off, or is compressed in a way that is not known here.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(piece) = self.response.chunk().await.map_err(broken_body)? else { return Ok(None) };
        self.coding.see(&piece).map_err(broken_coding)?;
        match &mut self.coding {
            Coding::Unseen(_) | Coding::Plain => Ok(Some(piece)),
            Coding::Unknown(name) => {
                let message = format!(
                    "the answer is compressed as `{name}`, which nobody asked for and nobody here reads"
                );
                Err(CallError::new(FailureCause::Server, RetryAdvice::No, message))
            }
            coding => coding.decode(&piece).map(Some).map_err(broken_coding),
        }
    }
}

impl ResponseBody {
    /// The whole of a body that begins with this piece, if it has at most so many bytes: else as much, and `false`.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub(crate) async fn rest_of(
        &mut self,
        mut first: Bytes,
        bytes_max: usize,
    ) -> Result<(Bytes, bool), CallError> {
        let mut rest = BytesMut::new();
        let joined = |first: Bytes, rest: BytesMut| {
            // Most responses arrive in one piece, which is used without copying.
            if rest.is_empty() {
                return first;
            }
            let mut whole = BytesMut::with_capacity(first.len() + rest.len());
            whole.extend_from_slice(&first);
            whole.extend_from_slice(&rest);
            whole.freeze()
        };
        while first.len() + rest.len() <= bytes_max {
            match self.chunk().await {
                Ok(Some(chunk)) => rest.extend_from_slice(&chunk),
                Ok(None) => return Ok((joined(first, rest), true)),
                // Small servers close connections too early, or count the bytes wrongly. JSON tells whether it is whole.
                Err(error) => {
                    let came = joined(first, rest);
                    let is_whole = came.trim_ascii_start().starts_with(b"{")
                        && serde_json::from_slice::<IgnoredAny>(&came).is_ok();
                    return if is_whole { Ok((came, true)) } else { Err(error) };
                }
            }
        }
        first.truncate(bytes_max);
        Ok((first, false))
    }
}

/// The error for a body that is not compressed as it says.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn broken_coding(error: io::Error) -> CallError {
    let message = format!("the answer cannot be decompressed: {error}");
    let broken = CallError::new(FailureCause::Server, RetryAdvice::Transient, &message);
    broken.for_nothing(message, Usage::default())
}

/// The error for a body that broke off.
fn broken_body(error: reqwest::Error) -> CallError {
    let message = format!("the answer broke off: {}", with_causes(&error.without_url()));
    CallError::new(FailureCause::Aborted, RetryAdvice::Transient, message)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use reqwest::header::HeaderValue;

    use super::*;

    fn coding(name: &'static str) -> Coding {
        Coding::named(&HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(name))]))
    }

    /// A thousand times `Grüße, Welt. `, as Python's `brotli` compresses it.
    const BROTLI: [u8; 39] = [
        0x1b, 0x97, 0x3a, 0xf8, 0x9d, 0x09, 0x76, 0xec, 0x94, 0x41, 0x96, 0xac, 0x7b, 0xba, 0xd5, 0xd1, 0x70,
        0x83, 0x5c, 0x95, 0xc9, 0xa9, 0x4f, 0xde, 0x66, 0x71, 0x61, 0xa3, 0x13, 0x0f, 0x86, 0x00, 0x0d, 0xc9,
        0x00, 0xf8, 0x02, 0x6b, 0x01,
    ];

    #[test]
    fn what_is_compressed_is_read_in_pieces_of_any_size() {
        let text = "Grüße, Welt. ".repeat(1_000);
        let level = Compression::default();
        let (mut gzip, mut zlib, mut bare) = (
            GzEncoder::new(Vec::new(), level),
            ZlibEncoder::new(Vec::new(), level),
            DeflateEncoder::new(Vec::new(), level),
        );
        for encoder in [&mut gzip as &mut dyn Write, &mut zlib, &mut bare] {
            encoder.write_all(text.as_bytes()).unwrap();
        }
        for (name, bytes) in [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", bare.finish().unwrap()),
            ("zstd", zstd::encode_all(text.as_bytes(), 3).unwrap()),
            ("br", BROTLI.to_vec()),
            ("identity", text.clone().into_bytes()),
        ] {
            for size in [1, 7, 100_000] {
                let mut coding = coding(name);
                let read: Vec<u8> =
                    bytes.chunks(size).flat_map(|piece| coding.decode(piece).unwrap().to_vec()).collect();
                assert!(read == text.as_bytes(), "{name} in pieces of {size}");
            }
        }
        assert!(coding("gzip").decode(b"\x1f is no head, and longer than one").is_err());
    }

    #[test]
    fn the_first_bytes_tell_what_a_body_is_more_than_its_name() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"{}").unwrap();
        let gzip = gzip.finish().unwrap();
        for (name, bytes) in [("identity", &gzip[..]), ("utf-8", &gzip), ("gzip", b"{}"), ("none", b"{}")] {
            assert_eq!(coding(name).decode(bytes).unwrap(), "{}", "{name}");
        }
        let mut unknown = coding("compress");
        unknown.decode(b"\x0b").unwrap();
        assert!(matches!(unknown, Coding::Unknown(_)));
    }

    #[test]
    fn a_piece_that_grows_without_end_is_given_up() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..66 {
            bomb.write_all(&vec![0; 1 << 20]).unwrap();
        }
        assert!(coding("gzip").decode(&bomb.finish().unwrap()).is_err());
        let zeros = vec![0; 66 << 20];
        assert!(coding("zstd").decode(&zstd::encode_all(&zeros[..], 1).unwrap()).is_err());
    }
}
