//! Dates, times, durations and decimals as Python reads and writes them, which is how rdflib keeps them in a graph.
//!
//! Each function returns the text that Python writes for the value of another text; `None` if Python does not read it, and
//! then rdflib keeps the text.

use crate::literal::signed;

/// Digits of a decimal that are written in full at most; a text of a few characters can mean a million of them.
const DECIMAL_DIGITS_MAX: i64 = 4000;

/// `f"{Decimal(text):f}"`: no exponent, no plus sign, no zeros before the number; those behind it stay.
pub(crate) fn decimal(text: &str) -> Option<String> {
    let text = text.trim().replace('_', "");
    let (sign, digits) = signed(&text);
    let (number, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let exponent: i64 = whole(exponent).then(|| exponent.parse().ok())??;
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(before) || !all_digits(after) || before.len() + after.len() == 0 {
        return None;
    }
    if exponent.abs() > DECIMAL_DIGITS_MAX {
        return None;
    }
    let digits = format!("{before}{after}");
    // How many of the digits lie behind the point.
    let behind = i64::try_from(after.len()).ok()? - exponent;
    let trimmed = digits.trim_start_matches('0');
    let (before, after) = match usize::try_from(behind) {
        Err(_) if trimmed.is_empty() => (String::new(), String::new()),
        Err(_) => (format!("{trimmed}{}", "0".repeat(usize::try_from(-behind).ok()?)), String::new()),
        Ok(behind) => {
            let padded = format!("{trimmed:0>behind$}");
            let (before, after) = padded.split_at(padded.len() - behind);
            (before.to_owned(), after.to_owned())
        }
    };
    let before = if before.is_empty() { "0" } else { &before };
    Some(if after.is_empty() { format!("{sign}{before}") } else { format!("{sign}{before}.{after}") })
}

/// Whether a text is a whole number with or without a sign.
fn whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Python's `int` and `float` allow an underscore between two digits.
pub(crate) fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let wrong = |at: usize| bytes[at] == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    if (0..bytes.len()).any(wrong) {
        return None;
    }
    Some(text.replace('_', ""))
}

/// `datetime.fromisoformat(text).isoformat()`.
pub(crate) fn date_time(text: &str) -> Option<String> {
    let mut rest = text;
    let date = calendar_date(&mut rest)?;
    if rest.is_empty() {
        return Some(format!("{date}T00:00:00"));
    }
    let mut characters = rest.chars();
    characters.next()?;
    Some(format!("{date}T{}", clock_time(characters.as_str())?))
}

/// What rdflib reads as a date, without its zone.
pub(crate) fn date(text: &str) -> Option<String> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    // Python knows no dates before the year 1.
    if text.starts_with('-') {
        return None;
    }
    let text = match (text.split_once('T'), text.rfind('+')) {
        (Some((date, _)), _) => date,
        (None, Some(plus)) if plus > 0 => &text[..plus],
        (None, _) => match text.rsplit_once('-') {
            Some((date, zone)) if zone.contains(':') => date,
            _ => text,
        },
    };
    let mut rest = text;
    let date = text.contains('-').then(|| calendar_date(&mut rest))??;
    rest.is_empty().then_some(date)
}

/// `time.fromisoformat(text).isoformat()`.
pub(crate) fn time(text: &str) -> Option<String> {
    clock_time(text.strip_prefix('T').unwrap_or(text))
}

/// Takes so many digits from the front of a text.
fn digits(rest: &mut &str, count: usize) -> Option<u32> {
    let (number, after) = rest.split_at_checked(count)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *rest = after;
    number.parse().ok()
}

