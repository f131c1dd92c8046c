//! `kgfleet unbundle`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::RunId;
use results::RunDir;
use results::bundle::{self, BundleHead};

use crate::files::bundle_layout::{DATA, DOCUMENTS, DOCUMENTS_BYTES_MAX, FOR_PEOPLE};
use crate::files::copy;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::place::data_dir::DataDir;

/// Check a bundle and store its run, or its judged benchmark with all runs, among those of this machine.
///
/// Every file is compared with its hash. A run that is there already is completed if it is the same, and left alone if
/// it is another one. The report and the table of a run go into its folder `exports`; those of a judged benchmark stay in
/// the bundle, and `kgfleet report` and `table` write them again. `kgfleet resume` asks nobody for it before
/// --trust-endpoints is given.
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
    let BundleHead { run: name, files, .. } = bundle::unpack(&arguments.file, unpacked.path())?;
    say(&format!("{} files of the bundle are what was put in", files.len()));
    let (data, place) = (unpacked.path().join(DATA), to.display().to_string());
    let Some(documents) =
        documents(unpacked.path(), &name).with_context(|| arguments.file.display().to_string())?
    else {
        copy::tell(&copy::between_folders(&data, &to, &name)?, &place)?;
        return keep_files_for_people(unpacked.path(), &RunDir::open(&to, &name)?.0);
    };
    for run in documents.runs() {
        copy::tell(&copy::between_folders(&data, &to, run)?, &place)?;
    }
    copy::documents(documents, &name, &results::sink::folder(&to), &place)?;
    Ok(ExitCode::Success)
}

/// The documents of an unpacked bundle of a judged benchmark; `None` if it is of a run.
///
/// # Errors
/// They cannot be read, or are those of another benchmark.
fn documents(unpacked: &Path, name: &RunId) -> anyhow::Result<Option<BenchmarkCopy>> {
    let path = unpacked.join(DOCUMENTS);
    let bytes = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.context(DOCUMENTS)?.len(),
    };
    if bytes > DOCUMENTS_BYTES_MAX {
        bail!("{DOCUMENTS} has {bytes} bytes, and {DOCUMENTS_BYTES_MAX} is the limit");
    }
    let copy = BenchmarkCopy::read(&fs::read_to_string(&path).context(DOCUMENTS)?).context(DOCUMENTS)?;
    if copy.name() != Some(name) {
        bail!("{DOCUMENTS} is about another benchmark than the bundle");
    }
    Ok(Some(copy))
}

/// Puts the report and the table of a run beside it.
fn keep_files_for_people(unpacked: &Path, dir: &RunDir) -> anyhow::Result<ExitCode> {
    for name in FOR_PEOPLE {
        let file = unpacked.join(name);
        if file.is_file() {
            let place = dir.exports().join(name);
            fs::copy(&file, &place).with_context(|| format!("cannot write {}", place.display()))?;
        }
    }
    Ok(ExitCode::Success)
}
