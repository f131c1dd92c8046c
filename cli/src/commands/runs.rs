//! Commands on stored runs: `runs`, `export`, `show`, `rm`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use domain::control::RunPhase;
use domain::{DialogueKey, Outcome, RunId};
use jiff::Timestamp;
use results::export::Written;
use results::export::jsonl::redact;
use results::run_dir::FoundRun;
use results::{RunDir, RunManifest};
use serde_json::json;
use stages::RunName;

use crate::commands::fleet::{self, MaybeRemote};
use crate::exit_code::{ExitCode, usage};
use crate::output::{Table, explain, printable};
use crate::run::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::run::protection::{self, Disclosure, TextForm};
use crate::run::{judged, session};
use crate::run_name;

#[derive(Debug, clap::Args)]
pub struct DataDir {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
}

impl DataDir {
    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.data_dir
    }

    /// A run in it, by its name.
    pub(super) fn open(&self, run: &str) -> anyhow::Result<(RunDir, RunManifest)> {
        self.open_by(run, session::open)
    }

    /// The same for a run whose manifest may have been altered: to say so, or to remove it.
    pub(super) fn open_altered(&self, run: &str) -> anyhow::Result<(RunDir, RunManifest)> {
        self.open_by(run, session::open_altered)
    }

    fn open_by(
        &self,
        run: &str,
        open: fn(&RunId, &Path) -> anyhow::Result<(RunDir, RunManifest)>,
    ) -> anyhow::Result<(RunDir, RunManifest)> {
        let name = run_name::of_folder(run, &self.data_dir)?;
        let opened = open(&name, &self.data_dir);
        // Runs are listed only where this is none.
        if opened.is_err()
            && let Some(stage) = judged::runs_in(&name, &self.data_dir)?.first()
        {
            return Err(usage!(
                "{name} is a pipeline: name the run of one of its stages, such as {stage} (`kgfleet runs --stages` lists them)"
            ));
        }
        opened
    }
}

/// List the runs and pipelines of this machine, the oldest first.
#[derive(Debug, clap::Args)]
pub struct RunsArguments {
    /// List the runs of the pipelines' stages too.
    #[arg(long)]
    stages: bool,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataDir,
}

/// A run or pipeline in the list.
struct Listed {
    run: RunId,
    started: Timestamp,
    name: String,
    planned: u64,
    scored: u64,
    failed: u64,
    state: &'static str,
}

/// `kgfleet runs`.
pub fn runs(arguments: RunsArguments) -> anyhow::Result<ExitCode> {
    let found = RunDir::list(arguments.data.path())?;
    let mut listed = Vec::new();
    for view in judged::all(arguments.data.path())? {
        let busy = |found: &FoundRun| found.dir.lock().is_err();
        let is_of_it = |found: &FoundRun| judged::is_run_of(&found.dir.run(), view.run.as_str());
        listed.push(Listed {
            state: match view.phase {
                RunPhase::Preparing | RunPhase::Active => {
                    if found.iter().any(|run| is_of_it(run) && busy(run)) { "running" } else { "interrupted" }
                }
                phase => phase.as_str(),
            },
            run: view.run,
            started: view.created_at,
            name: view.name,
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
        });
    }
    for found in found {
        if !arguments.stages && RunName::read(&found.dir.run()).is_some() {
            continue;
        }
        match list_run(&found) {
            Ok(run) => listed.push(run),
            Err(error) => eprintln!("{}: {}", found.dir.path().display(), explain(&error)),
        }
    }
    listed.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));

    let mut out = io::stdout().lock();
    if arguments.json {
        for Listed { run, started, name, planned, scored, failed, state } in listed {
            let line = json!({
                "run": run, "started": started, "name": name, "state": state,
                "planned": planned, "scored": scored, "failed": failed,
            });
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::Success);
    }
    let mut table = Table::default()
        .left(["run", "started", "name"])
        .right(["dialogues", "scored", "failed"])
        .left(["state"]);
    for Listed { run, started, name, planned, scored, failed, state } in listed {
        table.row(vec![
            run.to_string(),
            started.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            name,
            planned.to_string(),
            scored.to_string(),
            failed.to_string(),
            state.to_owned(),
        ]);
    }
    table.write(&mut out)?;
    Ok(ExitCode::Success)
}

/// A run in the list, from its record log.
fn list_run(found: &FoundRun) -> anyhow::Result<Listed> {
    let manifest = found.manifest.as_ref().map_err(|error| anyhow!("{error}"))?;
    let index = session::recorded(&found.dir, manifest)?;
    let (scored, all) = (index.scored() as u64, index.len() as u64);
    let name = manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or("-");
    Ok(Listed {
        run: manifest.run.clone(),
        started: manifest.created_at,
        name: name.to_owned(),
        planned: manifest.planned_dialogues,
        scored,
        failed: all - scored,
        state: if all >= manifest.planned_dialogues {
            "finished"
        } else if found.dir.lock().is_err() {
            "running"
        } else {
            "interrupted"
        },
    })
}

