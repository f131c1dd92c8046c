//! Splits a JSON list into its elements without parsing them and without keeping the list in memory.
//!
//! A parser of the whole list would stop at the first error. Here an error affects only its element, because splitting
//! looks only at strings, brackets and commas. A JSON parser then reads each element.

use std::io::{self, BufRead};

use super::error::FileProblem;

/// One element; its text is in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Position in the list, from 0.
    pub index: usize,
    /// Length in the file in bytes, including white space around it.
    pub bytes: u64,
    /// Whether it is longer than the limit; the buffer is then empty.
    pub too_long: bool,
}

/// The elements of a JSON list, one after another.
pub struct Elements<R> {
    reader: R,
    /// Maximum size of an element, in bytes.
    limit: usize,
    /// Bytes read so far.
    offset: u64,
    /// Elements returned so far.
    count: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeList,
    BeforeFirst,
    BetweenElements,
    AfterList,
}

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl<R: BufRead> Elements<R> {
    /// Reads a list from `reader`; elements longer than `limit` bytes are skipped.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, offset: 0, count: 0, state: State::BeforeList }
    }

    /// Reads the next element into `buffer`, replacing its content. `None` after the last one; the text has then been read
    /// to its end, so checksums after the data have been checked too.
    pub fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Element>, FileProblem> {
        buffer.clear();
        if self.state == State::BeforeList {
            self.expect_list()?;
            self.state = State::BeforeFirst;
        }
        if self.state == State::BeforeFirst {
            // Only before the first element may the list end without one.
            if self.skip_white_space()? == Some(b']') {
                self.advance(1);
                self.state = State::AfterList;
            } else {
                self.state = State::BetweenElements;
            }
        }
        if self.state == State::AfterList {
            return match self.skip_white_space()? {
                None => Ok(None),
                Some(_) => Err(FileProblem::TrailingText { offset: self.offset }),
            };
        }
        let start = self.offset;
        let end_of_list = self.scan_element(buffer)?;
        if end_of_list {
            self.state = State::AfterList;
        }
        let bytes = self.offset - start - 1;
        let index = self.count;
        self.count += 1;
        Ok(Some(Element { index, bytes, too_long: bytes > self.limit as u64 }))
    }

    fn expect_list(&mut self) -> Result<(), FileProblem> {
        if self.reader.fill_buf()?.starts_with(&BYTE_ORDER_MARK) {
            self.advance(BYTE_ORDER_MARK.len());
        }
        match self.skip_white_space()? {
            Some(b'[') => {
                self.advance(1);
                Ok(())
            }
            Some(byte) => {
                let found = if byte.is_ascii_graphic() {
                    format!("`{}`", byte as char)
                } else {
                    format!("0x{byte:02x}")
                };
                Err(FileProblem::NotAList { offset: self.offset, found })
            }
            None => Err(FileProblem::NotAList { offset: self.offset, found: "the end".to_owned() }),
        }
    }

    /// Reads up to and including the comma or bracket after the element. Returns whether the list ends there.
    fn scan_element(&mut self, buffer: &mut Vec<u8>) -> Result<bool, FileProblem> {
        let mut depth = 0_u64;
        let mut in_string = false;
        let mut escaped = false;
        let mut kept = true;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Err(FileProblem::Truncated { offset: self.offset, records: self.count });
            }
            let end = chunk.iter().position(|&byte| {
                if in_string {
                    if escaped {
                        escaped = false;
                    } else if byte == b'\\' {
                        escaped = true;
                    } else if byte == b'"' {
                        in_string = false;
                    }
                    return false;
                }
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 0 => depth -= 1,
                    b',' | b']' if depth == 0 => return true,
                    _ => {}
                }
                false
            });
            let taken = end.unwrap_or(chunk.len());
            if kept && buffer.len() + taken > self.limit {
                // Free the memory: the next elements have an ordinary size.
                *buffer = Vec::new();
                kept = false;
            } else if kept {
                buffer.extend_from_slice(&chunk[..taken]);
            }
            let closing = end.map(|at| chunk[at]);
            self.advance(taken + usize::from(closing.is_some()));
            if let Some(byte) = closing {
                return Ok(byte == b']');
            }
        }
    }

    /// Skips white space; returns the next byte without reading it, or `None` at the end of the text.
    fn skip_white_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let white = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let found = chunk.get(white).copied();
            self.advance(white);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.offset += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// All elements as text, and the error that ended the reading. A tiny read buffer puts chunk borders
    /// everywhere.
    fn split(text: &[u8], limit: usize) -> (Vec<String>, Option<FileProblem>) {
        let mut elements = Elements::new(BufReader::with_capacity(3, text), limit);
        let (mut found, mut buffer) = (Vec::new(), Vec::new());
        loop {
            match elements.next(&mut buffer) {
                Ok(Some(element)) if element.too_long => found.push(format!("too long: {}", element.bytes)),
                Ok(Some(_)) => found.push(String::from_utf8_lossy(&buffer).trim().to_owned()),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn brackets_and_commas_in_strings_do_not_count() {
        let (found, error) = split(br#"  [ {"a": "],{\"\\"} , [1, [2]], "x,]" ,7 ] "#, 100);
        assert_eq!(found, [r#"{"a": "],{\"\\"}"#, "[1, [2]]", r#""x,]""#, "7"]);
        assert!(error.is_none());
        assert_eq!(split(b"[ ]", 10).0.len(), 0);
        assert_eq!(split(b"\xEF\xBB\xBF[1]", 10).0, ["1"]);
    }

    #[test]
    fn a_damaged_element_does_not_spoil_its_neighbours() {
        let (found, error) = split(br#"[{"a":1}, {"b": oops}, {"c" 3}, {"d":4}]"#, 100);
        assert_eq!(found.len(), 4);
        assert_eq!(found[3], r#"{"d":4}"#);
        assert!(error.is_none());
    }

    #[test]
    fn a_long_element_is_skipped_and_counted() {
        let (found, error) = split(br#"["0123456789","ok"]"#, 6);
        assert_eq!(found, ["too long: 12", r#""ok""#]);
        assert!(error.is_none());
    }

    #[test]
    fn a_torn_list_gives_what_was_complete() {
        let (found, error) = split(br#"[{"a":1}, {"b": "#, 100);
        assert_eq!(found, [r#"{"a":1}"#]);
        assert!(matches!(error, Some(FileProblem::Truncated { offset: 16, .. })));
    }

    #[test]
    fn other_texts_are_refused_with_their_place() {
        assert!(matches!(split(b"", 9).1, Some(FileProblem::NotAList { offset: 0, .. })));
        assert!(matches!(split(b"  {}", 9).1, Some(FileProblem::NotAList { offset: 2, .. })));
        assert!(matches!(split(b"[1] x", 9).1, Some(FileProblem::TrailingText { offset: 4 })));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_list_is_cut_into_its_elements(list in prop::collection::vec(json(), 0..6), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&list).unwrap()
            } else {
                serde_json::to_string(&list).unwrap()
            };
            let (found, error) = split(text.as_bytes(), usize::MAX);
            prop_assert!(error.is_none());
            let parsed: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            prop_assert_eq!(parsed, list);
        }

        #[test]
        fn a_prefix_gives_a_prefix_of_the_elements(list in prop::collection::vec(json(), 1..5), cut in any::<prop::sample::Index>()) {
            let text = serde_json::to_string(&list).unwrap();
            let (whole, _) = split(text.as_bytes(), usize::MAX);
            let (found, error) = split(&text.as_bytes()[..cut.index(text.len())], usize::MAX);
            prop_assert!(error.is_some());
            prop_assert!(whole.starts_with(&found));
        }
    }
}
