//! Writes what lies beside the program where it is installed, into a folder like `/usr/share`: the manual pages, one for the
//! program and one for each of its verbs, and the completions of each shell: `cargo run -p cli --example manual -- FOLDER`.

use std::path::PathBuf;

use cli::kit::shells::{KnownShell, PROGRAM};

/// Where each shell looks for the completions of a program.
const COMPLETIONS: [(KnownShell, &str, &str); 3] = [
    (KnownShell::Bash, "bash-completion/completions", "kgfleet"),
    (KnownShell::Zsh, "zsh/site-functions", "_kgfleet"),
    (KnownShell::Fish, "fish/vendor_completions.d", "kgfleet.fish"),
];

fn main() -> std::io::Result<()> {
    let share = std::env::args_os().nth(1).ok_or_else(|| std::io::Error::other("give the folder"))?;
    let share = PathBuf::from(share);
    let folder = |name: &str| {
        let folder = share.join(name);
        std::fs::create_dir_all(&folder).map(|()| folder)
    };
    clap_mangen::generate_to(cli::command_line(), folder("man/man1")?)?;
    for (shell, place, file) in COMPLETIONS {
        std::fs::write(folder(place)?.join(file), shell.script(PROGRAM)?)?;
    }
    Ok(())
}
