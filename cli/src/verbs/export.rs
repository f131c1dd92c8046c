//! `kgfleet export`.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use report::export::Written;
use serde_json::json;

use crate::files::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::print_json;
use crate::place::disclosure::Disclosure;
use crate::place::{PlaceOptions, completing, names};

/// Write a run's records as a file: a run of this machine or of a fleet.
///
/// Of a judged benchmark, the runs of all its stages are written, a file each.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP_OF_READERS, add = completing::runs())]
    run: String,
    /// File format.
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// What the rows of a csv file are; an xlsx file has both tables. Default: long
    #[arg(long, value_enum)]
    form: Option<ExportForm>,
    /// The file. Default: in the run's folder, under `exports`; for a run of a fleet, in the current folder.
    /// Of a judged benchmark: the folder; by default `NAME+exports`, in the current folder.
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
    place: PlaceOptions,
}

/// `kgfleet export`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.form.is_some() && arguments.format != ExportFormat::Csv {
        bail!(usage!("--form is for csv"));
    }
    let opened = arguments.place.place()?.open(&arguments.run)?;
    // No run has such a name, so the folder is not taken for one, nor one for it.
    let usual = || PathBuf::from(format!("{}+exports", opened.name));
    let folder = opened.is_judged.then(|| arguments.out.clone().unwrap_or_else(usual));
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder)
            .map_err(|error| anyhow!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let disclosure = Disclosure { plaintext: arguments.plaintext, password: arguments.password };
    let form = arguments.form.unwrap_or_default();
    for (dir, manifest) in &opened.runs {
        let name = arguments.format.file_name(form, manifest, &disclosure);
        let path = match (&folder, &arguments.out) {
            (Some(folder), _) => folder.join(name),
            (None, Some(path)) => path.clone(),
            (None, None) if opened.is_copied() => PathBuf::from(name),
            (None, None) => dir.make_exports()?.join(name),
        };
        let written = ExportSource::open(dir, manifest)?.write(arguments.format, form, &path, &disclosure)?;
        if arguments.json {
            let Written { dialogues, left_out } = written;
            print_json(&json!({ "file": path, "dialogues": dialogues, "left_out": left_out }))?;
        }
        export::tell(&path, written);
    }
    Ok(ExitCode::Success)
}
