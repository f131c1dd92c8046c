//! Logs to standard error, because standard output is for data.
//!
//! A message or a field may hold what somebody else chose, such as the name of a run that does not exist. Here, and nowhere else,
//! it is kept from looking like a line of its own and from steering a terminal: whatever [steers] is escaped. So every event
//! is one line.

use std::fmt::{self, Debug, Write};
use std::io::IsTerminal as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use domain::text::steers;
use tracing::field::Field;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// Environment variable that selects what is logged, such as `info` or `coordinator=debug,warn`.
pub const LOG_VARIABLE: &str = "KGFLEET_LOG";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object in a line, for collectors.
    Json,
}

/// The filter is invalid.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` in {LOG_VARIABLE} is not a log filter: {reason}; an example is `info,coordinator=debug`")]
pub struct FilterError {
    text: String,
    reason: String,
}

/// Starts logging with the filter in [`LOG_VARIABLE`], or with `default_filter` if it is not set.
///
/// Only the first call in a process has an effect, and none if another subscriber was installed before.
///
/// # Errors
/// The filter is invalid.
pub fn init(format: LogFormat, default_filter: &str) -> Result<(), FilterError> {
    static BEGUN: OnceLock<()> = OnceLock::new();
    let filter = filter(std::env::var(LOG_VARIABLE).ok().as_deref(), default_filter)?;
    BEGUN.get_or_init(|| {
        let colours = std::io::stderr().is_terminal();
        // An error means that tests or an embedding program have their own subscriber.
        let _ = tracing::dispatcher::set_global_default(subscriber(format, filter, colours, std::io::stderr));
    });
    Ok(())
}

fn filter(wanted: Option<&str>, default_filter: &str) -> Result<EnvFilter, FilterError> {
    let text = wanted.filter(|text| !text.trim().is_empty()).unwrap_or(default_filter);
    EnvFilter::builder().parse(text).map_err(|e| FilterError { text: text.to_owned(), reason: e.to_string() })
}

fn subscriber<W>(format: LogFormat, filter: EnvFilter, colours: bool, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match format {
        LogFormat::Text => lines.with_ansi(colours).fmt_fields(format::debug_fn(field).delimited(" ")).into(),
        // Fields beside the message, not below it: collectors index the first level.
        LogFormat::Json => lines.json().flatten_event(true).map_event_format(EscapedJson).into(),
    }
}

/// Refused attempts of a minute that are logged at `info`. Those beyond them are logged at `debug`, so that a flood fills no disk.
const REFUSALS_PER_MINUTE: u32 = 100;

/// Logs an attempt that was refused: whose it was (empty if that is unknown), from which machine, and at what.
pub fn refused(who: &str, from: &str, what: &str) {
    static LOGGED: Mutex<Option<(Instant, u32)>> = Mutex::new(None);
    let now = Instant::now();
    let is_one_of_few = {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = logged.filter(|(began, _)| now.duration_since(*began) < Duration::from_secs(60));
        let (began, count) = minute.unwrap_or((now, 0));
        *logged = Some((began, count.saturating_add(1)));
        count < REFUSALS_PER_MINUTE
    };
    if is_one_of_few {
        tracing::info!(who, from, what, "refused");
    } else {
        tracing::debug!(who, from, what, "refused");
    }
}

/// A field of an event or of a span, for people. The name is ours.
fn field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => {}
        name if out.has_ansi_escapes() => write!(out, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?,
        name => write!(out, "{name}=")?,
    }
    write!(Escaped { out, escape: |c, out| write!(out, "{}", c.escape_default()) }, "{value:?}")
}

/// Events as JSON, without the characters that JSON may hold as they are and that steer a terminal all the same.
struct EscapedJson<F>(F);

impl<S, N, F> FormatEvent<S, N> for EscapedJson<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        // Outside of texts, JSON has no such character but the line feed at its end.
        let in_json = |c: char, out: &mut Writer<'_>| match c {
            '\n' => out.write_char(c),
            c => write!(out, "\\u{:04x}", u32::from(c)),
        };
        Escaped { out: &mut out, escape: in_json }.write_str(&line)
    }
}

