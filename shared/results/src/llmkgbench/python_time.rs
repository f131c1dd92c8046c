//! Times and durations as written by Python's `datetime.isoformat()` and `str(timedelta)`: to the microsecond, and without
//! a fraction if it is zero.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// A time in a zone, without the zone: `2024-12-19T06:29:39.034515`.
pub fn local_time(at: Timestamp, zone: &TimeZone) -> String {
    let local = zone.to_datetime(at);
    let micros = local.subsec_nanosecond() / 1000;
    let seconds = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    if micros == 0 { seconds } else { format!("{seconds}.{micros:06}") }
}

/// Parses such a time; `None` if it is not one.
pub fn parse_local_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local: jiff::civil::DateTime = text.parse().ok()?;
    zone.to_ambiguous_timestamp(local).compatible().ok()
}

/// A duration: `0:00:01.522467`, or `1 day, 0:00:01.522467` from one day on.
pub fn duration(length: Duration) -> String {
    let micros = length.subsec_micros();
    let seconds = length.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let days = match days {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        more => format!("{more} days, "),
    };
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{days}{hours}:{minutes:02}:{:02}{fraction}", seconds % 60)
}

/// Parses such a duration; `None` if it is not one.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (days, clock) = match text.split_once(", ") {
        Some((days, clock)) => (days.split_once(" day")?.0.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{fraction:0<6}").parse::<u64>().ok()?;
    let minutes = days.checked_mul(24)?.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?;
    let seconds = minutes.checked_mul(60)?.checked_add(seconds)?;
    Some(Duration::from_micros(seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(micros)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn python_leaves_out_a_fraction_of_zero() {
        let at: Timestamp = "2024-12-19T06:29:39.034515Z".parse().unwrap();
        assert_eq!(local_time(at, &TimeZone::UTC), "2024-12-19T06:29:39.034515");
        let at: Timestamp = "2024-12-19T23:29:39Z".parse().unwrap();
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(local_time(at, &berlin), "2024-12-20T00:29:39");
        assert_eq!(duration(Duration::from_secs(3_661)), "1:01:01");
        assert_eq!(duration(Duration::from_micros(1_522_467)), "0:00:01.522467");
        assert_eq!(duration(Duration::from_secs(2 * 86_400)), "2 days, 0:00:00");
        assert_eq!(parse_duration("1 day, 0:00:01.5"), Some(Duration::from_millis(86_401_500)));
        assert_eq!(parse_duration("0:00"), None);
    }

    proptest! {
        #[test]
        fn durations_and_times_read_back(micros in 0..1_000_000_000_000_000_u64) {
            let length = Duration::from_micros(micros);
            prop_assert_eq!(parse_duration(&duration(length)), Some(length));
            let at = Timestamp::from_microsecond(micros as i64).unwrap();
            prop_assert_eq!(parse_local_time(&local_time(at, &TimeZone::UTC), &TimeZone::UTC), Some(at));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = parse_duration(&text);
            let _ = parse_local_time(&text, &TimeZone::UTC);
        }
    }
}
