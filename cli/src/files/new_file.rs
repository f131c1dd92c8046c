//! Files that a command begins for people to change.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;

use crate::kit::exit_code::usage;

/// Writes a file that must not be there, so that nothing of anybody is lost.
///
/// # Errors
/// It is there already (exit code 2); it cannot be written.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => usage!("{shown} is there already; name another file"),
        _ => anyhow::Error::from(error).context(format!("cannot write {shown}")),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {shown}"))
}
