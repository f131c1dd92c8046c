//! `kgfleet plan`. `checks` say whether it would run, by one `question` to each model of --endpoint; `expected` what it costs,
//! `widths` how many dialogues intervals take.

mod checks;
mod expected;
mod question;
mod widths;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::bail;
use coordinator::plan::{Plan, PlannedModel};
use domain::ModelSpec;
use report::Dialogues;
use report::costs::{Money, Prices};
use serde_json::json;

use self::checks::CheckedPlan;
use self::expected::Known;
use self::widths::{Width, widths};
use crate::configure::at_endpoint::AtEndpoint;
use crate::configure::choose::{self, Selection};
use crate::files::inputs::Sources;
use crate::files::tables::PriceTable;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, figure};
use crate::kit::screen::Screen;
use crate::place::queue_login::QueueLogin;
use crate::place::{completing, folders};

/// Say what a configuration would run and cost, and check everything that it needs.
///
/// Checks the keys, the servers, whether their context fits the longest prompt, and whether the records fit on the disk; with
/// --fleet or --queue the fleet or the queue. With --endpoint and --model, each model is asked one short question: what is asked
/// and what comes is shown and thrown away.
///
/// --like names a run that was made, or result files: its tokens tell the cost, and its scores how many more exercises or
/// dialogues a wanted width of the intervals takes (--within).
///
/// Exit codes: 0 ready, perhaps with warnings; 1 the run would fail, or a model does not answer; 2 the configuration cannot be
/// used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML, or LLM-KG-Bench's configuration.yml), or `quick` for the bundled one.
    #[arg(required_unless_present = "endpoint", add = choose::completed())]
    config: Option<PathBuf>,
    #[command(flatten)]
    server: AtEndpoint,
    #[command(flatten)]
    selection: Selection,
    /// A run or result files with dialogues about the same tasks; repeatable. Default: the published means.
    #[arg(long, value_name = "RUN|FILE", add = completing::runs_or_files())]
    like: Vec<String>,
    /// Say what it takes to know every mean this well: half the width of its interval.
    #[arg(long, value_name = "X", value_parser = within, requires = "like")]
    within: Option<f64>,
    #[command(flatten)]
    prices: PriceTable,
    /// Address of the Redis that a coordinator would use: redis://….
    #[arg(long, value_name = "URL", env = "KGFLEET_QUEUE", hide_env_values = true)]
    queue: Option<String>,
    #[command(flatten)]
    login: QueueLogin,
    #[command(flatten)]
    sources: Sources,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn within(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(within) if within > 0.0 && within <= 1.0 => Ok(within),
        _ => Err("expected a number above 0, up to 1".to_owned()),
    }
}

/// The dialogues of --like about the tasks of a plan; `None` without the option.
fn like(arguments: &Arguments, plan: &Plan) -> anyhow::Result<Option<Dialogues>> {
    if arguments.like.is_empty() {
        return Ok(None);
    }
    let read = arguments.sources.read(&arguments.sources.open(&arguments.like)?, None)?.dialogues;
    let found =
        read.select(|_| true, |task| plan.tasks.iter().any(|known| known.label.as_str() == task.label));
    if found.is_empty() {
        bail!(usage!("--like: {} has no dialogue about a task of this plan", arguments.like.join(", ")));
    }
    Ok(Some(found))
}

/// What the dialogues of a planned model will cost, about.
struct ModelCost {
    billed: bool,
    money: Option<Money>,
}

