//! When a server that refuses a call wants the next one, by the headers of its refusal.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Headers that say when a limit is reset, and which says how much of it is left, of those that have one.
const RESETS: [(&str, Option<&str>); 8] = [
    ("x-ratelimit-reset-requests", Some("x-ratelimit-remaining-requests")),
    ("x-ratelimit-reset-tokens", Some("x-ratelimit-remaining-tokens")),
    ("anthropic-ratelimit-requests-reset", Some("anthropic-ratelimit-requests-remaining")),
    ("anthropic-ratelimit-tokens-reset", Some("anthropic-ratelimit-tokens-remaining")),
    ("x-ratelimit-reset", Some("x-ratelimit-remaining")),
    ("ratelimit-reset", Some("ratelimit-remaining")),
    ("x-ratelimit-reset-after", None),
    ("x-rate-limit-reset", None),
];

/// Numbers from here on are moments and no durations: seconds since 1970, or milliseconds.
const SECONDS_MIN: f64 = 1e9;
const MILLISECONDS_MIN: f64 = 1e12;

/// How long to wait, as far as headers say so.
///
/// `now` is the time here. A date is counted from the server's own clock if it tells it, because two clocks differ.
pub(crate) fn wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let now = text(DATE.as_str()).and_then(http_date).unwrap_or(now);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    if let Some(asked) = text(RETRY_AFTER.as_str()).and_then(|text| until(text, now)) {
        return Some(asked);
    }
    let reset = |(reset, left): &(&str, Option<&str>)| {
        let is_used_up = left.and_then(text).is_some_and(|left| left.parse() == Ok(0.0));
        Some((is_used_up, until(text(reset)?, now)?))
    };
    let resets: Vec<(bool, Duration)> = RESETS.iter().filter_map(reset).collect();
    // Of limits that are used up, all must be reset; of others, it is not known which one was met.
    let used_up = resets.iter().filter(|(is_used_up, _)| *is_used_up).map(|(_, wait)| *wait).max();
    used_up.or_else(|| resets.iter().map(|(_, wait)| *wait).min())
}

/// A duration from `now`, however it is written: in seconds, as `6m0s`, as a moment since 1970, as a date.
pub(crate) fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let from_now = |moment: Timestamp| Duration::try_from(moment.duration_since(now)).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(number) if number >= MILLISECONDS_MIN => {
            Timestamp::from_millisecond(number as i64).ok().map(from_now)
        }
        Ok(number) if number >= SECONDS_MIN => Timestamp::from_second(number as i64).ok().map(from_now),
        Ok(number) => Duration::try_from_secs_f64(number).ok(),
        Err(_) => duration(text).or_else(|| text.parse().ok().or_else(|| http_date(text)).map(from_now)),
    }
}

/// A date as HTTP writes it.
fn http_date(text: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text).ok()
}

/// A duration as Go writes it: `1h2m3.5s`, `20ms`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit = &after[..after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len())];
        seconds += number
            * match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &after[unit.len()..];
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn read(headers: &[(&'static str, &'static str)]) -> Option<f64> {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        wait(&headers.iter().map(header).collect(), now).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        for (text, seconds) in [("3", 3.0), (" 0.5 ", 0.5), ("1800000012", 12.0), ("1m2s", 62.0)] {
            assert_eq!(read(&[("retry-after", text)]), Some(seconds), "{text}");
        }
        let date = ("retry-after", "Fri, 15 Jan 2027 08:00:12 GMT");
        assert_eq!(read(&[date]), Some(12.0));
        assert_eq!(
            read(&[date, ("date", "Fri, 15 Jan 2027 08:00:10 GMT")]),
            Some(2.0),
            "by the server's clock"
        );
        assert_eq!(read(&[date, ("date", "Fri, 15 Jan 2027 09:00:10 GMT")]), Some(0.0), "it is over");
        for useless in ["-1", "NaN", "1e300", "soon", ""] {
            assert_eq!(read(&[("retry-after", useless)]), None, "{useless}");
        }
        assert_eq!(read(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(1.5));
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn the_limit_that_is_used_up_decides() {
        let (requests, tokens) =
            (("x-ratelimit-reset-requests", "20ms"), ("x-ratelimit-reset-tokens", "1m0s"));
        assert_eq!(read(&[requests, tokens]), Some(0.02));
        assert_eq!(read(&[requests, tokens, ("x-ratelimit-remaining-tokens", "0")]), Some(60.0));
        assert_eq!(read(&[("x-ratelimit-reset", "1800000030000")]), Some(30.0));
        assert_eq!(read(&[("anthropic-ratelimit-requests-reset", "2027-01-15T08:00:07Z")]), Some(7.0));
        assert_eq!(read(&[("ratelimit-reset", "9")]), Some(9.0));
    }
}
