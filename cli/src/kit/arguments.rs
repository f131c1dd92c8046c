//! Parses values that several commands take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use worker::IdleAfter;

/// A time in seconds, above 0.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let given: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(given).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time of more than 0 seconds".to_owned())
}

/// A file to read, by somebody who would wait for the writer of a pipe. It need not be there yet.
pub fn file_to_read(text: &str) -> Result<PathBuf, String> {
    match Path::new(text) {
        path if path.exists() && !path.is_file() => Err("is not a regular file".to_owned()),
        path => Ok(path.to_owned()),
    }
}

/// A share, from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number between 0 and 1".to_owned())
}

/// Hours, above 0.
pub fn hours(text: &str) -> Result<f64, String> {
    let hours: f64 = text.parse().map_err(|_| "expected a number of hours".to_owned())?;
    if hours.is_finite() && hours > 0.0 { Ok(hours) } else { Err("expected more than 0 hours".to_owned()) }
}

/// A time in seconds, or `auto`.
pub fn idle_after(text: &str) -> Result<IdleAfter, String> {
    if text == "auto" { Ok(IdleAfter::Auto) } else { seconds(text).map(IdleAfter::Exactly) }
}

/// Dialogues in flight; `None` to adapt to the server.
#[derive(Clone, Copy, Debug)]
pub struct Concurrency(pub Option<u32>);

/// Parses `auto` or a number.
pub fn concurrency(text: &str) -> Result<Concurrency, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Concurrency(None)),
        Ok(number @ 1..) => Ok(Concurrency(Some(number))),
        _ => Err("expected `auto` or a number from 1".to_owned()),
    }
}