/// Write a run's records as a file: a run of this machine or, with --coordinator, of its fleet.
///
/// Of a pipeline, the runs of all its stages are written, a file each.
#[derive(Debug, clap::Args)]
pub struct ExportArguments {
    #[arg(help = run_name::HELP)]
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
pub fn export(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    if arguments.form.is_some() && !matches!(arguments.format, ExportFormat::Csv | ExportFormat::Parquet) {
        bail!(usage!("--form is for csv and parquet"));
    }
    let (name, judged) = match arguments.remote.named() {
        Some(remote) => fleet::export::runs_of(&remote, &arguments.run)?,
        None => {
            let name = run_name::of_folder(&arguments.run, arguments.data.path())?;
            let runs = judged::runs_in(&name, arguments.data.path())?;
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
fn export_run(arguments: &ExportArguments, run: &str, of_pipeline: Option<&Path>) -> anyhow::Result<()> {
    // The fetched folder is read before it is removed.
    let fetched = arguments.remote.named().map(|remote| fleet::export::fetch(&remote, run)).transpose()?;
    let (dir, manifest) = match &fetched {
        Some(fetched) => (fetched.dir.clone(), fetched.manifest.clone()),
        // Its name is whole: looking it up would list all runs again for each of them.
        None if of_pipeline.is_some() => session::open(&RunId::new(run), arguments.data.path())?,
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

/// Show one dialogue of a run.
///
/// Texts of protected exercises are replaced by their lengths, unless --plaintext is given.
#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    /// The dialogue: MODEL/TASK/ITERATION, iterations from 0.
    dialogue: String,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
    /// Show texts of protected exercises.
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet show`.
pub fn show(arguments: ShowArguments) -> anyhow::Result<ExitCode> {
    let (dir, manifest) = arguments.data.open(&arguments.run)?;
    let key = key(&arguments.dialogue)?;
    let index = session::recorded(&dir, &manifest)?;
    let Some(entry) = index.read(&dir.log(), protection::cipher(&manifest)?.as_ref(), &key)? else {
        bail!(usage!("run {} has no record of dialogue {key}", arguments.run));
    };
    let mut record = entry.record;
    let disclosure = Disclosure { plaintext: arguments.plaintext, password: None };
    if disclosure.form(&manifest) != TextForm::Clear {
        redact(&mut record);
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &record)?;
        writeln!(out)?;
        return Ok(ExitCode::Success);
    }
    let provenance = &record.provenance;
    writeln!(
        out,
        "{key}: {} {} case {}, started {}",
        provenance.task.class, provenance.task.version, provenance.task.case, record.started_at
    )?;
    if let Some(system) = &record.system {
        writeln!(out, "\n--- system ---\n{}", printable(system))?;
    }
    for (number, round) in record.rounds.iter().enumerate() {
        writeln!(
            out,
            "\n--- prompt {} ({}) ---\n{}",
            number + 1,
            round.prompt.kind,
            printable(&round.prompt.text)
        )?;
        if let Some(reasoning) = &round.answer.reasoning {
            writeln!(out, "\n--- reasoning {} ---\n{}", number + 1, printable(reasoning))?;
        }
        let seconds = round.answered_at.duration_since(round.prompted_at).as_secs_f64();
        writeln!(out, "\n--- answer {} ({seconds:.2} s) ---\n{}", number + 1, printable(&round.answer.text))?;
    }
    match &record.outcome {
        Outcome::Scored { scores, infos } => {
            writeln!(out, "\n--- scores ---\n{}", printable(&serde_json::to_string_pretty(scores)?))?;
            writeln!(out, "\n--- infos ---\n{}", printable(&serde_json::to_string_pretty(infos)?))?;
        }
        Outcome::Unscored { cause, infos, message } => {
            writeln!(out, "\n--- not scored: {cause} ---\n{}", printable(message))?;
            writeln!(out, "\n--- infos ---\n{}", printable(&serde_json::to_string_pretty(infos)?))?;
        }
        Outcome::Failed { cause, message } => {
            writeln!(out, "\n--- not scored: {cause} ---\n{}", printable(message))?;
        }
    }
    Ok(ExitCode::Success)
}

/// Parses MODEL/TASK/ITERATION. Model labels may contain slashes, task labels do not.
fn key(text: &str) -> anyhow::Result<DialogueKey> {
    let parsed = text.rsplit_once('/').and_then(|(rest, iteration)| {
        let (model, task) = rest.rsplit_once('/')?;
        Some(DialogueKey { model: model.into(), task: task.into(), iteration: iteration.parse().ok()? })
    });
    parsed.ok_or_else(|| usage!("`{text}` is not a dialogue; expected MODEL/TASK/ITERATION"))
}

/// Remove a run with all its records: a run of this machine or, with --coordinator, of its fleet.
///
/// A run of this machine is not removed while a process or a coordinator writes it. A run of a fleet must be over, also
/// while no coordinator is there; workers drop records of it that they still hold.
#[derive(Debug, clap::Args)]
pub struct RemoveArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    /// Remove a run of a fleet that is not over, or whose state cannot be read. With --coordinator, it is cancelled first.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet rm`.
pub fn remove(arguments: RemoveArguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = arguments.remote.named() {
        return fleet::steer::remove(&remote, &arguments.run, arguments.force);
    }
    let name = run_name::of_folder(&arguments.run, arguments.data.path())?;
    if let Some(name) = judged::remove(&name, arguments.data.path(), arguments.force)? {
        eprintln!("removed pipeline {name}");
        return Ok(ExitCode::Success);
    }
    let (dir, manifest) = arguments.data.open_altered(&arguments.run)?;
    // No coordinator takes it up from here on.
    let lock = dir.lock()?;
    if !arguments.force {
        judged::expect_removable(&manifest.run, arguments.data.path())?;
    }
    dir.remove(&lock)?;
    eprintln!("removed run {}", manifest.run);
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_labels_may_hold_slashes() {
        let key = key("org/model/RdfFriendCount-nt-1/7").unwrap();
        assert_eq!((key.model.as_str(), key.iteration), ("org/model", 7));
        assert!(super::key("RdfFriendCount").is_err());
        assert!(super::key("m/t/x").is_err());
    }
}
