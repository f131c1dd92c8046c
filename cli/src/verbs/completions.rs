//! `kgfleet completions`.

use std::io::{self, Write};

use crate::kit::exit_code::ExitCode;
use crate::kit::shells::{self, KnownShell};

/// Print a script by which a shell completes verbs, options and values.
///
/// bash, in ~/.bashrc: `source <(kgfleet completions bash)`
///
/// zsh, in ~/.zshrc after compinit: `source <(kgfleet completions zsh)`
///
/// fish, in ~/.config/fish/config.fish: `kgfleet completions fish | source`
///
/// The shell asks this program for the names that there are at that moment: of runs, also of a fleet, of their models,
/// tasks and dialogues, and of configurations.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: KnownShell,
}

/// `kgfleet completions`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(&arguments.shell.script(&shells::called())?)?;
    Ok(ExitCode::Success)
}
