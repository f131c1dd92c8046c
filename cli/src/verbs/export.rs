//! `kgfleet export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use domain::RunId;
use results::export::Written;
use serde_json::json;

use crate::files::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::kit::exit_code::{usage, ExitCode};
use crate::place::{fetch, folders, local, names};
use crate::place::data_dir::DataDir;
use crate::place::disclosure::Disclosure;
use crate::place::remote::MaybeRemote;

/// Write a run's records as a file: a run of this machine or, with --coordinator, of its fleet.
///
/// Of a pipeline, the runs of all its stages are written, a file each.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
    run: String,
    /// File format.
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// What the rows of a csv or parquet file are; an xlsx file has both tables. Default: long
    #[arg(long, value_enum)]
    form: Option<ExportForm>,
    /// The file. Default: in the run's folder, under `exports`; with --coordinator, in the current folder. Of a pipeline: the
    /// folder; by default its name, in the current folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the result-json of a run on protected exercises into a zip archive encrypted with this password
    /// (AES-256).
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Write texts of protected exercises in plaintext.
    #[arg(long)]
    plaintext: bool,
    /// Print what was written as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet export`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.form.is_some() && !matches!(arguments.format, ExportFormat::Csv | ExportFormat::Parquet) {
        bail!(usage!("--form is for csv and parquet"));
    }
    let (name, judged) = match arguments.remote.named() {
        Some(remote) => fetch::runs_of(&remote, &arguments.run)?,
        None => {
            let name = names::of_folder(&arguments.run, arguments.data.path())?;
            let runs = local::runs_in(&name, arguments.data.path())?;
            (name, runs)
        }
    };
    if judged.is_empty() {
        export_run(&arguments, &arguments.run, None)?;
        return Ok(ExitCode::Success);
    }
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| anyhow!("cannot make the folder {}: {error}", folder.display()))?;
    for run in &judged {
        export_run(&arguments, run.as_str(), Some(&folder))?;
    }
    Ok(ExitCode::Success)
}

/// Writes a run as a file, one of a pipeline into the folder of its pipeline.
fn export_run(arguments: &Arguments, run: &str, of_pipeline: Option<&Path>) -> anyhow::Result<()> {
    // The fetched folder is read before it is removed.
    let fetched = arguments.remote.named().map(|remote| fetch::fetch(&remote, run)).transpose()?;
    let (dir, manifest) = match &fetched {
        Some(fetched) => (fetched.dir.clone(), fetched.manifest.clone()),
        // Its name is whole: looking it up would list all runs again for each of them.
        None if of_pipeline.is_some() => folders::open(&RunId::new(run), arguments.data.path())?,
        None => arguments.data.open(run)?,
    };
    let disclosure = Disclosure { plaintext: arguments.plaintext, password: arguments.password.clone() };
    let form = arguments.form.unwrap_or_default();
    let name = arguments.format.file_name(form, &manifest, &disclosure);
    let path = match (of_pipeline, &arguments.out) {
        (Some(folder), _) => folder.join(name),
        (None, Some(path)) => path.clone(),
        (None, None) if fetched.is_some() => PathBuf::from(name),
        (None, None) => dir.exports().join(name),
    };
    let written = ExportSource::open(dir, manifest)?.write(arguments.format, form, &path, &disclosure)?;
    Ok(tell(&path, written, arguments.json)?)
}

/// Describes a written file.
fn tell(path: &Path, written: Written, json: bool) -> io::Result<()> {
    if json {
        let Written { dialogues, left_out } = written;
        writeln!(io::stdout(), "{}", json!({ "file": path, "dialogues": dialogues, "left_out": left_out }))?;
    }
    export::tell(path, written);
    Ok(())
}
