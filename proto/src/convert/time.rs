//! Durations and instants.

use std::time::Duration;

use jiff::Timestamp;

use super::ConversionError;
use super::on_wire::{OnWire, present};

const NANOS: i32 = 1_000_000_000;

/// Not negative, and capped at 2^63 seconds.
impl OnWire<prost_types::Duration> for Duration {
    fn to_wire(self) -> prost_types::Duration {
        prost_types::Duration {
            seconds: i64::try_from(self.as_secs()).unwrap_or(i64::MAX),
            // Always below 10^9.
            nanos: self.subsec_nanos().cast_signed(),
        }
    }

    fn from_wire(field: &'static str, duration: prost_types::Duration) -> Result<Self, ConversionError> {
        let prost_types::Duration { seconds, nanos } = duration;
        match (u64::try_from(seconds), u32::try_from(nanos)) {
            (Ok(seconds), Ok(nanos_u32)) if nanos < NANOS => Ok(Self::new(seconds, nanos_u32)),
            _ => Err(ConversionError::OutOfRange {
                field,
                value: format!("{seconds} s and {nanos} ns"),
                range: "durations from 0 s with 0 ns to 999999999 ns",
            }),
        }
    }
}

impl OnWire<prost_types::Timestamp> for Timestamp {
    fn to_wire(self) -> prost_types::Timestamp {
        let (seconds, nanos) = (self.as_second(), self.subsec_nanosecond());
        // On the wire, nanoseconds count forwards, also before 1970.
        if nanos < 0 {
            prost_types::Timestamp { seconds: seconds - 1, nanos: nanos + NANOS }
        } else {
            prost_types::Timestamp { seconds, nanos }
        }
    }

    fn from_wire(field: &'static str, timestamp: prost_types::Timestamp) -> Result<Self, ConversionError> {
        let prost_types::Timestamp { seconds, nanos } = timestamp;
        let timestamp = if (0..NANOS).contains(&nanos) { Self::new(seconds, nanos).ok() } else { None };
        timestamp.ok_or_else(|| ConversionError::OutOfRange {
            field,
            value: format!("{seconds} s and {nanos} ns"),
            range: "the instants of the years -9999 to 9999",
        })
    }
}

required_message! {
    Duration => prost_types::Duration,
    Timestamp => prost_types::Timestamp,
}
