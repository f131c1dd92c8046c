//! What the servers of a release took, model by model, beside what was planned. Ended servers have left it with coordinators, so it
//! is known when the release is gone.

use std::collections::BTreeMap;
use std::io::{self, Write};

use domain::control::Control;
use domain::pools::{ServerUsage, UsageHours};
use report::costs::Prices;
use serde_json::json;

use super::plan::LaunchPlan;
use crate::kit::exit_code::explained;
use crate::kit::output::{Table, printable};
use crate::kit::runtime::block_on;
use crate::kit::screen::Screen;
use crate::place::remote::Remote;

/// What ended servers of a release left.
///
/// # Errors
/// The coordinator does not answer.
pub fn read(remote: &Remote, release: &str) -> anyhow::Result<Vec<ServerUsage>> {
    let all = block_on(async { remote.client()?.server_usage().await.map_err(explained) })?;
    Ok(all.into_iter().filter(|usage| usage.release == release).collect())
}

/// What the servers of a model took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelCosts {
    pub servers: usize,
    /// GPU-hours.
    pub took: UsageHours,
    /// GPU-hours that were planned; `None` where no plan names it.
    pub planned: Option<f64>,
}

/// By the name of the model.
pub type CostsByModel = BTreeMap<String, ModelCosts>;

/// Adds up what servers took, beside a plan if there is one.
pub fn by_model(ended: &[ServerUsage], plan: Option<&LaunchPlan>) -> CostsByModel {
    let mut costs = CostsByModel::new();
    for usage in ended {
        let of_model = costs.entry(usage.model.clone()).or_default();
        of_model.servers += 1;
        of_model.took += usage.gpu_hours();
    }
    for model in plan.into_iter().flat_map(|plan| &plan.served).filter(|model| model.dialogues > 0) {
        let seconds = model.pool.load.as_secs_f64() + model.dialogues as f64 / model.pool.rate;
        costs.entry(model.model.clone()).or_default().planned =
            Some(seconds / 3600.0 * f64::from(model.gpus()));
    }
    costs
}

/// Prints it, with what the hours of this kind of GPU cost.
pub fn print(
    costs: &CostsByModel,
    ended: &[ServerUsage],
    (gpu, prices): (&str, &Prices),
    as_json: bool,
) -> anyhow::Result<()> {
    let mut took = UsageHours::default();
    costs.values().for_each(|model| took += model.took);
    let planned = costs.values().filter_map(|model| model.planned).reduce(|sum, more| sum + more);
    let money = |hours: f64| prices.of_gpu_hours(gpu, hours);
    let mut out = io::stdout().lock();
    if as_json {
        let model = |(name, model): (&String, &ModelCosts)| {
            json!({
                "model": name, "servers": model.servers, "gpu_hours": model.took, "gpu_hours_planned": model.planned,
                "gpu_cost": money(model.took.total()).map(|money| money.amount),
                "gpu_cost_planned": model.planned.and_then(money).map(|money| money.amount),
            })
        };
        let all = json!({
            "models": costs.iter().map(model).collect::<Vec<_>>(), "servers": ended, "gpu": gpu,
            "gpu_hours": took, "gpu_hours_planned": planned, "currency": prices.currency(),
            "gpu_cost": money(took.total()).map(|money| money.amount),
            "gpu_cost_planned": planned.and_then(money).map(|money| money.amount),
        });
        writeln!(out, "{all}")?;
        return Ok(());
    }
    let columns = Table::default().left(["model"]).right(["servers", "load", "work", "idle", "lost"]);
    let mut table = columns.right(["GPU-hours", "planned", prices.currency()]);
    let mut row = |name: String, servers: usize, hours: UsageHours, planned: Option<f64>| {
        let written = |hours: f64| format!("{hours:.2}");
        table.row(vec![
            name,
            servers.to_string(),
            written(hours.load),
            written(hours.work),
            written(hours.idle),
            written(hours.lost),
            written(hours.total()),
            planned.map_or_else(|| "-".to_owned(), written),
            money(hours.total()).map_or_else(|| "-".to_owned(), |money| money.to_string()),
        ]);
    };
    for (name, model) in costs {
        row(printable(name), model.servers, model.took, model.planned);
    }
    row("all".to_owned(), ended.len(), took, planned);
    Screen::here().table(&table, &mut out)?;
    if let Some((planned, money)) = planned.and_then(|hours| Some((hours, money(hours)?))) {
        writeln!(out, "\nplanned: {planned:.2} GPU-hours, {} {money}", prices.currency())?;
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use domain::pools::ServerEnd;
    use jiff::Timestamp;

    use super::super::plan::tests::paper;
    use super::*;

    /// A server on eight GPUs that loaded for so many minutes and worked for an hour, with so many dialogues.
    pub fn usage(model: &str, load_minutes: i64, dialogues: u64) -> ServerUsage {
        let at = |minutes: i64| Timestamp::from_second(60 * minutes).unwrap();
        ServerUsage {
            release: "bench".to_owned(),
            pool: "pool".to_owned(),
            pool_uid: "cron-1".to_owned(),
            template: "00ff".to_owned(),
            model: model.to_owned(),
            job: "bench-pool-1".to_owned(),
            uid: "uid-1".to_owned(),
            image: String::new(),
            revision: String::new(),
            gpus: 8,
            nodes: Vec::new(),
            took_gpus_at: Some(at(0)),
            loaded_at: Some(at(load_minutes)),
            ended_at: at(load_minutes + 60),
            idle_s: 0,
            dialogues,
            end: ServerEnd::Done,
            fault: None,
            why: String::new(),
        }
    }

    #[test]
    fn what_was_taken_stands_beside_what_was_planned() {
        let lost = ServerUsage { loaded_at: None, end: ServerEnd::Failed, ..usage("org/x", 30, 0) };
        let model = "Qwen/Qwen2-0.5B-Instruct";
        let ended = [usage("org/x", 30, 100), lost, usage(model, 15, 100)];
        let plan = paper(64);
        let costs = by_model(&ended, Some(&plan));
        assert_eq!((costs["org/x"].servers, costs["org/x"].planned), (2, None));
        assert_eq!(costs["org/x"].took, UsageHours { load: 4.0, work: 8.0, idle: 0.0, lost: 12.0 });
        // By the table: five minutes and 1 300 dialogues of 400 tokens at 9 000 a second.
        let planned = costs[model].planned.unwrap();
        assert!((planned - (300.0 + 1_300.0 * 400.0 / 9_000.0) / 3_600.0).abs() < 1e-9, "{planned}");
        assert_eq!(costs.len(), 32);
        assert_eq!(by_model(&ended, None).len(), 2);
    }
}
