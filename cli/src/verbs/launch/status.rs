//! What the pools of a release are doing, read from its cluster and, where one is named, its coordinator.

use std::io::{self, Write};

use conductor::pool::Limits;
use conductor::rounds::RoundOutcome;
use conductor::{ConductorSettings, Rounds};
use domain::control::Control;
use domain::pools::PoolState;
use jiff::Timestamp;
use report::costs::Prices;
use serde_json::json;

use super::apply::Release;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::{Table, printable};
use crate::kit::runtime::block_on;
use crate::kit::screen::Screen;
use crate::place::remote::Remote;

/// Reads it, as a round of its conductor would.
pub fn read(release: &Release, remote: Option<&Remote>) -> anyhow::Result<RoundOutcome> {
    let cluster = release.pools_with_warnings()?;
    // What a conductor may use is known to it alone: who waits for GPUs is told by the servers that it starts.
    let mut rounds =
        Rounds::new(ConductorSettings { limits: Limits::of_gpus(u32::MAX), gpus_per_node: None });
    let mut workers = Vec::new();
    if let Some(remote) = remote {
        let needs = block_on(async {
            let client = remote.client()?;
            workers = client.workers().await.map_err(explained)?;
            let mut ended = client.server_usage().await.map_err(explained)?;
            ended.retain(|usage| usage.release == release.name());
            rounds.restore(ended);
            client.needs(&[]).await.map_err(explained)
        })?;
        rounds.note_needs(needs, Timestamp::now());
    }
    Ok(rounds.round(&cluster, &workers, Timestamp::now()))
}

/// Prints it, with what the hours of this kind of GPU cost.
pub fn print(round: &RoundOutcome, gpu: &str, prices: &Prices, as_json: bool) -> anyhow::Result<ExitCode> {
    let money = |hours: f64| prices.of_gpu_hours(gpu, hours);
    let mut out = io::stdout().lock();
    if as_json {
        let all = json!({
            "pools": round.rows, "problems": round.problems, "gpu_hours": round.gpu_hours, "gpu": gpu,
            "currency": prices.currency(), "gpu_cost": money(round.gpu_hours).map(|money| money.amount),
        });
        writeln!(out, "{all}")?;
    } else {
        print_table(&round.rows, &mut out)?;
        write!(out, "\n{:.1} GPU-hours", round.gpu_hours)?;
        match money(round.gpu_hours) {
            Some(money) => writeln!(out, ", {} {money} at the price of a {gpu}", prices.currency())?,
            None => writeln!(out)?,
        }
        for row in round.rows.iter().filter(|row| row.is_given_up) {
            let why = row.last_failure.as_deref().unwrap_or("it was given up");
            writeln!(
                out,
                "{} failed: {}; mended? kgfleet launch --retry {}",
                row.pool,
                printable(why),
                row.pool
            )?;
        }
        for problem in &round.problems {
            writeln!(out, "no pool: {}", printable(problem))?;
        }
    }
    let is_well = round.problems.is_empty() && !round.rows.iter().any(|row| row.is_given_up);
    Ok(if is_well { ExitCode::Success } else { ExitCode::Unsatisfied })
}

fn print_table(rows: &[PoolState], out: &mut impl Write) -> anyhow::Result<()> {
    let columns = Table::default().left(["pool", "model"]);
    let mut table = columns.right(["left", "failures", "GPU-hours"]).left(["now"]);
    for row in rows {
        table.row(vec![
            row.pool.clone(),
            row.model.clone(),
            row.left.map_or_else(|| "?".to_owned(), |left| left.to_string()),
            row.failures.to_string(),
            format!("{:.1}", row.gpu_hours.total()),
            row.words(),
        ]);
    }
    Screen::here().table(&table, out)?;
    Ok(())
}
