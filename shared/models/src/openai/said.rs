//! What a server says: a whole answer, or one event of a stream.
//!
//! Strict about the text, lenient about all that stands beside it: an answer was paid for, and is not thrown away because a
//! count is a fraction or a name is a number. Of a key that is there twice, the last one counts, as in nearly every parser.
//! Unused fields are skipped. Whole answers and the pieces of a stream differ only in `message` and `delta`, so one type parses
//! both.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Declares a JSON object all of whose fields may lack.
macro_rules! object {
    (
        $(#[$meta:meta])* $name:ident<$life:lifetime> {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        pub(super) struct $name<$life> {
            $($(#[$field_meta])* pub(super) $field: Option<$type>,)*
        }

        impl<'de: $life, $life> Deserialize<'de> for $name<$life> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;
                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut made = Self::Value::default();
                        while let Some(key) = map.next_key::<SaidContent<'_>>()? {
                            match &*key.text {
                                $(key if key == stringify!($field).as_bytes() => {
                                    made.$field = map.next_value()?;
                                })*
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(made)
                    }
                }
                deserializer.deserialize_any(ObjectVisitor)
            }
        }
    };
}

object! {
    /// A whole answer, or one event of a stream.
    WireReply<'a> {
        model: Word<'a>,
        system_fingerprint: Word<'a>,
        object: Word<'a>,
        choices: Vec<WireChoice<'a>>,
        /// Counts of tokens, in whatever form a server writes them.
        usage: Value,
        /// Servers that fail midway report it with status 200.
        error: Value,
        /// So do servers that put the error's own fields here, without choices.
        message: Value,
    }
}

object! {
    /// We request one answer, so there is one.
    WireChoice<'a> {
        delta: WireSaid<'a>,
        message: WireSaid<'a>,
        finish_reason: Word<'a>,
        error: Value,
    }
}

object! {
    /// What the model said, or a piece of it.
    WireSaid<'a> {
        content: SaidContent<'a>,
        /// vLLM's current name for it.
        reasoning: SaidContent<'a>,
        /// Its older name, and DeepSeek's.
        reasoning_content: SaidContent<'a>,
        /// OpenAI's models refuse here, with `content` null.
        refusal: SaidContent<'a>,
        tool_calls: Value,
    }
}

/// A name or a word. Anything else than a text counts as an empty one.
#[derive(Default)]
pub(super) struct Word<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordVisitor;
        impl<'de> Visitor<'de> for WordVisitor {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word")
            }

            fn visit_borrowed_str<E>(self, word: &'de str) -> Result<Self::Value, E> {
                Ok(Word(Cow::Borrowed(word)))
            }

            fn visit_str<E>(self, word: &str) -> Result<Self::Value, E> {
                Ok(Word(Cow::Owned(word.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Word::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Word::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Word::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Word::default())
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Word::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                while parts.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Word::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Word::default())
            }
        }
        deserializer.deserialize_any(WordVisitor)
    }
}

/// A text as JSON spells it, borrowed from the bytes unless escapes occur. It is no UTF-8 where an escape is one half of a
/// character, because a proxy cut the stream between the two. Some servers send a list of parts instead; the texts of its parts
/// are concatenated, those of thoughts apart.
pub(super) struct SaidContent<'a> {
    pub(super) text: Cow<'a, [u8]>,
    pub(super) thought: Vec<u8>,
}

impl SaidContent<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thought.is_empty()
    }
}

object! {
    WirePart<'a> {
        text: SaidContent<'a>,
        /// Mistral's thoughts: parts in a part.
        thinking: SaidContent<'a>,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for SaidContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = SaidContent<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of text parts")
            }

            fn visit_borrowed_bytes<E>(self, text: &'de [u8]) -> Result<Self::Value, E> {
                Ok(SaidContent { text: Cow::Borrowed(text), thought: Vec::new() })
            }

            fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
                Ok(SaidContent { text: Cow::Owned(text.to_owned()), thought: Vec::new() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let (mut text, mut thought) = (Vec::new(), Vec::new());
                while let Some(part) = parts.next_element::<WirePart<'_>>()? {
                    if let Some(piece) = part.text {
                        text.extend_from_slice(&piece.text);
                    }
                    if let Some(piece) = part.thinking {
                        thought.extend_from_slice(&piece.text);
                        thought.extend_from_slice(&piece.thought);
                    }
                }
                Ok(SaidContent { text: Cow::Owned(text), thought })
            }
        }
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

/// Whether a message holds a part of an answer.
pub(super) fn has_said(said: &WireSaid<'_>) -> bool {
    let texts = [&said.content, &said.reasoning, &said.reasoning_content, &said.refusal];
    said.tool_calls.as_ref().is_some_and(says_something)
        || texts.into_iter().flatten().any(|content| !content.is_empty())
}

/// Whether a value under `error` or `tool_calls` is one. Some servers send an empty one with every answer.
pub(super) fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