impl ModelCost {
    fn of(spec: &ModelSpec, usage: &domain::ModelUsage, prices: &Prices) -> Self {
        let name = spec.billed_as();
        Self { billed: name.is_some(), money: prices.spent(name.as_deref(), usage) }
    }
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
    let configuration = arguments.server.configuration(&arguments.selection, arguments.config.as_deref())?;
    let (pack, plan) = folders::plan(&configuration)?;
    let remote = &arguments.sources.place.remote;
    let asks = arguments.server.is_given();
    if asks && remote.is_given() {
        return Err(usage!(
            "--endpoint is asked from this machine; a fleet's models are those of a configuration"
        ));
    }
    let remote = if asks { None } else { remote.named()? };
    let units = plan.units(|_, _, _| false);
    let prices = arguments.prices.read()?;
    let like = like(&arguments, &plan)?;
    let known = Known::of(like.as_ref());
    let usages: Vec<_> = plan.models.iter().map(|model| known.usage(&plan, model)).collect();
    let specs = configuration.models.iter().zip(&usages);
    let costs: Vec<ModelCost> = specs.map(|(spec, usage)| ModelCost::of(spec, usage, &prices)).collect();
    let total = Money::total(costs.iter().filter(|cost| cost.billed).map(|cost| cost.money));
    let wanted: Vec<Width> =
        like.as_ref().filter(|_| arguments.within.is_some()).map(widths).unwrap_or_default();
    let mean_seconds = 14.1;
    let hours = plan.dialogues() as f64 * mean_seconds / 3600.0;
    let checked = CheckedPlan {
        configuration: &configuration,
        pack: &pack,
        plan: &plan,
        remote: remote.as_ref(),
        data_dir: &arguments.sources.place.data.data_dir,
        asks,
        queue: arguments.queue.as_deref(),
        login: &arguments.login,
    };
    let findings = checked.findings()?;
    let code = if findings.are_fit() { ExitCode::Success } else { ExitCode::Unsatisfied };
    let mut out = io::stdout().lock();
    if arguments.json {
        let models: Vec<_> = plan
            .models
            .iter()
            .zip(usages.iter().zip(&costs))
            .map(|(model, (usage, cost))| {
                let counts = (0..plan.tasks.len()).map(|task| model.iterations_of(task));
                let of_task: serde_json::Map<String, serde_json::Value> = plan
                    .tasks
                    .iter()
                    .zip(counts)
                    .filter(|(_, count)| *count != model.iterations)
                    .map(|(task, count)| (task.label.to_string(), count.into()))
                    .collect();
                let mut shown = json!({
                    "model": model.label, "iterations": model.iterations, "prompt_tokens_estimate": usage.prompt_tokens,
                    "answer_tokens_estimate": usage.completion_tokens,
                    "cost_estimate": cost.money.map(|money| money.amount),
                });
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
            "sequential_hours_estimate": hours, "checks": findings, "currency": prices.currency(),
            "widths": arguments.within.map(|within| wanted.iter().map(|width| width.value(within)).collect::<Vec<_>>()),
        });
        writeln!(out, "{value}")?;
        return Ok(code);
    }
    let cost = total.map(|_| format!("cost in {}", prices.currency()));
    let table = Table::default().left(["model"]).right(["iterations", "tasks", "dialogues", "units"]);
    let mut table = table.right(cost);
    let money =
        |money: Option<Money>| total.map(|_| money.map_or_else(|| "-".to_owned(), |money| money.to_string()));
    for (index, model) in plan.models.iter().enumerate() {
        let cells = [
            model.label.to_string(),
            counts(model, plan.tasks.len()),
            plan.tasks.len().to_string(),
            model.dialogues(plan.tasks.len()).to_string(),
            units.iter().filter(|unit| unit.model == index).count().to_string(),
        ];
        table.row(cells.into_iter().chain(money(costs[index].money)));
    }
    let cells = [
        format!("{} models", plan.models.len()),
        String::new(),
        plan.tasks.len().to_string(),
        plan.dialogues().to_string(),
        units.len().to_string(),
    ];
    table.total(cells.into_iter().chain(money(total)));
    Screen::here().table(&table, &mut out)?;
    writeln!(out, "\npack {} {}, seed {}", pack.header().name, pack.hash().short(), configuration.seed)?;
    writeln!(
        out,
        "one after another, at the published mean of {mean_seconds} s per dialogue of hosted models: {hours:.1} hours"
    )?;
    if costs.iter().any(|cost| cost.billed) {
        let names: Vec<_> = configuration.models.iter().filter_map(ModelSpec::billed_as).collect();
        let dates = prices.dates(names.iter().map(String::as_str));
        writeln!(out, "{}", about_costs(&known, &usages, &arguments.like, dates, plan.dialogues()))?;
    }
    if let Some(within) = arguments.within {
        writeln!(out, "\nfor these tasks with other exercises, by {}:", arguments.like.join(", "))?;
        for width in &wanted {
            writeln!(out, "{}", width.told(within))?;
        }
        writeln!(out, "of differences between two models, `kgfleet compare --within` says the same")?;
    }
    writeln!(out)?;
    findings.tell(&mut out)?;
    Ok(code)
}

/// What the costs are made of.
fn about_costs(
    known: &Known<'_>,
    usages: &[domain::ModelUsage],
    like: &[String],
    dates: Option<(jiff::civil::Date, jiff::civil::Date)>,
    dialogues: u64,
) -> String {
    let Some((first, last)) = dates else {
        return "cost: no model has a price (--prices FILE)".to_owned();
    };
    let mean = |of: fn(&domain::ModelUsage) -> u64| {
        figure(usages.iter().map(of).sum::<u64>() as f64 / dialogues.max(1) as f64)
    };
    let (prompt, answer) = (mean(|usage| usage.prompt_tokens), mean(|usage| usage.completion_tokens));
    let source = match known.is_nothing() {
        true if like.is_empty() => {
            "the published means of six hosted models; models that reason write more, and --like RUN takes the tokens of a run".to_owned()
        }
        true => format!("the published means of six hosted models, because {} counts no tokens", like.join(", ")),
        false => format!("those of {}", like.join(", ")),
    };
    let until = if last == first { String::new() } else { format!(" to {last}") };
    format!(
        "cost: about {prompt} prompt and {answer} answer tokens per dialogue, {source}; prices of {first}{until}; a model without a \
         price has none here, and failed calls and judges are not in it"
    )
}
