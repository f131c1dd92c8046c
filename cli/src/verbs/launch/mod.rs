//! `kgfleet launch`: from a configuration to pools of GPUs on Kubernetes, or jobs on Slurm.

mod apply;
mod plan;
mod slurm;
mod table;
mod values;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use benchmarks::kinds;
use coordinator::configuration::Configuration;
use costs::Prices;
use domain::control::Submission;
use serde_json::{Value, json};

use self::apply::Release;
use self::plan::{LaunchPlan, Shortest, WantedModel};
use self::slurm::SlurmOptions;
use self::table::Sizes;
use self::values::{KEYS_SECRET, Scaling, WEIGHTS_SECRET};
use crate::configure::choose::Selection;
use crate::engine::submit;
use crate::files::prices::PriceTable;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, printable};
use crate::kit::runtime::block_on;
use crate::place::folders;
use crate::place::remote::{MaybeRemote, Remote};

/// Plan the GPUs of a configuration, and run it on Kubernetes or Slurm.
///
/// Prints which models run when, on how many GPUs and for how long, by a table of model sizes whose times are
/// estimates; and what does not fit, and why. --values writes the chart's values. --apply installs the chart with
/// helm. With --prometheus, KEDA scales all pools by their backlog. Without it, and with --coordinator, the waves of
/// the plan are installed one after the other, each when the models before it are done; judges come last. --slurm submits
/// the run and an array of jobs for each model instead, in whatever order Slurm starts them. Exit codes: 0; 1 some models
/// do not fit; 2 the configuration or the table cannot be used; 3 helm, sbatch or the coordinator failed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml).
    #[arg(required_unless_present = "teardown")]
    config: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// GPUs that may be used at once. Default: those of one node; on Slurm, as many as a model needs.
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Table of GPUs and model sizes. Default: the one of this program, `deploy/launch/models.toml` in its sources.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Write the chart's values to this file: of all pools with --prometheus, otherwise of the first wave.
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Let KEDA scale the pools, by the backlog that this Prometheus knows.
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// Install the chart and start the run.
    #[arg(long)]
    apply: bool,
    /// Remove the release, and with it all pools. Records, tokens and certificates stay.
    #[arg(long, conflicts_with_all = ["config", "apply", "values"])]
    teardown: bool,
    #[command(flatten)]
    prices: PriceTable,
    #[command(flatten)]
    release: Release,
    #[command(flatten)]
    slurm: SlurmOptions,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: MaybeRemote,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.teardown {
        arguments.release.remove()?;
        return Ok(ExitCode::Success);
    }
    let config = arguments.config.as_deref();
    let configuration = arguments.selection.configuration(config)?;
    let sizes = Sizes::read(arguments.table.as_deref())?;
    let usual = if arguments.slurm.slurm { u32::MAX } else { sizes.gpu.per_node };
    let gpus = arguments.gpus.unwrap_or(usual);
    let plan = plan(&configuration, &sizes, gpus)?;
    if arguments.slurm.slurm {
        let remote = arguments.remote.named();
        arguments.slurm.carry_out(&configuration, config, &plan, &sizes, remote.as_ref())?;
        return Ok(verdict(&plan));
    }
    let scaling = match &arguments.prometheus {
        Some(url) => Scaling::Keda(url),
        None => Scaling::Wave(0),
    };
    let values = values::values(&plan, &sizes, &scaling);
    if let Some(file) = &arguments.values {
        std::fs::write(file, serde_saphyr::to_string(&values)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    print(&plan, &sizes, &configuration, gpus, &arguments.prices.read()?, arguments.json)?;
    if arguments.apply {
        carry_out(&arguments, &configuration, config, &plan, &sizes)?;
    }
    Ok(verdict(&plan))
}

fn verdict(plan: &LaunchPlan) -> ExitCode {
    if plan.refused.is_empty() { ExitCode::Success } else { ExitCode::Unsatisfied }
}

/// The plan of a configuration.
fn plan(configuration: &Configuration, sizes: &Sizes, gpus: u32) -> anyhow::Result<LaunchPlan> {
    let (_, planned) = folders::plan(configuration)?;
    let tested = configuration.models.iter().zip(&planned.models).map(|(spec, model)| WantedModel {
        spec,
        judge: false,
        dialogues: Some(model.dialogues(planned.tasks.len())),
    });
    let kind = kinds::find(configuration.pipeline.as_deref());
    let stages = kind.iter().flat_map(|kind| kind.stages());
    let judges = stages.filter_map(|stage| configuration.judges.get(stage.judge));
    let judges = judges.map(|spec| WantedModel { spec, judge: true, dialogues: None });
    let wanted: Vec<WantedModel<'_>> = tested.chain(judges).collect();
    Ok(LaunchPlan::of(&wanted, sizes, gpus))
}

fn print(
    plan: &LaunchPlan,
    sizes: &Sizes,
    configuration: &Configuration,
    gpus: u32,
    prices: &Prices,
    as_json: bool,
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{}", as_value(plan, sizes, configuration, gpus, prices))?;
        return Ok(());
    }
    let columns = Table::default().right(["wave"]).left(["model"]);
    let mut table = columns.right(["GPUs", "nodes", "dialogues", "hours"]);
    for (number, wave) in plan.waves.iter().enumerate() {
        for model in wave {
            table.row(vec![
                (number + 1).to_string(),
                model.label.clone(),
                model.gpus.to_string(),
                model.nodes.to_string(),
                model.dialogues.map_or_else(|| "to judge".to_owned(), |dialogues| dialogues.to_string()),
                format!("{:.2}", model.hours),
            ]);
        }
    }
    table.total(vec![
        format!("{}", plan.waves.len()),
        format!("{} models on GPUs", plan.served().count()),
        format!("{} at once", plan.gpus()),
        String::new(),
        plan.served().filter_map(|model| model.dialogues).sum::<u64>().to_string(),
        format!("{:.2}", plan.hours()),
    ]);
    table.write(&mut out)?;
    writeln!(
        out,
        "\n{}: {:.1} GPU hours if every model gives its GPUs back when it is done; times are the table's estimates",
        sizes.gpu.name,
        plan.gpu_hours()
    )?;
    if let Some((price, money)) =
        prices.of_gpu(&sizes.gpu.name).zip(prices.of_gpu_hours(&sizes.gpu.name, plan.gpu_hours()))
    {
        let (currency, date) = (prices.currency(), price.as_of);
        writeln!(
            out,
            "{currency} {money} for these hours, at the price of {date} ({})",
            printable(&price.source)
        )?;
    }
    let Shortest { hours, bound_hours } = plan.shortest(sizes, gpus);
    writeln!(
        out,
        "in waves {:.2} hours; {hours:.2} if each server of a model under test started as soon as it fits on {gpus} GPUs, \
         the longest first; {bound_hours:.2} at least",
        plan.hours()
    )?;
    if !plan.hosted.is_empty() {
        let labels: Vec<&str> = plan.hosted.iter().map(|model| model.label.as_str()).collect();
        writeln!(out, "hosted, without GPUs: {} (keys in the Secret `{KEYS_SECRET}`)", labels.join(", "))?;
    }
    if plan.served().any(|model| sizes.models[&model.model].gated) {
        writeln!(
            out,
            "gated weights: their token is expected in the Secret `{WEIGHTS_SECRET}`, key `token`"
        )?;
    }
    for (label, why) in &plan.refused {
        writeln!(out, "does not fit: {label}: {why}")?;
    }
    Ok(())
}

