//! `kgfleet launch`: from a configuration to pools of GPUs on Kubernetes, or jobs on Slurm.

mod apply;
mod costs;
mod plan;
mod schedule;
mod second;
mod slurm;
mod status;
mod table;
mod values;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use benchmarks::kinds;
use coordinator::configuration::Configuration;
use report::costs::Prices;
use serde_json::{Value, json};

use self::apply::Release;
use self::plan::{LaunchPlan, WantedModel};
use self::schedule::{LaunchLimits, Schedule, ScheduleRow, clock, hours};
use self::slurm::SlurmOptions;
use self::table::{Sizes, WeightsPlace};
use self::values::{KEYS_SECRET, WEIGHTS_SECRET, provider_keys};
use crate::configure::choose::{self, Selection};
use crate::files::tables::PriceTable;
use crate::kit::arguments::hours as gpu_hours;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, printable, say};
use crate::kit::screen::Screen;
use crate::place::folders;
use crate::place::remote::MaybeRemote;

/// Plan the GPUs of a configuration, and run it on Kubernetes or Slurm.
///
/// Prints which models' servers start when, on how many GPUs and for how long, as the conductor of the release would start
/// them (`kgfleet conduct`), by a table of model sizes whose times are estimates; where it takes
/// weights to be, which decides how long servers load; and what does not fit, and why. --values writes the chart's values.
/// --apply checks that the Secrets are there and installs the chart with helm, which submits the run; --status tells what
/// became of it, --retry tries a pool again that was given up, --costs tells what servers took, --teardown removes the release.
/// --slurm submits the run and an array of jobs for each model instead, in whatever order Slurm starts them. Exit codes: 0; 1 some
/// models do not fit, or pools were given up; 2 the configuration or the table cannot be used, a Secret is missing, or the release
/// works on another run; 3 there is no such release, or helm, kubectl, sbatch or the coordinator failed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml).
    #[arg(required_unless_present_any = ["teardown", "status", "retry", "costs"], add = choose::completed())]
    config: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// GPUs that may be used at once. Default: those of one node; on Slurm, as many as a model needs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    /// GPU-hours that all servers together may take: no server is started that would, as far as is known, take more. Default: no
    /// budget.
    #[arg(long, value_name = "HOURS", value_parser = gpu_hours)]
    gpu_hours: Option<f64>,
    /// Table of GPUs and model sizes. Default: the one of this program, `deploy/launch/models.toml` in its sources.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Write the chart's values to this file.
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Install the chart and start the run. Nothing is installed if a model does not fit, on the GPUs or into the budget, or beside a run of the release that is
    /// not over, unless the same configuration is installed again.
    #[arg(long)]
    apply: bool,
    /// Go on if some models do not fit: they have no servers, and their dialogues wait until a launch of the same configuration has
    /// room for them.
    #[arg(long)]
    what_fits: bool,
    /// Add the new models, tasks and iterations of the configuration to this run.
    #[arg(long, value_name = "RUN", requires = "apply")]
    extend: Option<String>,
    /// Tell what the pools of the release are doing, what failed, and what they took; with --fleet also what they have left.
    #[arg(long, conflicts_with_all = ["config", "apply", "values"])]
    status: bool,
    /// Tell the GPU-hours and the money that the servers of the release took which have ended, for loading, for work, for having
    /// nothing to do, and in vain; with a configuration also what was planned. Needs a coordinator (--fleet), and works after a teardown
    /// with any coordinator of the same records.
    #[arg(long, conflicts_with_all = ["apply", "values", "status", "retry"])]
    costs: bool,
    /// Try a pool again that was given up.
    #[arg(long, value_name = "POOL", conflicts_with_all = ["config", "apply", "values", "status"])]
    retry: Option<String>,
    /// Remove the release, and with it all pools, after workers have finished their rounds. Records, tokens and
    /// certificates stay.
    #[arg(long, conflicts_with_all = ["config", "apply", "values", "status", "retry", "costs"])]
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
    let remote = arguments.remote.named()?;
    if let Some(pool) = &arguments.retry {
        arguments.release.retry(pool)?;
        return Ok(ExitCode::Success);
    }
    let sizes = Sizes::read(arguments.table.as_deref())?;
    let prices = arguments.prices.read()?;
    if arguments.status {
        let round = status::read(&arguments.release, remote.as_ref())?;
        return status::print(&round, &sizes.gpu.name, &prices, arguments.json);
    }
    if arguments.costs {
        return tell_costs(&arguments, &sizes, &prices);
    }
    let config = arguments.config.as_deref();
    let configuration = arguments.selection.configuration(config)?;
    let usual = if arguments.slurm.slurm { u32::MAX } else { sizes.gpu.per_node };
    let limits = LaunchLimits {
        gpus: arguments.gpus.unwrap_or(usual),
        gpus_per_node: sizes.gpu.per_node,
        gpu_hours: arguments.gpu_hours,
    };
    let weights = arguments.release.weights_place();
    let plan = plan(&configuration, &sizes, limits.gpus, weights)?;
    if arguments.slurm.slurm {
        let fits = plan.refused.is_empty();
        if !fits && !arguments.what_fits && !arguments.slurm.dry_run {
            tell_refused(&plan, &mut io::stderr().lock())?;
            return Ok(nothing_done("submitted"));
        }
        arguments.slurm.carry_out(&configuration, config, &plan, &sizes, remote.as_ref())?;
        return Ok(verdict(fits));
    }
    let values = values::values(&plan, &sizes, limits);
    if let Some(file) = &arguments.values {
        std::fs::write(file, serde_saphyr::to_string(&values)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let schedule = Schedule::of(&plan, limits);
    // A model that the budget leaves without a server never ends either.
    let left_out = plan.refused.len() + schedule.over_budget.len();
    let other = plan.with_weights(weights.other(), &sizes);
    // Where nobody knows how large weights are, they make no difference.
    let other = (other.served != plan.served).then(|| Schedule::of(&other, limits));
    let other = other.as_ref();
    let told = Told { plan: &plan, schedule: &schedule, other, sizes: &sizes, limits, prices: &prices };
    match arguments.json {
        true => writeln!(io::stdout().lock(), "{}", told.as_value(&configuration.name))?,
        false => told.print()?,
    }
    if arguments.apply {
        if left_out > 0 && !arguments.what_fits {
            return Ok(nothing_done("installed"));
        }
        match arguments.release.lacks(&plan, &sizes) {
            Ok(lacks) if lacks.is_empty() => {}
            Ok(lacks) => return Err(usage!("nothing was installed: {}", lacks.join("; "))),
            Err(error) => say(&format!("warning: the Secrets were not checked: {error:#}")),
        }
        let extend = arguments.extend.as_deref();
        if let Some(config) = config {
            second::refuse(&arguments.release, config, extend, remote.as_ref())?;
        }
        if left_out > 0 {
            let all = plan.served.len() + plan.refused.len();
            say(&format!(
                "installing what fits, {} of {all} models with servers: dialogues of the others wait until a launch of the same \
                 configuration has room for them",
                all - left_out
            ));
        }
        arguments.release.install(&values, config, extend)?;
    }
    Ok(verdict(left_out == 0))
}

/// Tells what servers took, and writes what they have shown where somebody wants it.
fn tell_costs(arguments: &Arguments, sizes: &Sizes, prices: &Prices) -> anyhow::Result<ExitCode> {
    let Some(remote) = arguments.remote.named()? else {
        return Err(usage!("--costs asks a coordinator, which has what servers left: name one with --fleet"));
    };
    let plan = match &arguments.config {
        Some(config) => {
            let gpus = arguments.gpus.unwrap_or(u32::MAX);
            let weights = arguments.release.weights_place();
            Some(plan(&arguments.selection.configuration(Some(config))?, sizes, gpus, weights)?)
        }
        None => None,
    };
    let ended = costs::read(&remote, arguments.release.name())?;
    costs::print(&costs::by_model(&ended, plan.as_ref()), &ended, (&sizes.gpu.name, prices), arguments.json)?;
    Ok(ExitCode::Success)
}

/// Says that a plan which does not fit was not carried out, and how it would be.
fn nothing_done(what: &str) -> ExitCode {
    say(&format!(
        "nothing was {what}, because some models do not fit: change the plan, or go on without them by --what-fits"
    ));
    ExitCode::Unsatisfied
}

/// Tells which models do not fit, and why.
fn tell_refused(plan: &LaunchPlan, out: &mut impl Write) -> io::Result<()> {
    plan.refused.iter().try_for_each(|(label, why)| writeln!(out, "does not fit: {label}: {why}"))
}

fn verdict(fits: bool) -> ExitCode {
    if fits { ExitCode::Success } else { ExitCode::Unsatisfied }
}

/// The plan of a configuration.
fn plan(
    configuration: &Configuration,
    sizes: &Sizes,
    gpus: u32,
    weights: WeightsPlace,
) -> anyhow::Result<LaunchPlan> {
    let (_, planned) = folders::plan(configuration)?;
    let tested = configuration
        .models
        .iter()
        .zip(&planned.models)
        .map(|(spec, model)| WantedModel { spec, dialogues: Some(model.dialogues(planned.tasks.len())) });
    let kind = kinds::find(configuration.pipeline.as_deref());
    let stages = kind.iter().flat_map(|kind| kind.stages());
    let judges = stages.filter_map(|stage| configuration.judges.get(stage.judge));
    let judges = judges.map(|spec| WantedModel { spec, dialogues: None });
    let wanted: Vec<WantedModel<'_>> = tested.chain(judges).collect();
    Ok(LaunchPlan::of(&wanted, sizes, gpus, weights))
}

/// What is told of a plan.
struct Told<'a> {
    plan: &'a LaunchPlan,
    schedule: &'a Schedule,
    /// With weights from the other place, if that makes a difference.
    other: Option<&'a Schedule>,
    sizes: &'a Sizes,
    limits: LaunchLimits,
    prices: &'a Prices,
}

