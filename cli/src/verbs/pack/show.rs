//! `kgfleet pack show`.

use std::io::{self, Write};
use std::path::PathBuf;

use domain::redaction::redacted_value;
use serde_json::{Map, Value, json};

use crate::kit::exit_code::ExitCode;
use crate::kit::output::printable;
use crate::place::packs::{self, NamedCase, PackPassword};

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
    let NamedCase { of, case, task, iteration } = packs::case(&pack, &arguments.case)?;
    let texts = json!({
        "firstPrompt": task.first_prompt(iteration, 0)?.text,
        "followUps": of.wording,
        "data": case.data,
        "referenceAnswer": case.reference_answer,
        "wrongAnswer": case.wrong_answer,
        "malformedAnswer": case.malformed_answer,
    });
    let texts = if pack.header().protected && !arguments.plaintext { redacted_value(&texts) } else { texts };
    let mut out = io::stdout().lock();
    if arguments.json {
        let mut object = json!({
            "task": of.label, "case": case.uid, "class": of.class, "parameters": of.parameters,
        });
        if let (Some(object), Value::Object(texts)) = (object.as_object_mut(), texts) {
            object.extend(texts);
        }
        writeln!(out, "{object}")?;
        return Ok(ExitCode::Success);
    }
    writeln!(out, "task        {}", of.label)?;
    writeln!(out, "case        {}", case.uid)?;
    writeln!(out, "class       {}", of.class)?;
    writeln!(out, "parameters  {}", Value::Object(of.parameters.clone()))?;
    for (title, value) in texts.as_object().unwrap_or(&Map::new()) {
        section(title, value, &mut out)?;
    }
    Ok(ExitCode::Success)
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
