//! `kgfleet bundle`: a run as one file.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use report::Dialogues;
use report::analysis::scheme;
use report::details::Details;
use report::html::{self, ReportPage};
use results::{RunDir, RunManifest, bundle};

use crate::files::bundle_layout::{DATA, FOR_PEOPLE};
use crate::files::copy;
use crate::files::export::{ExportForm, ExportFormat, ExportSource};
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::place::data_dir::DataDir;
use crate::place::disclosure::Disclosure;
use crate::place::remote::MaybeRemote;
use crate::place::{fetch, names};

/// The categories of the report.
const SCHEMES: [&str; 2] = ["sparql-b", "semantic"];

/// Write a run as one file, to keep and to cite: records, manifest, pack, a report and a table, each with its hash.
///
/// Of protected exercises, records and pack are encrypted as they are stored, for the identity that is published with
/// kgfleet, and the report and the table have no texts, unless --plaintext is given. Where keys are is left out of the
/// configuration.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
    run: String,
    /// The file. Default: the name of the run, in the current folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write texts of protected exercises into the report and the table.
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet bundle`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = arguments.remote.named() {
        // The fetched folder is read before it is removed.
        let fetched = fetch::fetch(&remote, &arguments.run)?;
        fetched.refuse_redacted()?;
        let (dir, manifest) = fetched.only()?;
        return write(&arguments, dir, manifest);
    }
    let (dir, manifest) = arguments.data.open(&arguments.run)?;
    // A log that grows while it is read would not be what its hash says.
    let _lock = dir.lock()?;
    write(&arguments, &dir, &manifest)
}

fn write(arguments: &Arguments, dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<ExitCode> {
    let made = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut contents = Vec::new();
    for name in FOR_PEOPLE {
        contents.push((name.to_owned(), made.path().join(name)));
    }
    let [readme, page, table, _] = FOR_PEOPLE.map(|name| made.path().join(name));
    let source = ExportSource::open(dir.clone(), manifest.clone())?;
    let disclosure = Disclosure { plaintext: arguments.plaintext, password: None };
    let dialogues = write_report(&source, manifest, arguments.plaintext, &page)?;
    source.write(ExportFormat::Csv, ExportForm::Wide, &table, &disclosure)?;
    fs::write(&readme, read_me(manifest, dialogues)).context("cannot write a temporary file")?;
    contents.extend(of_run(dir, manifest, made.path())?);
    if let Some((hash, sealed)) = copy::pack_of(dir, manifest) {
        let pack = made.path().join("pack");
        fs::write(&pack, sealed).context("cannot write a temporary file")?;
        contents.push((format!("{DATA}/packs/{hash}.kgpack"), pack));
    }
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.kgbundle", manifest.run)));
    let head = bundle::write(&out, &manifest.run, &contents)?;
    if (dialogues as u64) < manifest.planned_dialogues {
        say(&format!("warning: the run has {dialogues} of {} planned dialogues", manifest.planned_dialogues));
    }
    say(&format!("wrote {} ({dialogues} dialogues, {} files)", out.display(), head.files.len()));
    println!("{}  {}", copy::sha256_of(&out)?, out.display());
    Ok(ExitCode::Success)
}

/// The files of a run that belong into a bundle: manifests, records and retries. The history, which names people, the
/// state of its fleet and the names of keys are left out.
fn of_run(dir: &RunDir, manifest: &RunManifest, made: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for (folder, ending) in [("", ".json"), ("log", ".kglog"), ("log", ".kgseal"), ("retries", ".json")] {
        let path = dir.path().join(folder);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.with_context(|| format!("cannot list {}", path.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = name.ends_with(ending) && (!folder.is_empty() || name.starts_with("manifest"));
            if wanted {
                let parts = [DATA, "runs", manifest.run.as_str(), folder, name.as_str()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let keyless = if folder.is_empty() { without_key_names(&entry.path(), made)? } else { None };
                files.push((parts.join("/"), keyless.unwrap_or_else(|| entry.path())));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A manifest without the names of keys, as a file in this folder; `None` if it names none.
fn without_key_names(path: &Path, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let manifest = RunManifest::read(path)?;
    let Some(keyless) = manifest.without_key_names() else { return Ok(None) };
    if !manifest.is_as_hashed() {
        // The bundle would vouch for a configuration that the run was not planned with.
        bail!("{}: its configuration is not the one that its hash is of", path.display());
    }
    let made = folder.join(path.file_name().unwrap_or_default());
    keyless.write(&made)?;
    say("the names of keys (key, key_env, key_file) stay here");
    Ok(Some(made))
}

/// Writes the report of a run; returns the number of its dialogues.
fn write_report(
    source: &ExportSource,
    manifest: &RunManifest,
    plaintext: bool,
    path: &Path,
) -> anyhow::Result<usize> {
    let mut all = Dialogues::default();
    let mut details = Details::new(plaintext);
    source.read_into(&mut all, Some(&mut details))?;
    let known = scheme::bundled();
    let [combined, compass] = SCHEMES.map(|name| scheme::named(&known, name).map_err(anyhow::Error::msg));
    let (combined, compass) = (combined?, compass?);
    let name = manifest.configuration.get("name").and_then(|name| name.as_str());
    let title = format!("{} ({})", name.unwrap_or("Run"), manifest.run);
    let (title, judged) = (&title, &[]);
    let page = ReportPage { title, dialogues: &all, judged, combined: &combined, compass: &compass };
    let out = BufWriter::new(File::create(path).context("cannot write a temporary file")?);
    html::write(&page, details, out).context("cannot write a temporary file")?;
    Ok(all.len())
}

fn read_me(manifest: &RunManifest, dialogues: usize) -> String {
    let packs: Vec<String> =
        manifest.packs.iter().map(|pack| format!("{} (SHA-256 {})", pack.name, pack.hash)).collect();
    format!(
        "A run of kgfleet, with everything needed to check it.\n\n\
         run            {}\nplanned        {}\ndialogues      {dialogues} of {}\nkgfleet        {}\npacks          {}\n\
         configuration  SHA-256 {}\nplan           SHA-256 {}\n\n\
         bundle.json           every file with its size and SHA-256\n\
         report.html           open it in a browser; it needs no network\n\
         dialogues.csv         one row per dialogue; dialogues.provenance.json says what its numbers mean\n\
         data/runs             manifest and record log\n\
         data/packs            the exercises, encrypted with age for the identity that is published with kgfleet\n\n\
         `kgfleet unbundle FILE` checks every file and stores the run; `kgfleet table`, `report`, `export` and `show` then\n\
         read it. Without kgfleet: `zstd -d < FILE | tar x`.\n",
        manifest.run,
        manifest.created_at,
        manifest.planned_dialogues,
        manifest.kgfleet,
        packs.join(", "),
        manifest.configuration_hash,
        manifest.plan_hash,
    )
}