impl Told<'_> {
    fn row(&self, model: usize) -> Option<&ScheduleRow> {
        self.schedule.rows.iter().find(|row| row.model == model)
    }

    /// The models in the order of their starts; then those that start when it is known what they are asked.
    fn order(&self) -> Vec<usize> {
        let scheduled: Vec<usize> = self.schedule.rows.iter().map(|row| row.model).collect();
        let later = (0..self.plan.served.len()).filter(|model| !scheduled.contains(model));
        scheduled.iter().copied().chain(later).collect()
    }

    fn print(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let columns = Table::default().right(["start"]).left(["model"]);
        let mut table = columns.right(["servers", "GPUs", "dialogues", "load", "ends"]);
        for at in self.order() {
            let model = &self.plan.served[at];
            let row = self.row(at);
            let later = if self.schedule.over_budget.contains(&at) { "never" } else { "later" };
            let parts = model.pool.parts;
            table.row(vec![
                row.map_or_else(|| later.to_owned(), |row| clock(row.starts)),
                model.label(),
                row.map_or(1, |row| row.servers).to_string(),
                if parts > 1 { format!("{parts}x{}", model.pool.gpus) } else { model.gpus().to_string() },
                if model.dialogues == 0 { "to judge".to_owned() } else { model.dialogues.to_string() },
                clock(model.pool.load),
                row.map_or_else(|| "-".to_owned(), |row| clock(row.ends)),
            ]);
        }
        Screen::here().table(&table, &mut out)?;
        let Schedule { over_at, bound, gpu_hours, gpus_max, over_budget, .. } = self.schedule;
        write!(
            out,
            "\nend {} (bound {}) on at most {gpus_max} GPUs ({}); {:.1} GPU-hours, {:.1} of them work",
            clock(*over_at),
            clock(*bound),
            self.sizes.gpu.name,
            gpu_hours.total(),
            gpu_hours.work
        )?;
        match self.limits.gpu_hours {
            Some(budget) => writeln!(out, "; budget {budget}")?,
            None => writeln!(out)?,
        }
        self.print_weights(&mut out)?;
        let (name, hours) = (&self.sizes.gpu.name, gpu_hours.total());
        if let Some((price, money)) = self.prices.of_gpu(name).zip(self.prices.of_gpu_hours(name, hours)) {
            let (currency, date) = (self.prices.currency(), price.as_of);
            writeln!(
                out,
                "{currency} {money} for these hours, at the price of {date} ({})",
                printable(&price.source)
            )?;
        }
        if !over_budget.is_empty() {
            let labels: Vec<String> = over_budget.iter().map(|at| self.plan.served[*at].label()).collect();
            writeln!(out, "over the budget, never started: {}", labels.join(", "))?;
        }
        if !self.plan.hosted.is_empty() {
            let labels: Vec<&str> = self.plan.hosted.iter().map(|model| model.label.as_str()).collect();
            let keys: Vec<String> = provider_keys(self.plan).into_iter().collect();
            writeln!(
                out,
                "hosted, without GPUs: {} (keys in the Secret `{KEYS_SECRET}`: {})",
                labels.join(", "),
                keys.join(", ")
            )?;
        }
        if self.plan.served.iter().any(|model| self.sizes.models[&model.model].gated) {
            writeln!(
                out,
                "gated weights: their token is expected in the Secret `{WEIGHTS_SECRET}`, key `token`"
            )?;
        }
        tell_refused(self.plan, &mut out)?;
        Ok(())
    }

    /// Where the plan takes weights to be, and what it would be if they were elsewhere.
    fn print_weights(&self, out: &mut impl Write) -> io::Result<()> {
        let (here, elsewhere) = match self.plan.weights {
            WeightsPlace::Afar => (
                "each server fetches its weights",
                "with a shared volume for them (sharedPvcStorage in a --base file)",
            ),
            WeightsPlace::SharedVolume => (
                "on a shared volume, where they were fetched before without GPUs",
                "if each server fetched its own",
            ),
        };
        write!(out, "weights: {here}")?;
        match self.other {
            Some(Schedule { over_at, gpu_hours, .. }) => {
                let (end, hours) = (clock(*over_at), gpu_hours.total());
                writeln!(out, "; {elsewhere}: end {end}, {hours:.1} GPU-hours")
            }
            None => writeln!(out),
        }
    }

    fn as_value(&self, name: &str) -> Value {
        let row = |at: usize| {
            let model = &self.plan.served[at];
            let row = self.row(at);
            json!({
                "models": model.labels, "served_as": model.model, "judge": model.judge, "gpus": model.gpus(),
                "nodes": model.pool.parts, "dialogues": model.dialogues, "load_hours": hours(model.pool.load),
                "servers": row.map_or(0, |row| row.servers), "starts_hours": row.map(|row| hours(row.starts)),
                "ends_hours": row.map(|row| hours(row.ends)),
                "over_budget": self.schedule.over_budget.contains(&at),
            })
        };
        let refused: Vec<Value> =
            self.plan.refused.iter().map(|(label, why)| json!({"model": label, "reason": why})).collect();
        let (gpu, spent) = (&self.sizes.gpu.name, &self.schedule.gpu_hours);
        json!({
            "name": name, "gpu": gpu, "pools": self.order().into_iter().map(row).collect::<Vec<_>>(),
            "gpus": self.limits.gpus, "gpus_max": self.schedule.gpus_max, "hours": hours(self.schedule.over_at),
            "bound_hours": hours(self.schedule.bound), "gpu_hours": spent.total(), "gpu_hours_of_work": spent.work,
            "weights": self.plan.weights, "hours_with_other_weights": self.other.map(|other| hours(other.over_at)),
            "gpu_hours_with_other_weights": self.other.map(|other| other.gpu_hours.total()),
            "gpu_hours_budget": self.limits.gpu_hours, "currency": self.prices.currency(),
            "gpu_cost": self.prices.of_gpu_hours(gpu, spent.total()).map(|money| money.amount),
            "hosted": self.plan.hosted.iter().map(|model| &model.label).collect::<Vec<_>>(),
            "provider_keys": provider_keys(self.plan), "refused": refused,
        })
    }
}
