//! `kgfleet pack list`.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::json;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, printable};
use crate::kit::screen::Screen;
use crate::place::packs::PackPassword;

/// List the tasks of a pack with their cases.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A sealed pack, the folder of an unsealed one, or `core` for the built-in one.
    #[arg(default_value = crate::place::packs::CORE)]
    pack: PathBuf,
    #[command(flatten)]
    password: PackPassword,
    /// Print one JSON object, with the identifiers of all cases.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pack = arguments.password.open(&arguments.pack)?;
    let (header, tasks) = (pack.header(), pack.list());
    let mut out = io::stdout().lock();
    if arguments.json {
        let object = json!({
            "name": header.name, "version": header.version, "hash": pack.hash(), "licence": header.licence,
            "description": header.description, "provenance": header.provenance,
            "protected": header.protected, "tasks": tasks,
        });
        writeln!(out, "{object}")?;
        return Ok(ExitCode::Success);
    }
    let protected = if header.protected { ", protected" } else { "" };
    writeln!(out, "{} {} ({}{protected})", header.name, header.version, pack.hash().short())?;
    writeln!(out, "{}", printable(&header.description))?;
    writeln!(out)?;
    let mut table =
        Table::default().left(["task", "class", "version", "group", "by default"]).right(["cases"]);
    for task in &tasks {
        table.row(vec![
            task.label.to_string(),
            task.class.clone(),
            task.version.clone(),
            task.group.clone(),
            if task.default { "yes" } else { "no" }.to_owned(),
            task.cases.len().to_string(),
        ]);
    }
    Screen::here().table(&table, &mut out)?;
    Ok(ExitCode::Success)
}
