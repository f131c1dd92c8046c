//! Writes the manual pages, one for the program and one for each of its verbs, into a folder:
//! `cargo run -p cli --example manual -- FOLDER`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder =
        std::env::args_os().nth(1).ok_or_else(|| std::io::Error::other("give the folder for the pages"))?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(cli::command_line(), folder)
}