/// Writes what [steers] as `escape` does, and everything else as it is.
struct Escaped<'a, 'w> {
    out: &'a mut Writer<'w>,
    escape: fn(char, &mut Writer<'_>) -> fmt::Result,
}

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| steers(*c)) {
            self.out.write_str(&rest[..at])?;
            (self.escape)(c, self.out)?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.out.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logging(format: LogFormat, wanted: Option<&str>, colours: bool, log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let dispatch = subscriber(format, filter(wanted, "info").unwrap(), colours, move || writer.clone());
        tracing::dispatcher::with_default(&dispatch, log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn logged(format: LogFormat, wanted: Option<&str>) -> String {
        logging(format, wanted, false, || {
            tracing::info!(run = "r", "a worker came");
            tracing::debug!("details");
        })
    }

    #[test]
    fn a_flood_of_refusals_is_logged_in_part() {
        let logged = logging(LogFormat::Text, None, false, || {
            (0..100_000).for_each(|_| refused("bob", "127.0.0.1", "cancel_run"));
        });
        assert!(logged.contains(r#"refused who="bob" from="127.0.0.1" what="cancel_run""#), "{logged}");
        assert!(
            logged.lines().count() <= 2 * REFUSALS_PER_MINUTE as usize,
            "a minute may have begun meanwhile"
        );
    }

    #[test]
    fn both_formats_carry_message_and_fields() {
        let text = logged(LogFormat::Text, None);
        assert!(
            text.contains("INFO") && text.contains("a worker came") && text.contains("run=\"r\""),
            "{text}"
        );
        let json = logged(LogFormat::Json, None);
        assert!(json.starts_with('{') && json.contains(r#""message":"a worker came","run":"r""#), "{json}");
        assert_eq!(json.lines().count(), 1);
    }

    /// A name that ends the line, writes one like an audit line, clears the screen in three ways and turns the text around.
    const FORGED: &str = "x\n2026-11-29T00:00:00.000000Z  INFO coordinator::audit: remove who=\"alice\"\r\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\u{2028}é";

    #[derive(Debug, thiserror::Error)]
    #[error("there is no run {FORGED}")]
    struct Unknown;

    /// Every way in which a text gets into an event.
    fn log_what_was_forged() {
        let span = tracing::info_span!("dialogue", run = %FORGED, unit = FORGED);
        let _inside = span.enter();
        tracing::info!(run = %FORGED, as_text = FORGED, as_debug = ?FORGED, "no run {FORGED}");
        let error: &(dyn std::error::Error + 'static) = &Unknown;
        tracing::warn!(error, "two\nlines of ours");
    }

    #[test]
    fn what_others_named_neither_ends_a_line_nor_steers_a_terminal() {
        for colours in [false, true] {
            let text = logging(LogFormat::Text, None, colours, log_what_was_forged);
            let plain = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[3m", "\u{1b}[32m", "\u{1b}[33m"];
            let plain = plain.iter().fold(text.clone(), |text, ours| text.replace(ours, ""));
            assert_eq!(plain.chars().filter(|c| steers(*c)).collect::<String>(), "\n\n", "{text:?}");
            assert!(plain.contains(r"no run x\n2026-11-29T00:00:00.000000Z  INFO coordinator"), "{plain}");
            assert!(plain.contains(r"\r\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\u{2028}é run=x\n2026"), "{plain}");
            assert!(plain.contains(r"two\nlines of ours error=there is no run x\n2026"), "{plain}");
            assert_eq!(text != plain, colours);
        }
        let json = logging(LogFormat::Json, None, false, log_what_was_forged);
        assert_eq!(json.chars().filter(|c| steers(*c)).collect::<String>(), "\n\n", "{json:?}");
        assert!(json.contains(r#"\r\u001b[2J\u009b2J\u007f\u202e\u2028é","run":"x\n2026"#), "{json}");
    }

    #[test]
    fn the_variable_chooses_and_an_empty_one_does_not() {
        assert!(logged(LogFormat::Text, Some("debug")).contains("details"));
        assert!(!logged(LogFormat::Text, Some(" ")).contains("details"));
        assert_eq!(logged(LogFormat::Text, Some("off")), "");
    }

    #[test]
    fn a_filter_that_says_nothing_is_an_error_with_an_example() {
        let error = filter(Some("coordinator=loud"), "info").unwrap_err().to_string();
        assert!(
            error.contains("`coordinator=loud` in KGFLEET_LOG") && error.contains("an example"),
            "{error}"
        );
    }

    #[test]
    fn beginning_twice_is_harmless() {
        init(LogFormat::Text, "warn").unwrap();
        init(LogFormat::Json, "debug").unwrap();
    }
}
