//! Environment variables from a file.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use service_kit::umask;

use crate::kit::exit_code::{Exit, usage};

/// Set in a process that has taken its file already.
const TAKEN: &str = "KGFLEET_ENV_FILE_TAKEN";

/// The umask of the files that this process writes, in octal digits.
const UMASK: &str = "KGFLEET_UMASK";

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Begins this process anew, with the variables of a file: options and libraries have read their environment by now. Variables
/// that are set stay as they are. Returns where that has happened.
///
/// # Errors
/// The file cannot be read, or has a line that is no variable.
pub fn take(file: &Path) -> anyhow::Result<()> {
    if std::env::var_os(TAKEN).is_some() {
        return Ok(());
    }
    let text = service_kit::named_files::read_text(file, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(Exit::usage)?;
    let variables = variables(&text).map_err(|line| {
        // Without the line itself, which may hold a key.
        usage!("{}:{line}: expected NAME=VALUE", file.display())
    })?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let unset = variables.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let failed = Command::new(program).args(std::env::args_os().skip(1)).envs(unset).env(TAKEN, "1").exec();
    bail!(failed)
}

/// Lets nobody but its user read what this process writes, unless the variable `KGFLEET_UMASK` wishes otherwise.
///
/// # Errors
/// The variable is no umask.
pub fn keep_files_private() -> anyhow::Result<()> {
    let wished = match std::env::var(UMASK) {
        Ok(text) => {
            let mask = u32::from_str_radix(&text, 8).ok().filter(|mask| *mask <= 0o777);
            Some(mask.ok_or_else(|| usage!("{UMASK} is `{text}`; expected an octal umask, such as 022"))?)
        }
        Err(_) => None,
    };
    umask::restrict(wished);
    Ok(())
}

/// The variables of a file, or the number of the line that has none.
fn variables(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut read = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for variable in dotenvy::from_read_iter(line.as_bytes()) {
            read.push(variable.map_err(|_| number + 1)?);
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_variable_a_comment_or_wrong() {
        let text = "# keys\nOPENAI_API_KEY=sk-1\n\nexport OTHER='a b' # why\nEMPTY=\n";
        let expected = [("OPENAI_API_KEY", "sk-1"), ("OTHER", "a b"), ("EMPTY", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables(text).unwrap(), expected);
        assert_eq!(variables("A=1\nno variable\n"), Err(2));
    }
}
