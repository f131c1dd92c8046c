//! `kgfleet task show`.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use domain::Iteration;
use packs::task_files::{CompiledFile, CompiledTask, presets};
use serde_json::json;
use tasks::families::declared::spec::JudgeSpec;
use tasks::{Dialogue, Effort};

use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::printable;

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
        let (task, number) = found(&compiled, case)?;
        let built = built(&compiled, task)?;
        let iteration = Iteration::try_from(number)?;
        if let Some(system) = built.system(iteration)? {
            writeln!(out, "{}\n", printable(&system))?;
        }
        writeln!(out, "{}", printable(&built.first_prompt(iteration, 0)?.text))?;
        return Ok(ExitCode::Success);
    }
    if let Some(case) = &arguments.answer {
        let (task, number) = found(&compiled, case)?;
        let mut answer = String::new();
        io::stdin().lock().take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        writeln!(out, "{}", serde_json::to_string_pretty(&verdict(&compiled, task, number, &answer)?)?)?;
        return Ok(ExitCode::Success);
    }
    if let Some(case) = &arguments.judge {
        let (task, number) = found(&compiled, case)?;
        let judge = task.data.cases.get(number).and_then(|case| JudgeSpec::of_case(&case.data));
        let judge = judge.ok_or_else(|| usage!("task {} has no `[task.judge]`", task.data.label))?;
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

/// A case by its name, with its task.
fn found<'c>(compiled: &'c CompiledFile, wanted: &str) -> anyhow::Result<(&'c CompiledTask, usize)> {
    let mut all = Vec::new();
    for task in &compiled.tasks {
        for (number, case) in task.data.cases.iter().enumerate() {
            let full = format!("{}/{}", task.data.label, case.uid);
            if case.uid == wanted || full == wanted {
                all.push((task, number, full));
            }
        }
    }
    match all.as_slice() {
        [(task, number, _)] => Ok((task, *number)),
        [] => Err(usage!("there is no case `{wanted}`; `kgfleet task show FILE` lists them")),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, _, full)| full.as_str()).collect();
            Err(usage!("there are several cases `{wanted}`: {}", names.join(", ")))
        }
    }
}

fn built(compiled: &CompiledFile, task: &CompiledTask) -> anyhow::Result<tasks::Task> {
    let graphs = compiled.pack.graphs()?.build();
    let mut built = compiled.pack.build_selected(&graphs, |data| data.label == task.data.label)?;
    built.pop().ok_or_else(|| usage!("there is no task {}", task.data.label))
}

/// The verdict on one answer, with the follow-up that it would get.
fn verdict(
    compiled: &CompiledFile,
    task: &CompiledTask,
    number: usize,
    answer: &str,
) -> anyhow::Result<serde_json::Value> {
    let built = built(compiled, task)?;
    let iteration = Iteration::try_from(number)?;
    let exercise = built.case(iteration).exercise();
    let verdict = exercise.judge(answer, &Effort::full(compiled.pack.header().limits));
    let (scores, infos) = (verdict.scores.clone(), verdict.infos.clone());
    let mut dialogue = Dialogue::new(exercise.shots());
    dialogue.take(verdict);
    let next = built.next_prompt(iteration, 0, &dialogue)?;
    Ok(json!({"scores": scores, "infos": infos, "followUp": next.map(|prompt| prompt.text)}))
}
