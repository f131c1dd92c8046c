//! The protocol between parent and child over the child's standard input and output: JSON with a length prefix.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tasks::{ComparedPart, Effort, GivenExercise, Verdict};

/// Maximum size of a message. Connectors cut answers far below it; a verdict repeats parts of its answer.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The first message to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The tasks to load, in the format of the loader.
    pub(super) tasks: serde_json::Value,
    /// Bytes of address space.
    pub(super) memory_bytes_max: u64,
    /// CPU seconds per judgement.
    pub(super) cpu_seconds_max: u64,
}

/// The child's reply to [`Setup`]: the tasks are loaded and the limits are in force, with the CPU time that it has used so far; or
/// why the tasks cannot be loaded.
pub(super) type Ready = Result<Duration, String>;

/// One judgement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<'a> {
    pub(super) task: usize,
    pub(super) case: usize,
    pub(super) effort: Effort,
    pub(super) answer: std::borrow::Cow<'a, str>,
    /// Judge by this instead of a loaded case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given: Option<std::borrow::Cow<'a, GivenExercise>>,
    /// Tell also what is expected and what was extracted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) compares: bool,
}

/// The reply to it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// What was expected and extracted, if the request asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) compared: Vec<ComparedPart>,
    /// Why what was given cannot be used; then the verdict says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// CPU time that the child has used so far, in all its judgements.
    pub(super) spent: Duration,
}

/// Writes one message, without flushing.
pub(super) fn write(writer: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("message of over 4 GiB"))?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(&body)
}

/// Reads one message; `None` at a clean end of input.
pub(super) fn read<T: DeserializeOwned>(
    reader: &mut impl Read,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match reader.read(&mut length[..1])? {
        0 => return Ok(None),
        _ => reader.read_exact(&mut length[1..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("message of {length} bytes")));
    }
    // Memory grows with what comes, not with what the length promises.
    buffer.clear();
    if reader.take(length as u64).read_to_end(buffer)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(serde_json::from_slice(buffer)?))
}

/// Reads bytes as what a child gets and as what it says; returns how many messages there were.
#[cfg(feature = "test-support")]
pub fn read_as_anything(bytes: &[u8]) -> usize {
    fn messages<T: DeserializeOwned>(mut bytes: &[u8]) -> usize {
        let mut buffer = Vec::new();
        std::iter::from_fn(|| read::<T>(&mut bytes, &mut buffer).ok().flatten()).count()
    }
    messages::<Setup>(bytes)
        + messages::<Ready>(bytes)
        + messages::<Request<'static>>(bytes)
        + messages::<Judged>(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_pipe_and_a_clean_end_is_no_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, &Ready::Err("no \u{1f} pack".into())).unwrap();
        write(&mut pipe, &Ready::Ok(Duration::ZERO)).unwrap();
        let (mut reader, mut buffer) = (pipe.as_slice(), Vec::new());
        let first: Option<Ready> = read(&mut reader, &mut buffer).unwrap();
        assert!(matches!(first, Some(Err(text)) if text == "no \u{1f} pack"));
        assert!(matches!(read::<Ready>(&mut reader, &mut buffer).unwrap(), Some(Ok(_))));
        assert!(read::<Ready>(&mut reader, &mut buffer).unwrap().is_none());
        assert!(read::<Ready>(&mut [5, 0, 0, 0, 1].as_slice(), &mut buffer).is_err(), "cut message");
        assert!(read::<Ready>(&mut [255; 8].as_slice(), &mut buffer).is_err(), "absurd length");
        let mut buffer = Vec::new();
        assert!(
            read::<Ready>(&mut [0, 0, 0, 15, b'{', b'}'].as_slice(), &mut buffer).is_err(),
            "long and cut"
        );
        assert!(buffer.capacity() < 1 << 20, "{} bytes for six", buffer.capacity());
    }
}
