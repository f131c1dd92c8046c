//! `kgfleet push`.

use anyhow::bail;
use results::sink;
use results::sink::transfer::transfer;

use crate::files::copy;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::runtime::block_on;
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::names;

/// Copy a run of this machine, or a judged benchmark with all its runs, to a folder or an object store, and check that it
/// arrived.
///
/// A copy that was interrupted is completed by the same command. What is there already of the same run is kept and
/// compared; a different run of the same name is never touched.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
    run: String,
    /// Where to: a data folder, or `file:///FOLDER`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`. Credentials come from the
    /// environment, as for `kgfleet coordinator --sink`.
    #[arg(long, value_name = "PLACE")]
    to: String,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet push`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if copy::is_coordinator(&arguments.to) {
        bail!(usage!(
            "a coordinator takes no runs; push to the folder or object store that it keeps its records in"
        ));
    }
    let mut opened = arguments.data.open_all(&arguments.run)?;
    let documents = opened.documents(arguments.data.path())?;
    let OpenedBenchmark { name, runs, .. } = opened;
    // A log that is written meanwhile would be copied in part.
    let _locks = runs.iter().map(|(dir, _)| dir.lock()).collect::<Result<Vec<_>, _>>()?;
    let mirror = copy::mirror()?;
    let (from, to) = (sink::folder(arguments.data.path()), copy::open(&arguments.to, mirror.path())?);
    for (dir, manifest) in &runs {
        let moved = block_on(async {
            let moved = transfer(&*from, &*to, &manifest.run).await?;
            // On this machine, a pack may be a file anywhere; the copy needs one of its own.
            if let Some((hash, sealed)) = copy::pack_of(dir, manifest)
                && to.pack(&hash).await?.is_none()
            {
                to.put_pack(&hash, sealed.into()).await?;
            }
            Ok(moved)
        })?;
        copy::tell(&moved, &arguments.to)?;
    }
    if let Some(documents) = documents {
        copy::documents(documents, &name, &to, &arguments.to)?;
    }
    Ok(ExitCode::Success)
}
