//! Writes a benchmark as one file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use benchmarks::showing::{KindPage, Showing};
use coordinator::BenchmarkCopy;
use costs::Prices;
use domain::RunId;
use domain::pools::ServerUsage;
use report::Dialogues;
use report::analysis::scheme;
use report::details::Details;
use report::html::{self, ReportPage};
use results::{RunDir, RunManifest, bundle};

use super::servers;
use crate::files::bundle_layout::{DATA, DOCUMENTS, FOR_PEOPLE, README, REPORT, SERVERS};
use crate::files::copy;
use crate::files::export::{ExportForm, ExportFormat, ExportSource};
use crate::files::judged::{FolderReader, KindBenchmarks, KindInputs};
use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{note, say};
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::disclosure::Disclosure;
use crate::place::fetch;
use crate::place::remote::MaybeRemote;

/// What the text for people says where servers are cited.
const SERVERS_TOLD: &str = "\nservers.json: the servers on Kubernetes that made the records, each with its image, \
revision, GPUs and times, and the name of its file in the record store.\n";

/// The categories of the report.
const SCHEMES: [&str; 2] = ["sparql-b", "semantic"];

pub(super) fn run(
    run: &str,
    out: &Path,
    plaintext: bool,
    remote: &MaybeRemote,
    data: &DataDir,
) -> anyhow::Result<ExitCode> {
    if let Some(remote) = remote.named()? {
        // The fetched folder is read before it is removed.
        let fetched = fetch::fetch(&remote, run)?;
        fetched.refuse_redacted()?;
        let left = servers::of_fleet(&remote);
        return write(out, plaintext, (fetched.opened(), left), fetched.data_dir());
    }
    let left = servers::of_folder(data.path())?;
    write(out, plaintext, (data.open_all(run)?, left), data.path())
}

/// Writes the bundle of a benchmark, with what servers left.
fn write(
    out: &Path,
    plaintext: bool,
    (mut opened, left): (OpenedBenchmark, Vec<ServerUsage>),
    data: &Path,
) -> anyhow::Result<ExitCode> {
    let documents = opened.documents(data)?;
    let OpenedBenchmark { name, runs, is_judged } = opened;
    // A log that grows while it is read would not be what its hash says.
    let _locks = runs.iter().map(|(dir, _)| dir.lock()).collect::<Result<Vec<_>, _>>()?;
    let made = tempfile::tempdir().context("cannot make a temporary folder")?;
    let with_texts = plaintext || !runs.iter().any(|(_, manifest)| manifest.protected);
    let cited = servers::cited(left, &runs, with_texts)?;
    let Made { mut contents, mut read_me, holds } = match (documents, runs.as_slice()) {
        (Some(documents), runs) => judged(documents, &name, runs, data, made.path())?,
        (None, [(dir, manifest)]) if !is_judged => one_run(dir, manifest, plaintext, made.path())?,
        (None, _) => {
            return Err(usage!("the documents of benchmark {name} are not here; name one of its runs"));
        }
    };
    if let Some(cited) = cited {
        let path = made.path().join(SERVERS);
        fs::write(&path, cited).context("cannot write a temporary file")?;
        contents.push((SERVERS.to_owned(), path));
        read_me += SERVERS_TOLD;
    }
    fs::write(made.path().join(README), read_me).context("cannot write a temporary file")?;
    let (mut packs, mut names_of_keys) = (BTreeSet::new(), false);
    for (dir, manifest) in &runs {
        contents.extend(of_run(dir, manifest, made.path(), &mut names_of_keys)?);
        // Runs of a judged benchmark share some.
        if let Some((hash, sealed)) =
            copy::pack_of(dir, manifest).filter(|(hash, _)| packs.insert(hash.clone()))
        {
            let pack = made.path().join(format!("{hash}.kgpack"));
            fs::write(&pack, sealed).context("cannot write a temporary file")?;
            contents.push((format!("{DATA}/packs/{hash}.kgpack"), pack));
        }
    }
    if names_of_keys {
        say("the names of keys (key, key_env, key_file) stay here");
    }
    let head = bundle::write(out, &name, &contents)?;
    note!("wrote {} ({holds}, {} files)", out.display(), head.files.len());
    writeln!(io::stdout().lock(), "{}  {}", copy::sha256_of(out)?, out.display())?;
    Ok(ExitCode::Success)
}

/// What was made for a bundle.
struct Made {
    /// Files by their names in it.
    contents: Vec<(String, PathBuf)>,
    /// What it says of itself.
    read_me: String,
    /// What it holds, in words.
    holds: String,
}

/// Makes the files for people of a run.
fn one_run(dir: &RunDir, manifest: &RunManifest, plaintext: bool, made: &Path) -> anyhow::Result<Made> {
    let source = ExportSource::open(dir.clone(), manifest.clone())?;
    let [_, report, table, _] = FOR_PEOPLE.map(|name| made.join(name));
    let mut all = Dialogues::default();
    all.prices = Prices::shipped().into();
    let mut details = Details::new(plaintext);
    source.read_into(&mut all, Some(&mut details))?;
    let title = manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or("Run");
    write_report(&format!("{title} ({})", manifest.run), &all, details, &[], &report)?;
    source.write(ExportFormat::Csv, ExportForm::Wide, &table, &Disclosure { plaintext, password: None })?;
    let dialogues = all.len();
    if (dialogues as u64) < manifest.planned_dialogues {
        say(&format!("warning: the run has {dialogues} of {} planned dialogues", manifest.planned_dialogues));
    }
    let contents = FOR_PEOPLE.map(|name| (name.to_owned(), made.join(name))).into();
    let read_me = read_me_of_run(manifest, dialogues);
    Ok(Made { contents, read_me, holds: format!("{dialogues} dialogues") })
}

