//! `kgfleet plan`.

use std::io::{self, Write};
use std::path::PathBuf;

use coordinator::plan::PlannedModel;
use serde_json::json;

use crate::configure::choose::Selection;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::Table;
use crate::place::folders;

/// Print what a configuration would run, without running it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml), or `quick` for the bundled one.
    config: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Repetitions of a task: one number, or the lowest and the highest.
fn counts(model: &PlannedModel, tasks: usize) -> String {
    let least = (0..tasks).map(|task| model.iterations_of(task)).min().unwrap_or(0);
    match model.most_iterations(tasks) {
        most if most == least => most.to_string(),
        most => format!("{least}-{most}"),
    }
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let configuration = arguments.selection.configuration(Some(&arguments.config))?;
    let (pack, plan) = folders::plan(&configuration)?;
    let units = plan.units(|_, _, _| false);
    // Published means: 2 278 characters per first prompt, 1 050 per answer, 4 characters per token.
    let mean_seconds = 14.1;
    let hours = plan.dialogues() as f64 * mean_seconds / 3600.0;
    let mut out = io::stdout().lock();
    if arguments.json {
        let models: Vec<_> = plan
            .models
            .iter()
            .map(|model| {
                let counts = (0..plan.tasks.len()).map(|task| model.iterations_of(task));
                let of_task: serde_json::Map<String, serde_json::Value> = plan
                    .tasks
                    .iter()
                    .zip(counts)
                    .filter(|(_, count)| *count != model.iterations)
                    .map(|(task, count)| (task.label.to_string(), count.into()))
                    .collect();
                let mut shown = json!({"model": model.label, "iterations": model.iterations});
                if !of_task.is_empty() {
                    shown["task_iterations"] = of_task.into();
                }
                shown
            })
            .collect();
        let plan_hash = plan.hash(configuration.seed, pack.hash().as_str());
        let value = json!({
            "name": configuration.name, "dialogues": plan.dialogues(), "units": units.len(), "models": models,
            "tasks": plan.tasks.iter().map(|task| &task.label).collect::<Vec<_>>(),
            "pack": {"name": pack.header().name, "hash": pack.hash().as_str()}, "plan_hash": plan_hash,
            "sequential_hours_estimate": hours,
        });
        writeln!(out, "{value}")?;
        return Ok(ExitCode::Success);
    }
    let mut table = Table::default().left(["model"]).right(["iterations", "tasks", "dialogues", "units"]);
    for (index, model) in plan.models.iter().enumerate() {
        table.row(vec![
            model.label.to_string(),
            counts(model, plan.tasks.len()),
            plan.tasks.len().to_string(),
            model.dialogues(plan.tasks.len()).to_string(),
            units.iter().filter(|unit| unit.model == index).count().to_string(),
        ]);
    }
    table.total(vec![
        format!("{} models", plan.models.len()),
        String::new(),
        plan.tasks.len().to_string(),
        plan.dialogues().to_string(),
        units.len().to_string(),
    ]);
    table.write(&mut out)?;
    writeln!(out, "\npack {} {}, seed {}", pack.header().name, pack.hash().short(), configuration.seed)?;
    writeln!(
        out,
        "one after another, at the published mean of {mean_seconds} s per dialogue of hosted models: {hours:.1} hours"
    )?;
    Ok(ExitCode::Success)
}