fn as_value(
    plan: &LaunchPlan,
    sizes: &Sizes,
    configuration: &Configuration,
    gpus: u32,
    prices: &Prices,
) -> Value {
    let Shortest { hours: shortest, bound_hours } = plan.shortest(sizes, gpus);
    let waves: Vec<Vec<Value>> = plan
        .waves
        .iter()
        .map(|wave| {
            let row = |model: &plan::ModelOnGpus| {
                json!({
                    "model": model.label, "served_as": model.model, "judge": model.judge, "gpus": model.gpus,
                    "nodes": model.nodes, "dialogues": model.dialogues, "hours": model.hours,
                })
            };
            wave.iter().map(row).collect()
        })
        .collect();
    let refused: Vec<Value> =
        plan.refused.iter().map(|(label, why)| json!({"model": label, "reason": why})).collect();
    json!({
        "name": configuration.name, "gpu": sizes.gpu.name, "waves": waves, "gpus": plan.gpus(), "hours": plan.hours(),
        "gpu_hours": plan.gpu_hours(), "shortest_hours": shortest, "bound_hours": bound_hours,
        "currency": prices.currency(),
        "gpu_cost": prices.of_gpu_hours(&sizes.gpu.name, plan.gpu_hours()).map(|money| money.amount),
        "hosted": plan.hosted.iter().map(|model| &model.label).collect::<Vec<_>>(), "refused": refused,
    })
}

/// Installs the chart and starts the run.
fn carry_out(
    arguments: &Arguments,
    configuration: &Configuration,
    config: Option<&Path>,
    plan: &LaunchPlan,
    sizes: &Sizes,
) -> anyhow::Result<()> {
    let remote = arguments.remote.named();
    let values = |scaling: &Scaling<'_>| values::values(plan, sizes, scaling);
    match (&arguments.prometheus, remote) {
        (Some(url), None) => arguments.release.install(&values(&Scaling::Keda(url)), config),
        (None, None) if plan.waves.len() <= 1 => {
            arguments.release.install(&values(&Scaling::Wave(0)), config)
        }
        (None, None) => Err(usage!(
            "the models need {} waves: name a coordinator that can be reached from here (--coordinator), or let KEDA \
             scale them (--prometheus)",
            plan.waves.len()
        )),
        (Some(url), Some(remote)) => {
            arguments.release.install(&values(&Scaling::Keda(url)), None)?;
            let all: Vec<plan::ModelOnGpus> = plan.served().cloned().collect();
            in_waves(&remote, configuration, &[all], |_| Ok(()))
        }
        (None, Some(remote)) => in_waves(&remote, configuration, &plan.waves, |wave| {
            eprintln!("wave {} of {}", wave + 1, plan.waves.len());
            arguments.release.install(&values(&Scaling::Wave(wave)), None)
        }),
    }
}

/// Installs wave after wave, each when the one before is done. The run is submitted with the first.
fn in_waves(
    remote: &Remote,
    configuration: &Configuration,
    waves: &[Vec<plan::ModelOnGpus>],
    install: impl Fn(usize) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let submission: Submission = submit::submission(configuration)?;
    block_on(async {
        let client = remote.client()?;
        let mut queued = None;
        // Hosted models alone make no wave, and still need a release.
        let count = waves.len().max(1);
        for wave in 0..count {
            install(wave)?;
            let view = match queued.take() {
                Some(view) => view,
                None => apply::submit(&client, submission.clone()).await?,
            };
            eprintln!("following {}", view.run);
            let models = waves.get(wave).map_or(&[][..], Vec::as_slice);
            let is_over = apply::follow(&client, &view.run, models, wave + 1 == count).await?;
            queued = Some(view);
            let later = waves.get(wave + 1..).unwrap_or_default();
            if is_over && later.iter().flatten().all(|served| served.judge) {
                break; // Nothing was left for them.
            }
        }
        if let Some(view) = queued {
            eprintln!("{} is finished; `kgfleet launch --teardown` gives back what is left", view.run);
        }
        Ok(())
    })
}
