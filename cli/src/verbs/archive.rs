//! `kgfleet archive`: a benchmark as one file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use packs::{Pack, published_password};
use results::run_lock::is_lock_file;
use results::{RunDir, RunManifest, archive};

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{explain, note, say};
use crate::kit::runtime::block_on;
use crate::place::opened::{self, OpenedBenchmark};
use crate::place::{PlaceOptions, completing, folders, local, names};

/// Write a run, or a judged benchmark with all its runs, as one file to keep and to cite.
///
/// The file is a tar archive in zstd with the layout of a data folder: manifests, records, packs, the documents of a judged benchmark,
/// and before them `archive.json`, which lists every file with its size and SHA-256. Verbs that read a run take the path of an archive
/// instead of a name and refuse one in which a hash is wrong. `tar --zstd -xf FILE -C DATA` puts the run into a data folder;
/// `kgfleet resume` then asks nobody for it before --trust-endpoints is given.
///
/// Of protected exercises, records and packs are encrypted as they are stored. The names of keys (key, key_env, key_file) are left
/// out of configurations. Of a fleet come the records that count; protected texts come only to operators.
///
/// Exit codes: 0 written; 2 the run cannot be used; 3 it cannot be read, or the file cannot be written.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    /// The file. Default: NAME.tar.zst in the current folder.
    #[arg(long, value_name = "FILE.tar.zst", value_parser = archive_path)]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Accepts only names by which verbs know an archive.
fn archive_path(path: &str) -> Result<PathBuf, String> {
    if !opened::is_archive(path) {
        return Err(format!("the name of an archive ends with {}", opened::ARCHIVE_ENDING));
    }
    Ok(PathBuf::from(path))
}

/// `kgfleet archive`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut opened = arguments.place.place()?.open(&arguments.run)?;
    opened.refuse_redacted()?;
    let documents = opened.documents()?;
    let OpenedBenchmark { name, runs, .. } = &opened;
    if opened.is_judged && documents.is_none() {
        return Err(usage!("the documents of benchmark {name} are not here; name one of its runs"));
    }
    // A log that grows while it is read would not be what its hash says.
    let _locks = runs.iter().map(|(dir, _)| dir.lock()).collect::<Result<Vec<_>, _>>()?;
    let made = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut names_of_keys = false;
    for (dir, manifest) in runs {
        names_of_keys |= link_run(dir, &made.path().join("runs").join(manifest.run.as_str()))?;
    }
    write_packs(runs, &made.path().join("packs"))?;
    if let Some(mut documents) = documents {
        names_of_keys |= documents.remove_key_names();
        let access = local::beside(made.path())?;
        block_on(async { access.take_copy(documents).await.map_err(explained) })?;
    }
    if names_of_keys {
        say("the names of keys (key, key_env, key_file) stay here");
    }
    let mut files = Vec::new();
    files_below(made.path(), "", &mut files)?;
    let out = arguments.out.unwrap_or_else(|| PathBuf::from(format!("{name}{}", opened::ARCHIVE_ENDING)));
    let head = archive::write(&out, name, &files)?;
    note!("wrote {} ({} runs, {} files)", out.display(), runs.len(), head.files.len());
    writeln!(io::stdout().lock(), "{}  {}", archive::hashed(&out)?.1, out.display())?;
    Ok(ExitCode::Success)
}

/// Puts what an archive holds of a run into a folder: the folders that any run has, links to its logs, and its manifests without the names of keys;
/// returns whether there were any. Its history, which names people, is left out.
fn link_run(dir: &RunDir, folder: &Path) -> anyhow::Result<bool> {
    let mut names_of_keys = false;
    for part in ["log", "exports"] {
        let to = folder.join(part);
        fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
    }
    for (part, ending) in [("", ".json"), ("log", ".kglog"), ("log", ".ends")] {
        let (from, to) = (dir.path().join(part), folder.join(part));
        let entries = match fs::read_dir(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.with_context(|| format!("cannot list {}", from.display()))?,
        };
        fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
        for entry in entries {
            let name = entry.with_context(|| format!("cannot list {}", from.display()))?.file_name();
            let text = name.to_string_lossy();
            if !text.ends_with(ending) || (part.is_empty() && !text.starts_with("manifest")) {
                continue;
            }
            let (from, to) = (std::path::absolute(from.join(&name))?, to.join(&name));
            let keyless = if part.is_empty() { without_key_names(&from)? } else { None };
            names_of_keys |= keyless.is_some();
            match keyless {
                Some(keyless) => keyless.write(&to)?,
                None => symlink(&from, &to).with_context(|| format!("cannot write {}", to.display()))?,
            }
        }
    }
    Ok(names_of_keys)
}

/// A manifest without the names of keys; `None` if it names none.
fn without_key_names(path: &Path) -> anyhow::Result<Option<RunManifest>> {
    let manifest = RunManifest::read(path)?;
    let keyless = manifest.without_key_names();
    if keyless.is_some() && !manifest.is_as_hashed() {
        // The archive would vouch for a configuration that the run was not planned with.
        bail!("{}: its configuration is not the one that its hash is of", path.display());
    }
    Ok(keyless)
}

/// Writes the packs of the runs into a folder. Tables and reports need only records, so a pack that is not here is a warning.
fn write_packs(runs: &[(RunDir, RunManifest)], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut written = BTreeSet::new();
    for (dir, manifest) in runs {
        match sealed_pack(dir, manifest) {
            Ok((hash, sealed)) => {
                // Runs of a judged benchmark share some.
                let path = folder.join(format!("{hash}.kgpack"));
                if written.insert(hash) {
                    fs::write(&path, sealed).with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
            Err(error) => {
                say(&format!("warning: run {} goes without its pack: {}", manifest.run, explain(&error)));
            }
        }
    }
    Ok(())
}

/// The hash of a run's pack, and the pack as a sealed file. An existing file is preferred, because sealing again gives other
/// bytes.
fn sealed_pack(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<(String, Vec<u8>)> {
    let (pack, _) = folders::plan_kept(dir, manifest)?;
    let hash = pack.hash().as_str().to_owned();
    let used = manifest.packs.first().map(|used| used.hash.as_str());
    if used != Some(&hash) {
        bail!("it asked pack SHA-256 {}, and here is {hash}", used.unwrap_or("none"));
    }
    let password = published_password();
    if let Some((path, _)) = folders::packs_beside(dir).find(&hash) {
        return Ok((hash, fs::read(path)?));
    }
    let bundled = packs::bundled(pack.name()).filter(|sealed| {
        Pack::open_bytes(&hash, sealed, &password).is_ok_and(|found| found.hash().as_str() == hash)
    });
    match bundled {
        Some(sealed) => Ok((hash, sealed.to_vec())),
        None => Ok((hash, packs::seal_quickly(pack.parts(), &password)?)),
    }
}

/// Every folder and file below a folder by its name in an archive, in order; without the locks that a coordinator made there.
fn files_below(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> anyhow::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            let name = format!("{prefix}{name}/");
            files.push((name.clone(), path.clone()));
            files_below(&path, &name, files)?;
        } else if !is_lock_file(&name) {
            files.push((format!("{prefix}{name}"), path));
        }
    }
    Ok(())
}
