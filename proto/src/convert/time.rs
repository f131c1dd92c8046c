//! Durations and instants.

use std::time::Duration;

use jiff::Timestamp;

use super::{ConversionError, present};

const NANOS: i32 = 1_000_000_000;

/// Encodes a duration, capped at 2^63 seconds.
pub(super) fn duration_to_wire(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        // Always below 10^9.
        nanos: duration.subsec_nanos().cast_signed(),
    }
}

/// A required duration, not negative.
pub(super) fn duration_from_wire(
    field: &'static str,
    duration: Option<prost_types::Duration>,
) -> Result<Duration, ConversionError> {
    let prost_types::Duration { seconds, nanos } = present(field, duration)?;
    match (u64::try_from(seconds), u32::try_from(nanos)) {
        (Ok(seconds), Ok(nanos_u32)) if nanos < NANOS => Ok(Duration::new(seconds, nanos_u32)),
        _ => Err(ConversionError::OutOfRange {
            field,
            value: format!("{seconds} s and {nanos} ns"),
            range: "durations from 0 s with 0 ns to 999999999 ns",
        }),
    }
}

/// Encodes an instant.
pub(super) fn timestamp_to_wire(timestamp: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = (timestamp.as_second(), timestamp.subsec_nanosecond());
    // On the wire, nanoseconds count forwards, also before 1970.
    if nanos < 0 {
        prost_types::Timestamp { seconds: seconds - 1, nanos: nanos + NANOS }
    } else {
        prost_types::Timestamp { seconds, nanos }
    }
}

/// A required instant.
pub(super) fn timestamp_from_wire(
    field: &'static str,
    timestamp: Option<prost_types::Timestamp>,
) -> Result<Timestamp, ConversionError> {
    let prost_types::Timestamp { seconds, nanos } = present(field, timestamp)?;
    let timestamp = if (0..NANOS).contains(&nanos) { Timestamp::new(seconds, nanos).ok() } else { None };
    timestamp.ok_or_else(|| ConversionError::OutOfRange {
        field,
        value: format!("{seconds} s and {nanos} ns"),
        range: "the instants of the years -9999 to 9999",
    })
}
