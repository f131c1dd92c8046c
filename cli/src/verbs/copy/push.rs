//! Copies a run of this machine to a folder or an object store.

use anyhow::bail;
use results::sink;
use results::sink::transfer::transfer;

use crate::files::copy;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::runtime::block_on;
use crate::place::data_dir::{DataDir, OpenedBenchmark};

pub(super) fn run(run: &str, to: &str, data: &DataDir) -> anyhow::Result<ExitCode> {
    if copy::is_coordinator(to) {
        bail!(usage!(
            "a coordinator takes no runs; copy to the folder or object store that it keeps its records in"
        ));
    }
    let mut opened = data.open_all(run)?;
    let documents = opened.documents(data.path())?;
    let OpenedBenchmark { name, runs, .. } = opened;
    // A log that is written meanwhile would be copied in part.
    let _locks = runs.iter().map(|(dir, _)| dir.lock()).collect::<Result<Vec<_>, _>>()?;
    let mirror = copy::mirror()?;
    let (here, there) = (sink::folder(data.path()), copy::open(to, mirror.path())?);
    for (dir, manifest) in &runs {
        let moved = block_on(async {
            let moved = transfer(&*here, &*there, &manifest.run).await?;
            // On this machine, a pack may be a file anywhere; the copy needs one of its own.
            if let Some((hash, sealed)) = copy::pack_of(dir, manifest)
                && there.pack(&hash).await?.is_none()
            {
                there.put_pack(&hash, sealed.into()).await?;
            }
            Ok(moved)
        })?;
        copy::tell(&moved, to)?;
    }
    if let Some(documents) = documents {
        copy::documents(documents, &name, &there, to)?;
    }
    Ok(ExitCode::Success)
}
