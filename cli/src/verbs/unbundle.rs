//! `kgfleet unbundle`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use results::RunDir;
use results::bundle::{self, BundleHead};

use crate::files::bundle_layout::{DATA, FOR_PEOPLE};
use crate::files::copy;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::place::data_dir::DataDir;

/// Check a bundle and store its run among those of this machine.
///
/// Every file is compared with its hash. A run that is there already is completed if it is the same, and left alone if
/// it is another one. The report and the table go into the folder `exports` of the run. `kgfleet resume` asks nobody for it
/// before --trust-endpoints is given.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The bundle.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of runs. Default: --data-dir.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet unbundle`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let to = arguments.to.unwrap_or_else(|| arguments.data.path().to_owned());
    fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    // On the disk where the run is to be, which is known to have room for runs.
    let unpacked = tempfile::tempdir_in(&to).with_context(|| format!("cannot write {}", to.display()))?;
    let BundleHead { run, files, .. } = bundle::unpack(&arguments.file, unpacked.path())?;
    let moved = copy::between_folders(&unpacked.path().join(DATA), &to, &run)?;
    let (dir, _) = RunDir::open(&to, &run)?;
    for name in FOR_PEOPLE {
        let file = unpacked.path().join(name);
        if file.is_file() {
            let place = dir.exports().join(name);
            fs::copy(&file, &place).with_context(|| format!("cannot write {}", place.display()))?;
        }
    }
    say(&format!("{} files of the bundle are what was put in", files.len()));
    copy::tell(&moved, &to.display().to_string());
    Ok(ExitCode::Success)
}
