//! `kgfleet task show`.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use packs::task_files::{CompiledTask, presets};
use serde_json::json;
use tasks::families::declared::spec::JudgeSpec;
use tasks::{Dialogue, Effort};

use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::printable;
use crate::place::packs::{self as material, NamedCase, as_exit};

/// Longest answer that is read from standard input, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Show what a task file says: a prompt as it is sent, the question to a judge, the preset behind a task, or the verdict on an
/// answer.
///
/// Without options, the cases of each task are listed.
///
/// Exit codes: 0 shown; 2 the file or the case cannot be used; 3 standard input cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The task file.
    #[arg(required_unless_present = "presets")]
    file: Option<PathBuf>,
    /// Print the prompt of this case: CASE, or TASK/CASE.
    #[arg(long, value_name = "CASE")]
    prompt: Option<String>,
    /// Judge the answer on standard input to this case: CASE, or TASK/CASE.
    #[arg(long, value_name = "CASE", conflicts_with = "prompt")]
    answer: Option<String>,
    /// Print what a judge is asked about answers to this case: CASE, or TASK/CASE.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["prompt", "answer"])]
    judge: Option<String>,
    /// Print what the preset of each task says.
    #[arg(long)]
    expanded: bool,
    /// List the presets.
    #[arg(long, conflicts_with_all = ["prompt", "answer", "judge", "expanded"])]
    presets: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let Some(file) = arguments.file.as_ref().filter(|_| !arguments.presets) else {
        for preset in &presets::ALL {
            let needs = preset.needs.join(", ");
            writeln!(out, "{:16}{}; fields of a case: {needs}", preset.name, preset.about)?;
        }
        return Ok(ExitCode::Success);
    };
    let compiled = packs::task_files::compile(file).map_err(Exit::usage)?;
    if arguments.expanded {
        for task in &compiled.tasks {
            write_preset(task, &mut out)?;
        }
        return Ok(ExitCode::Success);
    }
    if let Some(case) = &arguments.prompt {
        let NamedCase { task, iteration, .. } = material::case(&compiled.pack, case)?;
        if let Some(system) = task.system(iteration)? {
            writeln!(out, "{}\n", printable(&system))?;
        }
        writeln!(out, "{}", printable(&task.first_prompt(iteration, 0)?.text))?;
        return Ok(ExitCode::Success);
    }
    if let Some(case) = &arguments.answer {
        let case = material::case(&compiled.pack, case)?;
        let mut answer = String::new();
        io::stdin().lock().take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        let effort = Effort::full(compiled.pack.header().limits);
        writeln!(out, "{}", serde_json::to_string_pretty(&verdict(&case, &answer, &effort)?)?)?;
        return Ok(ExitCode::Success);
    }
    if let Some(case) = &arguments.judge {
        let (task, case) = compiled.pack.show(case).map_err(as_exit)?;
        let judge = JudgeSpec::of_case(&case.data);
        let judge = judge.ok_or_else(|| usage!("task {} has no `[task.judge]`", task.label))?;
        writeln!(out, "{}", printable(&judge.question))?;
        return Ok(ExitCode::Success);
    }
    for task in &compiled.tasks {
        writeln!(out, "{}", task.data.label)?;
        for case in &task.data.cases {
            writeln!(out, "  {}", printable(&case.uid))?;
        }
    }
    Ok(ExitCode::Success)
}

fn write_preset(task: &CompiledTask, out: &mut dyn Write) -> io::Result<()> {
    match presets::ALL.iter().find(|preset| Some(preset.name) == task.preset) {
        Some(preset) => {
            writeln!(
                out,
                "# {}: like = \"{}\"; keys of the task itself come first",
                task.data.label, preset.name
            )?;
            writeln!(out, "{}", preset.text.trim_end().replace("[[check]]", "[[task.check]]"))
        }
        None => writeln!(out, "# {}: no preset", task.data.label),
    }
}

/// The verdict on one answer, with the follow-up that it would get.
fn verdict(case: &NamedCase<'_>, answer: &str, effort: &Effort) -> anyhow::Result<serde_json::Value> {
    let NamedCase { task, iteration, .. } = case;
    let exercise = task.case(*iteration).exercise();
    let verdict = exercise.judge(answer, effort);
    let (scores, infos) = (verdict.scores.clone(), verdict.infos.clone());
    let mut dialogue = Dialogue::new(exercise.shots());
    dialogue.take(verdict);
    let next = task.next_prompt(*iteration, 0, &dialogue)?;
    Ok(json!({"scores": scores, "infos": infos, "followUp": next.map(|prompt| prompt.text)}))
}
