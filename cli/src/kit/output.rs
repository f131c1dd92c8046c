//! Output for people: tables on standard output, messages on standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::text::with_causes;
use indicatif::{ProgressBar, ProgressStyle};
pub use report::table::{Align, Table, printable, write_wrapped};
pub use report::words::figure;
use serde::Serialize;

/// Prints a value as one line of JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout().lock(), "{}", serde_json::to_string(value)?)?)
}

/// A share as a percentage, never rounded up to `100.00 %`: 100 means all.
pub fn percent(share: f64) -> String {
    if share >= 1.0 {
        return "100 %".to_owned();
    }
    let shown = (share * 10_000.0).floor() / 100.0;
    format!("{shown:.2} %")
}

/// Bytes, with two significant digits from a kilobyte on.
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (1e3, "kB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        1_000_000_000..1_000_000_000_000 => (1e9, "GB"),
        _ => (1e12, "TB"),
    };
    format!("{} {name}", figure(bytes as f64 / unit))
}

/// An error with its causes, for people.
pub fn explain(error: &anyhow::Error) -> String {
    printable(&with_causes(error.as_ref()))
}

/// How much a command says on standard error beside its errors.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out notes and progress from now on: `--quiet`.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes and progress are left out.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Says how a command gets on, unless it is to be quiet; arguments as for `format!`. Errors, warnings and what must be known to go
/// on are [said](say).
macro_rules! note {
    ($($words:tt)*) => {
        if !$crate::kit::output::is_quiet() {
            $crate::kit::output::say(&format!($($words)*));
        }
    };
}
pub(crate) use note;

/// A sign of progress that is drawn by this template, if standard error is a terminal.
pub fn spinner(template: &str) -> ProgressBar {
    let progress =
        if io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template(template) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

/// Writes a line to standard error and ignores failures: a signal must work even if standard error is closed.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether standard output was closed by its reader, such as `head`, which is not a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let inner = anyhow::anyhow!("no such file");
        assert_eq!(
            explain(&inner.context("a.toml: no such file").context("cannot plan")),
            "cannot plan: a.toml: no such file"
        );
    }

    #[test]
    fn sizes_have_two_digits_and_a_unit() {
        let sizes = [0, 999, 1_000, 88_400_000, 1_234_000_000, 5_600_000_000_000];
        assert_eq!(sizes.map(size), ["0 B", "999 B", "1.0 kB", "88 MB", "1.2 GB", "5.6 TB"]);
    }

    #[test]
    fn nearly_everything_is_not_everything() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_999), "99.99 %");
        assert_eq!(percent(0.5), "50.00 %");
    }
}
