//! How one value travels in a field, and the two macros that build messages and enumerations from such fields.

use std::sync::Arc;

use domain::{InstanceId, ModelLabel, RunId, TaskLabel, WorkerId};
use prost::bytes::Bytes;

use super::{ConversionError, required};

/// A value that travels in a field of type `W`.
pub(super) trait OnWire<W>: Sized {
    /// The field.
    fn to_wire(self) -> W;

    /// The value of the field, which errors call `field`.
    fn from_wire(field: &'static str, wire: W) -> Result<Self, ConversionError>;
}

/// Types that are the same on both sides.
macro_rules! as_they_are {
    ($($type:ty),+) => {$(
        impl OnWire<$type> for $type {
            fn to_wire(self) -> $type {
                self
            }

            fn from_wire(_: &'static str, wire: $type) -> Result<Self, ConversionError> {
                Ok(wire)
            }
        }
    )+};
}

as_they_are!(bool, u32, u64, f64, String);

/// Names, which are never empty.
macro_rules! names {
    ($($id:ident),+) => {$(
        impl OnWire<String> for $id {
            fn to_wire(self) -> String {
                self.to_string()
            }

            fn from_wire(field: &'static str, text: String) -> Result<Self, ConversionError> {
                Ok(Self::new(required(field, text)?))
            }
        }
    )+};
}

names!(RunId, ModelLabel, TaskLabel, WorkerId);

/// The id may be empty: the process does not say which it is.
impl OnWire<String> for InstanceId {
    fn to_wire(self) -> String {
        self.to_string()
    }

    fn from_wire(_: &'static str, text: String) -> Result<Self, ConversionError> {
        Ok(Self::new(text))
    }
}

/// A text that travels as bytes. It is copied once, because a text cannot share the memory of the message.
impl OnWire<Bytes> for Arc<str> {
    fn to_wire(self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }

    fn from_wire(field: &'static str, bytes: Bytes) -> Result<Self, ConversionError> {
        match std::str::from_utf8(&bytes) {
            Ok("") => Err(ConversionError::Missing { field }),
            Ok(text) => Ok(text.into()),
            Err(e) => Err(ConversionError::Unreadable { field, reason: e.to_string() }),
        }
    }
}

impl<T: OnWire<W>, W> OnWire<Vec<W>> for Vec<T> {
    fn to_wire(self) -> Vec<W> {
        self.into_iter().map(T::to_wire).collect()
    }

    fn from_wire(field: &'static str, wire: Vec<W>) -> Result<Self, ConversionError> {
        wire.into_iter().map(|item| T::from_wire(field, item)).collect()
    }
}

impl<T: OnWire<W>, W> OnWire<Option<W>> for Option<T> {
    fn to_wire(self) -> Option<W> {
        self.map(T::to_wire)
    }

    fn from_wire(field: &'static str, wire: Option<W>) -> Result<Self, ConversionError> {
        wire.map(|wire| T::from_wire(field, wire)).transpose()
    }
}

/// A shared value travels as the value itself.
impl<T: OnWire<Option<W>> + Clone, W> OnWire<Option<W>> for Arc<T> {
    fn to_wire(self) -> Option<W> {
        Self::unwrap_or_clone(self).to_wire()
    }

    fn from_wire(field: &'static str, wire: Option<W>) -> Result<Self, ConversionError> {
        T::from_wire(field, wire).map(Self::new)
    }
}

/// Allows a type that travels as a message in a required field: absent is an error.
macro_rules! required_message {
    ($($domain:ty => $wire:ty),+ $(,)?) => {$(
        impl OnWire<Option<$wire>> for $domain {
            fn to_wire(self) -> Option<$wire> {
                Some(self.to_wire())
            }

            fn from_wire(field: &'static str, wire: Option<$wire>) -> Result<Self, ConversionError> {
                present(field, wire).and_then(|wire| Self::from_wire(field, wire))
            }
        }
    )+};
}

/// Allows a type with conversions of its own in fields.
macro_rules! message {
    ($($domain:ty => $wire:ident),+ $(,)?) => {$(
        impl OnWire<wire::$wire> for $domain {
            fn to_wire(self) -> wire::$wire {
                self.into()
            }

            fn from_wire(_: &'static str, message: wire::$wire) -> Result<Self, ConversionError> {
                message.try_into()
            }
        }
    )+};
}

/// Declares messages whose fields have the same names on both sides. `: given` marks a field that is required although
/// its type allows the value that an absent field has.
macro_rules! mirrored {
    ($($domain:ident => $wire:ident { $($field:ident $(: $check:ident)?),+ $(,)? })+) => {$(
        impl From<$domain> for wire::$wire {
            fn from(value: $domain) -> Self {
                Self { $($field: value.$field.to_wire()),+ }
            }
        }

        impl TryFrom<wire::$wire> for $domain {
            type Error = ConversionError;

            fn try_from(message: wire::$wire) -> Result<Self, ConversionError> {
                $($($check(concat!(stringify!($wire), ".", stringify!($field)), &message.$field)?;)?)+
                Ok(Self {
                    $($field: OnWire::from_wire(
                        concat!(stringify!($wire), ".", stringify!($field)),
                        message.$field,
                    )?),+
                })
            }
        }

        message!($domain => $wire);
    )+};
}

/// Declares enumerations whose variants have the same names on both sides. They travel as numbers; 0 is never a value.
macro_rules! numbered {
    ($($domain:ident => $wire:ident { $($variant:ident),+ $(,)? })+) => {$(
        impl OnWire<i32> for $domain {
            fn to_wire(self) -> i32 {
                match self {
                    $(Self::$variant => wire::$wire::$variant,)+
                }
                .into()
            }

            fn from_wire(field: &'static str, number: i32) -> Result<Self, ConversionError> {
                match wire::$wire::try_from(number) {
                    Err(_) => Err(ConversionError::Unknown { field, number }),
                    Ok(wire::$wire::Unspecified) => Err(ConversionError::Missing { field }),
                    $(Ok(wire::$wire::$variant) => Ok(Self::$variant),)+
                }
            }
        }
    )+};
}

/// A message of a required field.
pub(super) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, ConversionError> {
    value.ok_or(ConversionError::Missing { field })
}

/// Checks that a field does not have the value of an absent one.
pub(super) fn given<T: Default + PartialEq>(field: &'static str, value: &T) -> Result<(), ConversionError> {
    if *value == T::default() { Err(ConversionError::Missing { field }) } else { Ok(()) }
}
