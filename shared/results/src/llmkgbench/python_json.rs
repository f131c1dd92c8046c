//! JSON as Python's `json.dump(value, file, indent=2)` writes it, byte for byte: two spaces, everything but
//! printable ASCII escaped, floats as `repr` prints them. Tools that compare files of both programs then find
//! only real differences.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Writes `value` as nested `level` levels deep in another value.
pub fn write(writer: &mut dyn Write, value: &impl Serialize, level: usize) -> io::Result<()> {
    let formatter = PythonFormatter { level, has_value: false };
    value.serialize(&mut Serializer::with_formatter(writer, formatter)).map_err(io::Error::from)
}

/// A float as Python's `repr` prints it: shortest digits that read back the same, an exponent below 1e-4 and
/// from 1e16 on.
pub fn float(value: f64) -> String {
    // Rust's `{:e}` has the same shortest digits; only the position of the point differs.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) || value == 0.0 {
        let fixed = format!("{value}");
        return if fixed.contains('.') { fixed } else { fixed + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

struct PythonFormatter {
    level: usize,
    /// Whether the list or object being closed has an entry: an empty one stays on its line.
    has_value: bool,
}

impl PythonFormatter {
    fn close(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if self.has_value {
            new_line(writer, self.level)?;
        }
        self.has_value = true;
        writer.write_all(bracket)
    }

    fn open(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn entry(&mut self, writer: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        new_line(writer, self.level)
    }
}

/// A line break and the indentation of a level.
pub(super) fn new_line(writer: &mut (impl Write + ?Sized), level: usize) -> io::Result<()> {
    writer.write_all(b"\n")?;
    (0..level).try_for_each(|_| writer.write_all(b"  "))
}

impl Formatter for PythonFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // Python escapes everything outside space to tilde; the escapes that JSON requires were handled before.
        let mut rest = fragment;
        while let Some(at) = rest.find(|c: char| !matches!(c, ' '..='~')) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let Some(character) = rest[at..].chars().next() else { break };
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn text(value: &Value) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes, value, 0).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn layout_and_escapes_are_those_of_python() {
        // Printed by Python 3.12: json.dumps(..., indent=2).
        let value = json!({"a": [], "b": {}, "c": [1, [2.0]], "d": "é\u{7f}\n\t\"\\/\u{1}😀"});
        let expected = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    [\n      2.0\n    ]\n  ],\n  \
                        \"d\": \"\\u00e9\\u007f\\n\\t\\\"\\\\/\\u0001\\ud83d\\ude00\"\n}";
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn floats_are_printed_as_repr_does() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (5e-324, "5e-324"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value), expected);
        }
    }

    proptest! {
        #[test]
        fn every_float_reads_back(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            prop_assert_eq!(float(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            let read: f64 = serde_json::from_str(&float(value)).unwrap();
            prop_assert_eq!(read.to_bits(), value.to_bits());
        }

        #[test]
        fn every_text_reads_back_and_is_ascii(value in any::<String>()) {
            let written = text(&Value::from(value.clone()));
            prop_assert!(written.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), value);
        }
    }
}