/// Makes the documents of a judged benchmark and its files for people.
fn judged(
    mut documents: BenchmarkCopy,
    name: &RunId,
    runs: &[(RunDir, RunManifest)],
    data: &Path,
    made: &Path,
) -> anyhow::Result<Made> {
    let mut kinds = Vec::new();
    let mut reader = FolderReader::open(name.as_str(), data)?
        .with_context(|| format!("the documents of benchmark {name} cannot be read"))?;
    KindBenchmarks::add(&mut kinds, &mut reader, &KindInputs::default())?;
    let pages: Vec<KindPage> = kinds.iter().map(|kind| kind.showing.page(&kind.shown)).collect();
    // Numbers of all dialogues; their texts are in the records.
    write_report(name.as_str(), &Dialogues::default(), Details::new(false), &pages, &made.join(REPORT))?;
    let mut files = vec![README.to_owned(), REPORT.to_owned()];
    for kind in &kinds {
        for show in kind.showing.shows {
            let file = format!("{}.csv", show.name);
            let mut out =
                BufWriter::new(File::create(made.join(&file)).context("cannot write a temporary file")?);
            Showing::table(show, &kind.shown).write_csv(&mut out).context("cannot write a temporary file")?;
            files.push(file);
        }
    }
    let read_me = read_me_of_judged(name, runs, &files);
    let mut contents: Vec<_> = files.into_iter().map(|file| (file.clone(), made.join(file))).collect();
    documents.remove_key_names();
    let path = made.join("documents.json");
    fs::write(&path, documents.to_json().map_err(explained)?).context("cannot write a temporary file")?;
    contents.push((DOCUMENTS.to_owned(), path));
    Ok(Made { contents, read_me, holds: format!("{} runs", runs.len()) })
}

/// The files of a run that belong into a bundle: manifests, records and retries. The history, which names people, the
/// state of its fleet and the names of keys are left out.
fn of_run(
    dir: &RunDir,
    manifest: &RunManifest,
    made: &Path,
    names_of_keys: &mut bool,
) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for (folder, ending) in [("", ".json"), ("log", ".kglog"), ("log", ".kgseal"), ("retries", ".json")] {
        let path = dir.path().join(folder);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
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
                *names_of_keys |= keyless.is_some();
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
    let made = folder.join(format!("{}.{}", manifest.run, path.file_name().unwrap_or_default().display()));
    keyless.write(&made)?;
    Ok(Some(made))
}

fn write_report(
    title: &str,
    dialogues: &Dialogues,
    details: Details,
    judged: &[KindPage],
    path: &Path,
) -> anyhow::Result<()> {
    let known = scheme::bundled();
    let [combined, compass] = SCHEMES.map(|name| scheme::named(&known, name).map_err(anyhow::Error::msg));
    let (combined, compass) = (combined?, compass?);
    let page = ReportPage { title, dialogues, judged, combined: &combined, compass: &compass };
    let out = BufWriter::new(File::create(path).context("cannot write a temporary file")?);
    html::write(&page, details, out).context("cannot write a temporary file")?;
    Ok(())
}

fn read_me_of_run(manifest: &RunManifest, dialogues: usize) -> String {
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
         `kgfleet copy --from FILE` checks every file and stores the run; `kgfleet table`, `report`, `export` and `show` then\n\
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

fn read_me_of_judged(name: &RunId, runs: &[(RunDir, RunManifest)], files: &[String]) -> String {
    let runs: Vec<String> = runs
        .iter()
        .map(|(_, manifest)| format!("  {}  {} dialogues planned", manifest.run, manifest.planned_dialogues))
        .collect();
    format!(
        "A judged benchmark of kgfleet, with everything needed to check it.\n\n\
         benchmark      {name}\nkgfleet        {}\nruns\n{}\n\n\
         bundle.json           every file with its size and SHA-256\n\
         report.html           open it in a browser; it needs no network\n\
         *.csv                 its tables: {}\n\
         {DOCUMENTS}   its configuration, and where it stands\n\
         data/runs             manifests and record logs: answers, and what judges said about them\n\
         data/packs            the exercises and the questions to judges, encrypted with age for the identity that is published\n\
                               with kgfleet\n\n\
         `kgfleet copy --from FILE` checks every file and stores the benchmark; `kgfleet table`, `report`, `export` and `show`\n\
         then read it. Without kgfleet: `zstd -d < FILE | tar x`.\n",
        env!("CARGO_PKG_VERSION"),
        runs.join("\n"),
        files.iter().filter(|file| file.ends_with(".csv")).cloned().collect::<Vec<_>>().join(", "),
    )
}
