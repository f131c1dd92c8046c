//! `kgfleet show`.

use std::io::{self, Write};

use anyhow::bail;
use domain::{DialogueKey, Outcome};
use results::export::jsonl::redact;
use results::export::score_at;

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::printable;
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::disclosure::{self, Disclosure, TextForm};
use crate::place::remote::MaybeRemote;
use crate::place::{fetch, folders, names};

/// Show one dialogue of a run, or of any run of a judged benchmark.
///
/// `kgfleet dialogues` lists their names. Texts of protected exercises are replaced by their lengths, unless --plaintext is
/// given. Records of a fleet are fetched first.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
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
    remote: MaybeRemote,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet show`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let key = key(&arguments.dialogue)?;
    let (_fetched, OpenedBenchmark { name, runs, .. }) =
        fetch::open(&arguments.remote, &arguments.data, &arguments.run)?;
    let mut found = Vec::new();
    for (dir, manifest) in runs {
        let index = folders::recorded(&dir, &manifest)?;
        let entry = index.read(&dir.log(), disclosure::cipher(&manifest)?.as_ref(), &key)?;
        found.extend(entry.map(|entry| (manifest, entry.record)));
    }
    // Judges are asked about each model in a run of its own, whose dialogues are numbered alike.
    if let [_, _, ..] = found.as_slice() {
        let runs: Vec<&str> = found.iter().map(|(manifest, _)| manifest.run.as_str()).collect();
        bail!(usage!("several runs of {name} have a dialogue {key}; name one of {}", runs.join(", ")));
    }
    let Some((manifest, mut record)) = found.pop() else {
        bail!(usage!("{name} has no record of dialogue {key}"));
    };
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
    let headline = report::input::headline(&provenance.task.class, &provenance.task.version);
    match &record.outcome {
        Outcome::Scored { scores, .. } => {
            if let Some(score) = score_at(scores, headline) {
                writeln!(out, "score: {score:.3} ({})", headline.join("."))?;
            }
        }
        Outcome::Unscored { cause, .. } | Outcome::Failed { cause, .. } => {
            writeln!(out, "not scored: {cause}")?;
        }
    }
    match &provenance.made_at {
        None => writeln!(out, "made at: unknown")?,
        Some(made_at) => {
            for (what, value) in made_at.lines() {
                writeln!(out, "{what}: {}", printable(&value))?;
            }
        }
    }
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
