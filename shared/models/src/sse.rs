//! Server-sent events as chat APIs use them: the `data` of each event, as bytes, with the event's name.
//!
//! Follows the event-stream format of the HTML standard (section 9.2.6): lines end with LF, CR or CRLF, a line
//! beginning with a colon is a comment, several `data` lines of one event are joined with LF, an empty line ends an
//! event. The parser works on bytes, so chunk boundaries inside a character do not matter; decoding the data reports
//! invalid UTF-8.

use serde::de::IgnoredAny;

/// Maximum size of an event, in bytes: one event may carry a whole answer of [`crate::chat::ANSWER_BYTES_MAX`] with
/// its JSON escapes.
pub const EVENT_BYTES_MAX: usize = 24 << 20;

/// Maximum size of the name of an event that is kept, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The name of events that hold an error.
pub const ERROR_EVENT: &[u8] = b"error";

/// The data of the event that ends a stream.
pub const DONE: &[u8] = b"[DONE]";

/// The stream has an event above [`EVENT_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {EVENT_BYTES_MAX} bytes")]
pub struct EventTooLarge;

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its name; empty for most.
    pub name: &'a [u8],
    pub data: &'a [u8],
}

/// Splits a byte stream into events. Feed it chunks as they arrive.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The data of the event being read.
    data: Vec<u8>,
    /// The name of the event being read.
    name: Vec<u8>,
    /// Whether the event has any `data` line: an event with one empty line of data is still an event.
    has_data: bool,
    /// The last chunk ended with CR: a leading LF of the next one belongs to it.
    after_cr: bool,
    /// The first line may begin with a byte order mark.
    past_start: bool,
}

impl SseParser {
    /// Parses `chunk` and passes every completed event to `on_event`.
    ///
    /// # Errors
    /// The first error of `on_event`, or [`EventTooLarge`]. The parser is unusable afterwards.
    pub fn push<E: From<EventTooLarge>>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        if self.after_cr
            && let Some(first) = rest.first()
        {
            self.after_cr = false;
            if *first == b'\n' {
                rest = &rest[1..];
            }
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(end);
            rest = match tail {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            if self.line.is_empty() {
                // The whole line lies in this chunk: no copy.
                self.end_line(head, &mut on_event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.end_line(&line, &mut on_event)?;
                line.clear();
                self.line = line;
            }
        }
        if self.line.len() + rest.len() > EVENT_BYTES_MAX {
            return Err(EventTooLarge.into());
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the stream. A last event with complete data lines counts even without the empty line after it, because
    /// some servers omit that line; half a line never counts. A line without its end counts if what it holds is whole.
    ///
    /// # Errors
    /// Those of `on_event`.
    pub fn finish<E>(mut self, mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.has_data {
            self.has_data = false;
            on_event(SseEvent { name: &self.name, data: &self.data })?;
        }
        match self.line.strip_prefix(b"data:") {
            Some(data) if is_whole(data) => on_event(SseEvent { name: &self.name, data: data.trim_ascii() }),
            _ => Ok(()),
        }
    }

    fn end_line<E: From<EventTooLarge>>(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = if std::mem::replace(&mut self.past_start, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            let (name, has_data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.has_data));
            if has_data {
                let outcome = on_event(SseEvent { name: &name, data: &self.data });
                self.data.clear();
                outcome?;
            }
            return Ok(());
        }
        // Chat APIs use no other field but llama.cpp, which once wrote its errors into one of that name.
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(&value[..value.len().min(NAME_BYTES_MAX)]);
                return Ok(());
            }
            b"error" => self.name = ERROR_EVENT.to_vec(),
            b"data" => {}
            _ => return Ok(()),
        }
        if self.data.len() + value.len() >= EVENT_BYTES_MAX {
            return Err(EventTooLarge.into());
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

/// Whether this is all of an event, although its line has no end.
fn is_whole(data: &[u8]) -> bool {
    data.trim_ascii() == DONE || serde_json::from_slice::<IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut keep = |event: SseEvent<'_>| {
            let name = String::from_utf8_lossy(event.name).into_owned();
            let data = String::from_utf8_lossy(event.data);
            events.push(if name.is_empty() { data.into_owned() } else { format!("{name}={data}") });
            Ok::<(), EventTooLarge>(())
        };
        for chunk in chunks {
            parser.push(chunk, &mut keep).unwrap();
        }
        parser.finish(&mut keep).unwrap();
        events
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data:a\r\n\r\ndata:  b\r\r", vec!["a", " b"]),
            ("\u{feff}data: a\n\n", vec!["a"]),
            (": ping\n\nevent: x\ndata: a\nid: 3\ndata: b\n\n", vec!["x=a\nb"]),
            ("event:x\ndata:a\n\ndata:b\n\n", vec!["x=a", "b"]),
            ("error: {}\n\n", vec!["error={}"]),
            ("data\n\ndata:\n\n", vec!["", ""]),
            ("database: no\n\n", vec![]),
            ("\n\n\n", vec![]),
            // The end without an empty line counts, half a line does not.
            ("data: [DONE]\n", vec!["[DONE]"]),
            ("data: a\n\ndata: {\"half", vec!["a"]),
            ("data: a\n\ndata: {\"half\":{}", vec!["a"]),
            ("data: a\n\ndata: {\"whole\":{}}", vec!["a", "{\"whole\":{}}"]),
            ("data: a\n\ndata: [DONE]", vec!["a", "[DONE]"]),
        ] {
            assert_eq!(events([stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let mut parser = SseParser::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut ignore = |_: SseEvent<'_>| Ok::<(), EventTooLarge>(());
        let pushed = (0..64).take_while(|_| parser.push(&chunk, &mut ignore).is_ok()).count();
        assert_eq!(pushed, EVENT_BYTES_MAX >> 20);
    }

    #[test]
    fn an_endless_event_is_given_up() {
        let mut parser = SseParser::default();
        let line = [b"data:".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let mut ignore = |_: SseEvent<'_>| Ok::<(), EventTooLarge>(());
        let pushed = (0..64).take_while(|_| parser.push(&line, &mut ignore).is_ok()).count();
        assert!(pushed < 24, "{pushed}");
    }

    proptest! {
        #[test]
        fn the_chunks_a_stream_comes_in_do_not_matter(
            pieces in proptest::collection::vec(prop_oneof![
                Just("\n".to_owned()), Just("\r".to_owned()), Just("\r\n".to_owned()), Just("data: ".to_owned()),
                Just(": c".to_owned()), Just("event: e".to_owned()), "[a-zé€😀:]{0,5}",
            ], 0..40),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream = pieces.concat().into_bytes();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            ends.push(stream.len());
            ends.sort_unstable();
            let mut start = 0;
            let chunks = ends.into_iter().map(|end| &stream[std::mem::replace(&mut start, end)..end]);
            prop_assert_eq!(events(chunks.collect::<Vec<_>>()), events([stream.as_slice()]));
        }
    }
}
