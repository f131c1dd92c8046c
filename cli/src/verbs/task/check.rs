//! `kgfleet task check`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use packs::task_files::{CompiledFile, CompiledTask, Proof};
use serde_json::json;

use crate::kit::exit_code::{Exit, ExitCode};
use crate::kit::output::{explain, is_broken_pipe, printable, say};
use crate::verbs::task::changes::FolderState;

/// Check a task file without asking a model: its keys, data, queries and prompts, and that answers of known score get it.
///
/// The reference answer of each case must score 1 and one that cannot be read 0; the tests of the file must score what
/// they say. Reference answers with one part less are judged too; those that still score 1 are noted, because they show what
/// is not measured. All mistakes are told at once, each with its line.
///
/// Exit codes: 0 it can be run; 1 an answer does not score what it should; 2 it cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The task file.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Check again whenever the file, or a file below its folder, has changed, until Ctrl-C.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.watch {
        return check(arguments);
    }
    let folder = arguments.file.parent().filter(|folder| !folder.as_os_str().is_empty());
    loop {
        // Before the check, so that what changes meanwhile is checked too.
        let checked = FolderState::of(folder.unwrap_or(Path::new(".")));
        if let Err(error) = check(arguments) {
            if is_broken_pipe(&error) {
                return Err(error);
            }
            say(&explain(&error));
        }
        say(&format!("waiting for a change of {}", arguments.file.display()));
        checked.until_it_changes();
    }
}

fn check(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let compiled = packs::task_files::compile(&arguments.file).map_err(Exit::usage)?;
    let proofs = compiled.prove()?;
    let clean = proofs.iter().all(|proof| proof.failures.is_empty());
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", report(&compiled, &proofs))?;
    } else {
        let width = proofs.iter().map(|proof| proof.label.chars().count()).max().unwrap_or(0);
        for (task, proof) in compiled.tasks.iter().zip(&proofs) {
            write_proof(task, proof, width, &arguments.file.display().to_string(), &mut out)?;
        }
        let lacks = compiled.lacks();
        let end = match (clean, lacks.as_slice()) {
            (false, _) => "not as the file says".to_owned(),
            (true, []) => format!("ok; pack {}", compiled.pack.hash().short()),
            (true, lacks) => format!(
                "ok; pack {}; no {} yet, which `kgfleet task seal` asks for",
                compiled.pack.hash().short(),
                lacks.join(" and no ")
            ),
        };
        writeln!(out, "{end}")?;
    }
    Ok(if clean { ExitCode::Success } else { ExitCode::Unsatisfied })
}

fn write_proof(
    task: &CompiledTask,
    proof: &Proof,
    width: usize,
    file: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let checks: Vec<String> = task.checks.iter().map(|check| format!("`{}`", check.name)).collect();
    writeln!(
        out,
        "{:width$}  {}; {}{}; prompts of up to {} characters",
        proof.label,
        counted(proof.cases, "case"),
        checks.join(", "),
        if task.judge().is_some() { ", and a judge where a benchmark has one" } else { "" },
        proof.prompt_chars,
    )?;
    writeln!(
        out,
        "{:width$}  references {} of {}; tests {} of {}",
        "", proof.references, proof.cases, proof.tests_passed, proof.tests
    )?;
    for (line, failure) in &proof.failures {
        writeln!(out, "{file}:{}: {}", line.unwrap_or(task.line), printable(failure))?;
    }
    for note in &proof.notes {
        writeln!(out, "{:width$}  note: {}", "", printable(note))?;
    }
    Ok(())
}

fn counted(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

fn report(compiled: &CompiledFile, proofs: &[Proof]) -> serde_json::Value {
    let task = |(task, proof): (&CompiledTask, &Proof)| {
        let failures = proof.failures.iter();
        let failures =
            failures.map(|(line, message)| json!({"line": line.unwrap_or(task.line), "message": message}));
        json!({
            "label": proof.label, "cases": proof.cases, "references": proof.references, "tests": proof.tests,
            "testsPassed": proof.tests_passed, "mutants": proof.mutants, "mutantsRight": proof.mutants_right, "promptChars": proof.prompt_chars,
            "failures": failures.collect::<Vec<_>>(), "notes": proof.notes,
        })
    };
    let tasks: Vec<_> = compiled.tasks.iter().zip(proofs).map(task).collect();
    json!({"pack": compiled.pack.hash(), "tasks": tasks, "lacks": compiled.lacks()})
}
