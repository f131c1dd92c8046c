//! Shows what is longer than the screen by a pager, as git does.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use crate::kit::screen::Screen;

/// The variable with the pager of this program, which goes before the one of all programs.
const OWN: &str = "KGFLEET_PAGER";
const OF_ALL: &str = "PAGER";

/// The pager of users who name none. It ends at once where the text fits, keeps colours, and leaves the text on the
/// screen.
const USUAL: &str = "less";
const USUAL_OPTIONS: &str = "-FRX";

/// What `less` reads its options from, when a user's own call of it has none.
const LESS: (&str, &str) = ("LESS", "FRX");

/// How a shell ends that cannot start a command.
const NOT_STARTED: [Option<i32>; 2] = [Some(126), Some(127)];

/// Whether a pager is used.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Paging {
    /// Print at once. Without it, what is longer than the terminal goes through the command in KGFLEET_PAGER or PAGER,
    /// or through `less`.
    #[arg(long)]
    no_pager: bool,
}

impl Paging {
    /// Writes a text to standard output: through a pager if that is a terminal with fewer lines. A reader who leaves
    /// before the end is no error.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn show(self, text: &str, screen: Screen) -> io::Result<()> {
        let pager = if self.no_pager || screen.holds(text) {
            None
        } else {
            chosen(std::env::var_os(OWN), std::env::var_os(OF_ALL))
        };
        if let Some(mut pager) = pager
            && paged(&mut pager, text)?
        {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// The command of the pager that these variables name; `None` where one of them declines any.
fn chosen(own: Option<OsString>, of_all: Option<OsString>) -> Option<Command> {
    let Some(named) = own.or(of_all) else {
        let mut usual = Command::new(USUAL);
        usual.arg(USUAL_OPTIONS);
        return Some(usual);
    };
    let words = named.to_string_lossy();
    if matches!(words.trim(), "" | "cat") {
        return None;
    }
    // It may have options.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&named);
    if std::env::var_os(LESS.0).is_none() {
        shell.env(LESS.0, LESS.1);
    }
    Some(shell)
}

/// Shows a text by a pager, and waits until its reader leaves. False if the pager cannot be started.
fn paged(pager: &mut Command, text: &str) -> io::Result<bool> {
    let Ok(mut pager) = pager.stdin(Stdio::piped()).spawn() else { return Ok(false) };
    // Without it, Ctrl-C ends this process as well, and for the pager its text.
    let _ = leave_interrupts();
    let written = pager.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let ended = pager.wait()?;
    if NOT_STARTED.contains(&ended.code()) {
        return Ok(false);
    }
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}

/// Leaves Ctrl-C to the pager from now on: a handler that is there once ends nothing, and stays when its runtime is
/// gone.
fn leave_interrupts() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::interrupt()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(own: Option<&str>, of_all: Option<&str>) -> Option<Vec<String>> {
        let command = chosen(own.map(OsString::from), of_all.map(OsString::from))?;
        let words = [command.get_program()].into_iter().chain(command.get_args());
        Some(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn the_variable_of_this_program_goes_before_that_of_all() {
        assert_eq!(named(None, None).unwrap(), ["less", "-FRX"]);
        assert_eq!(named(None, Some("more")).unwrap(), ["sh", "-c", "more"]);
        assert_eq!(named(Some("less -S"), Some("more")).unwrap(), ["sh", "-c", "less -S"]);
        for (own, of_all) in [(Some(""), Some("more")), (None, Some(" ")), (Some("cat"), None)] {
            assert_eq!(named(own, of_all), None, "{own:?} {of_all:?}");
        }
    }

    #[test]
    fn a_pager_that_is_left_early_is_no_error_and_one_that_is_not_there_is_noticed() {
        let long = "line\n".repeat(100_000);
        let shell = |command: &str| paged(Command::new("sh").args(["-c", command]), &long).unwrap();
        assert!(shell("true") && shell("exit 1") && shell("cat > /dev/null"));
        assert!(!shell("exec /no/such/pager 2> /dev/null"));
        assert!(!paged(&mut Command::new("/no/such/pager"), &long).unwrap());
    }
}
