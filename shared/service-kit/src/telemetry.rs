//! Logs to standard error, because standard output is for data.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

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
        LogFormat::Text => lines.with_ansi(colours).into(),
        // Fields beside the message, not below it: collectors index the first level.
        LogFormat::Json => lines.json().flatten_event(true).into(),
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

    fn logged(format: LogFormat, wanted: Option<&str>) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let dispatch = subscriber(format, filter(wanted, "info").unwrap(), false, move || writer.clone());
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!(run = "r", "a worker came");
            tracing::debug!("details");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
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