/// Takes a date from the front of a text, with or without hyphens.
fn calendar_date(rest: &mut &str) -> Option<String> {
    let year = digits(rest, 4)?;
    let hyphens = rest.starts_with('-');
    let part = |rest: &mut &str| {
        if hyphens {
            *rest = rest.strip_prefix('-')?;
        }
        digits(rest, 2)
    };
    let (month, day) = (part(rest)?, part(rest)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (year > 0 && (1..=days).contains(&day)).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// A time of day with or without a zone.
fn clock_time(text: &str) -> Option<String> {
    let zone_at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone_at);
    let (hour, minute, second, micros) = clock_parts(clock)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    let zone = match zone {
        "" => String::new(),
        "Z" => "+00:00".to_owned(),
        zone => {
            let (sign, offset) = zone.split_at(1);
            let (hour, minute, second, micros) = clock_parts(offset)?;
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            let sign = if (hour, minute, second, micros) == (0, 0, 0, 0) { "+" } else { sign };
            let seconds = if second == 0 && micros == 0 { String::new() } else { format!(":{second:02}") };
            format!("{sign}{hour:02}:{minute:02}{seconds}")
        }
    };
    Some(format!("{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}

/// Hours, minutes, seconds and microseconds of `HH[:MM[:SS[.ffffff]]]`, with or without colons.
fn clock_parts(text: &str) -> Option<(u32, u32, u32, u32)> {
    let mut rest = text;
    let hour = digits(&mut rest, 2)?;
    let colons = rest.starts_with(':');
    let mut parts = [0; 2];
    for part in &mut parts {
        if rest.is_empty() {
            return Some((hour, parts[0], parts[1], 0));
        }
        if colons {
            rest = rest.strip_prefix(':')?;
        }
        *part = digits(&mut rest, 2)?;
    }
    let mut micros = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        micros = format!("{:0<6}", fraction.get(..6).unwrap_or(fraction)).parse().ok()?;
        rest = "";
    }
    rest.is_empty().then_some((hour, parts[0], parts[1], micros))
}

/// A duration with the units that it needs: months up to 11, hours up to 23 and so on; weeks are days.
pub(crate) fn duration(text: &str) -> Option<String> {
    let (sign, rest) = signed(text);
    let rest = rest.strip_prefix('P').filter(|rest| !rest.is_empty())?;
    let (dates, times) = rest.split_once('T').unwrap_or((rest, ""));
    let mut amounts = [0.0; 7];
    for (part, units, first) in [(dates, "YMWD", 0), (times, "HMS", 4)] {
        let (mut rest, mut next) = (part, 0);
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
            let (number, after) = rest.split_at(end);
            let unit = after.chars().next()?;
            let place = units[next..].find(unit)? + next;
            amounts[first + place] = number.replace(',', ".").parse::<f64>().ok()?;
            (next, rest) = (place + 1, &after[1..]);
        }
    }
    let [years, months, weeks, days, hours, minutes, seconds] = amounts;
    if years.fract() != 0.0 || months.fract() != 0.0 {
        return None;
    }
    let all_months = years * 12.0 + months;
    let micros =
        (((weeks * 7.0 + days) * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds) * 1e6).round();
    if !(0.0..1e20).contains(&micros) || !(0.0..1e9).contains(&all_months) {
        return None;
    }
    Some(written_duration(sign, all_months as u64, micros as u128))
}

fn written_duration(sign: &str, months: u64, micros: u128) -> String {
    let named = |amounts: &[(u128, &str)]| -> String {
        amounts
            .iter()
            .filter(|(amount, _)| *amount > 0)
            .map(|(amount, unit)| format!("{amount}{unit}"))
            .collect()
    };
    let seconds = micros / 1_000_000;
    let dates =
        named(&[(u128::from(months / 12), "Y"), (u128::from(months % 12), "M"), (seconds / 86_400, "D")]);
    let mut times = named(&[(seconds / 3600 % 24, "H"), (seconds / 60 % 60, "M")]);
    match (seconds % 60, micros % 1_000_000) {
        (0, 0) => {}
        (second, 0) => times.push_str(&format!("{second}S")),
        (second, micros) => {
            times.push_str(format!("{second}.{micros:06}").trim_end_matches('0'));
            times.push('S');
        }
    }
    if dates.is_empty() && times.is_empty() {
        return "P0D".to_owned();
    }
    format!("{sign}P{dates}{}{times}", if times.is_empty() { "" } else { "T" })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Decimals have no exponent and keep their zeros, moments have seconds and a numeric zone, durations the units that they need.
    #[test]
    fn literals_are_written_as_python_writes_them() {
        for line in include_str!("python_forms.jsonl").lines() {
            let row: Value = serde_json::from_str(line).expect(line);
            let write = match row["kind"].as_str().unwrap() {
                "decimal" => decimal,
                "date_time" => date_time,
                "date" => date,
                "time" => time,
                "duration" => duration,
                kind => panic!("no such kind: {kind}"),
            };
            let text = row["text"].as_str().unwrap();
            assert_eq!(write(text).unwrap_or_else(|| text.to_owned()), row["written"], "{line}");
        }
    }
}
