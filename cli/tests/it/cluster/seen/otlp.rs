//! Decodes what a collector of traces receives: OTLP in protocol buffers. Written from the specification and
//! independent of the encoder.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A span as the collector got it.
#[derive(Debug, Default)]
pub struct Span {
    pub service: String,
    /// The process.
    pub instance: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub state: String,
    pub name: String,
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, Value>,
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    #[track_caller]
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("a number where bytes are expected: {number}"),
        }
    }

    #[track_caller]
    fn text(self) -> String {
        std::str::from_utf8(self.bytes()).unwrap().to_owned()
    }

    #[track_caller]
    fn hex(self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[track_caller]
    fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => panic!("bytes where a number is expected"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number that ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// The fields of a message with their numbers, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().unwrap();
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            kind => panic!("no field of kind {kind} is known"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

/// Messages in the fields of this number.
fn each(of: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    fields(of).into_iter().filter(move |(at, _)| *at == number).map(|(_, field)| field.bytes())
}

fn value(of: &[u8]) -> Value {
    match fields(of)[..] {
        [(1, text)] => json!(text.text()),
        [(3, whole)] => json!(whole.number().cast_signed()),
        [(4, bits)] => json!(f64::from_bits(bits.number())),
        [(5, list)] => each(list.bytes(), 1).map(value).collect(),
        _ => panic!("a value of one kind is expected: {of:?}"),
    }
}

fn attribute(of: &[u8]) -> (String, Value) {
    match fields(of)[..] {
        [(1, key), (2, content)] => (key.text(), value(content.bytes())),
        _ => panic!("an attribute is expected: {of:?}"),
    }
}

fn span(of: &[u8], service: &str, instance: &str) -> Span {
    let mut span = Span { service: service.to_owned(), instance: instance.to_owned(), ..Span::default() };
    for (number, field) in fields(of) {
        match number {
            1 => span.trace = field.hex(),
            2 => span.id = field.hex(),
            3 => span.state = field.text(),
            4 => span.parent = field.hex(),
            5 => span.name = field.text(),
            7 => span.start = field.number(),
            8 => span.end = field.number(),
            9 => span.attributes.extend([attribute(field.bytes())]),
            _ => {}
        }
    }
    span
}

/// The spans of a request.
pub fn spans(request: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    for of_resource in each(request, 1) {
        let attributes: BTreeMap<String, Value> =
            each(of_resource, 1).flat_map(|resource| each(resource, 1)).map(attribute).collect();
        let [service, instance] =
            ["service.name", "service.instance.id"].map(|name| attributes[name].as_str().unwrap());
        let of_scopes = each(of_resource, 2).flat_map(|scope| each(scope, 2));
        found.extend(of_scopes.map(|of| span(of, service, instance)));
    }
    found
}
