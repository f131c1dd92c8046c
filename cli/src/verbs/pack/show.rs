//! `kgfleet pack show`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use domain::Iteration;
use domain::redaction::redacted_value;
use packs::Pack;
use serde_json::{Map, Value, json};

use crate::kit::exit_code::ExitCode;
use crate::kit::output::printable;
use crate::place::packs::{PackPassword, as_exit};

/// Show one case: its prompt, its evaluation data, and its answers of known score.
///
/// Texts of protected packs are replaced by their lengths, unless --plaintext is given.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A sealed pack, the folder of an unsealed one, or `core` for the built-in one.
    pack: PathBuf,
    /// The case: TASK/CASE, or CASE alone if it is unique.
    case: String,
    #[command(flatten)]
    password: PackPassword,
    /// Show texts of protected packs.
    #[arg(long)]
    plaintext: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pack = arguments.password.open(&arguments.pack)?;
    let (task, case) = pack.show(&arguments.case).map_err(as_exit)?;
    let texts = json!({
        "firstPrompt": first_prompt(&pack, task.label.as_str(), &case.uid)?,
        "followUps": task.wording,
        "data": case.data,
        "referenceAnswer": case.reference_answer,
        "wrongAnswer": case.wrong_answer,
        "malformedAnswer": case.malformed_answer,
    });
    let texts = if pack.header().protected && !arguments.plaintext { redacted_value(&texts) } else { texts };
    let mut out = io::stdout().lock();
    if arguments.json {
        let mut object = json!({
            "task": task.label, "case": case.uid, "class": task.class, "parameters": task.parameters,
        });
        if let (Some(object), Value::Object(texts)) = (object.as_object_mut(), texts) {
            object.extend(texts);
        }
        writeln!(out, "{object}")?;
        return Ok(ExitCode::Success);
    }
    writeln!(out, "task        {}", task.label)?;
    writeln!(out, "case        {}", case.uid)?;
    writeln!(out, "class       {}", task.class)?;
    writeln!(out, "parameters  {}", Value::Object(task.parameters.clone()))?;
    for (title, value) in texts.as_object().unwrap_or(&Map::new()) {
        section(title, value, &mut out)?;
    }
    Ok(ExitCode::Success)
}

/// The prompt of the first iteration that has this case.
fn first_prompt(pack: &Pack, label: &str, uid: &str) -> anyhow::Result<String> {
    let graphs = pack.graphs().map_err(as_exit)?.build();
    let tasks = pack.build_selected(&graphs, |task| task.label.as_str() == label).map_err(as_exit)?;
    let task = tasks.first().context("the task of the case is not in the pack")?;
    let case = task.cases().iter().position(|case| case.data.uid == uid).context("the case is gone")?;
    Ok(task.first_prompt(Iteration::try_from(case)?, 0)?.text)
}

/// A text under its title, or one text per key if there are several.
fn section(title: &str, value: &Value, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Null => Ok(()),
        Value::Object(fields) if !fields.contains_key("redacted_chars") => {
            fields.iter().try_for_each(|(key, value)| section(&format!("{title}.{key}"), value, out))
        }
        Value::String(text) => writeln!(out, "\n--- {title}\n{}", printable(text)),
        other => writeln!(out, "\n--- {title}\n{other}"),
    }
}
