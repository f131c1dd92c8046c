//! Server-sent events as chat APIs use them: the `data` of each event, as bytes.
//!
//! Follows the event-stream format of the HTML standard (section 9.2.6): lines end with LF, CR or CRLF, a line
//! beginning with a colon is a comment, several `data` lines of one event are joined with LF, an empty line ends an
//! event. The parser works on bytes, so chunk boundaries inside a character do not matter; decoding the data reports
//! invalid UTF-8.

/// Maximum size of an event, in bytes: one event may carry a whole answer of [`crate::chat::ANSWER_BYTES_MAX`] with
/// its JSON escapes.
pub const EVENT_BYTES_MAX: usize = 24 << 20;

/// The stream has an event above [`EVENT_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {EVENT_BYTES_MAX} bytes")]
pub struct EventTooLarge;

/// Splits a byte stream into events. Feed it chunks as they arrive.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The data of the event being read.
    data: Vec<u8>,
    /// Whether the event has any `data` line: an event with one empty line of data is still an event.
    has_data: bool,
    /// The last chunk ended with CR: a leading LF of the next one belongs to it.
    after_cr: bool,
    /// The first line may begin with a byte order mark.
    past_start: bool,
}

impl SseParser {
    /// Parses `chunk` and passes the data of every completed event to `on_event`.
    ///
    /// # Errors
    /// The first error of `on_event`, or [`EventTooLarge`]. The parser is unusable afterwards.
    pub fn push<E: From<EventTooLarge>>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(&[u8]) -> Result<(), E>,
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
    /// some servers omit that line; half a line never counts.
    ///
    /// # Errors
    /// Those of `on_event`.
    pub fn finish<E>(mut self, mut on_event: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.has_data {
            self.has_data = false;
            on_event(&self.data)?;
        }
        Ok(())
    }

    fn end_line<E: From<EventTooLarge>>(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = if std::mem::replace(&mut self.past_start, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            if self.has_data {
                self.has_data = false;
                let outcome = on_event(&self.data);
                self.data.clear();
                outcome?;
            }
            return Ok(());
        }
        // Of the other fields, `event`, `id` and `retry`, chat APIs use only `event`, and repeat it in the data.
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[][..],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return Ok(()),
        };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut keep = |data: &[u8]| {
            events.push(String::from_utf8_lossy(data).into_owned());
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
            (": ping\n\nevent: x\ndata: a\nid: 3\ndata: b\n\n", vec!["a\nb"]),
            ("data\n\ndata:\n\n", vec!["", ""]),
            ("database: no\n\n", vec![]),
            ("\n\n\n", vec![]),
            // The end without an empty line counts, half a line does not.
            ("data: [DONE]\n", vec!["[DONE]"]),
            ("data: a\n\ndata: {\"half", vec!["a"]),
        ] {
            assert_eq!(events([stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let mut parser = SseParser::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut ignore = |_: &[u8]| Ok::<(), EventTooLarge>(());
        let pushed = (0..64).take_while(|_| parser.push(&chunk, &mut ignore).is_ok()).count();
        assert_eq!(pushed, EVENT_BYTES_MAX >> 20);
    }

    #[test]
    fn an_endless_event_is_given_up() {
        let mut parser = SseParser::default();
        let line = [b"data:".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let mut ignore = |_: &[u8]| Ok::<(), EventTooLarge>(());
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
