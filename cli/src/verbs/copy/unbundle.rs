//! Stores what a bundle holds, after every file was compared with its hash. Report, table and servers of a run go into its folder
//! `exports`; those of a judged benchmark stay in the bundle, since `kgfleet report` and `table` write them again.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::RunId;
use results::RunDir;
use results::bundle::{self, BundleHead};

use crate::files::bundle_layout::{DATA, DOCUMENTS, DOCUMENTS_BYTES_MAX, FOR_PEOPLE, SERVERS};
use crate::files::copy;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::note;

pub(super) fn run(file: &Path, to: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    // On the disk where the run is to be, which is known to have room for runs.
    let unpacked = tempfile::tempdir_in(to).with_context(|| format!("cannot write {}", to.display()))?;
    let BundleHead { run: name, files, .. } = bundle::unpack(file, unpacked.path())?;
    note!("{} files of the bundle are what was put in", files.len());
    let (data, place) = (unpacked.path().join(DATA), to.display().to_string());
    let Some(documents) = documents(unpacked.path(), &name).with_context(|| file.display().to_string())?
    else {
        copy::tell(&copy::between_folders(&data, to, &name)?, &place)?;
        return keep_files_for_people(unpacked.path(), &RunDir::open(to, &name)?.0);
    };
    for run in documents.runs() {
        copy::tell(&copy::between_folders(&data, to, run)?, &place)?;
    }
    copy::documents(documents, &name, &results::sink::folder(to), &place)?;
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
    for name in FOR_PEOPLE.into_iter().chain([SERVERS]) {
        let file = unpacked.join(name);
        if file.is_file() {
            let place = dir.exports().join(name);
            fs::copy(&file, &place).with_context(|| format!("cannot write {}", place.display()))?;
        }
    }
    Ok(ExitCode::Success)
}
