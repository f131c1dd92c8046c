//! Runs and their models as tables.

use std::io::{self, Write};

use domain::control::RunView;

use crate::output::{Align, Table, printable};

/// One line per run.
pub fn runs(views: &[RunView], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("planned", Align::Left),
        ("name", Align::Left),
        ("phase", Align::Left),
        ("dialogues", Align::Right),
        ("scored", Align::Right),
        ("failed", Align::Right),
        ("per s", Align::Right),
        ("ETA", Align::Right),
    ]);
    for view in views {
        table.row(vec![
            view.run.to_string(),
            view.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            printable(&view.name),
            view.phase.to_string(),
            view.planned.to_string(),
            view.scored.to_string(),
            view.failed.to_string(),
            rate(view.rate),
            view.eta_s.map_or_else(|| "-".to_owned(), duration),
        ]);
    }
    table.write(out)
}

/// One run in a line.
pub fn headline(view: &RunView) -> String {
    let mut line = format!(
        "run {} {}: {}/{} dialogues, {} failed, {}/s",
        view.run,
        view.phase,
        view.scored + view.failed,
        view.planned,
        view.failed,
        rate(view.rate),
    );
    if let Some(eta) = view.eta_s {
        line.push_str(&format!(", ETA {}", duration(eta)));
    }
    if let Some(trouble) = &view.trouble {
        line.push_str(&format!("; {}", printable(trouble)));
    }
    line
}

/// The models of a run.
pub fn models(view: &RunView, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("dialogues", Align::Right),
        ("scored", Align::Right),
        ("failed", Align::Right),
        ("units waiting", Align::Right),
        ("held", Align::Right),
        ("suspect", Align::Right),
        ("set aside", Align::Right),
        ("workers", Align::Right),
        ("", Align::Left),
    ]);
    for model in &view.models {
        table.row(vec![
            model.model.to_string(),
            model.planned.to_string(),
            model.scored.to_string(),
            model.failed.to_string(),
            model.units_pending.to_string(),
            model.units_leased.to_string(),
            model.units_suspect.to_string(),
            model.units_dead.to_string(),
            model.workers.to_string(),
            model
                .parked
                .as_deref()
                .map(|reason| format!("parked: {}", printable(reason)))
                .unwrap_or_default(),
        ]);
    }
    table.write(out)?;
    for (cause, count) in &view.failures {
        writeln!(out, "not scored: {count} dialogues ({cause})")?;
    }
    Ok(())
}

/// Mean headline scores by task and model.
pub fn scores(view: &RunView, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = vec![("task", Align::Left)];
    columns.extend(view.models.iter().map(|model| (model.model.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    // Cells come in the order of the plan, task by task.
    for row in view.cells.chunk_by(|a, b| a.task == b.task) {
        let mut cells = vec![row[0].task.to_string()];
        cells.extend(view.models.iter().map(|model| {
            let cell = row.iter().find(|cell| cell.model == model.model);
            let mean = cell.and_then(|cell| cell.mean);
            let failed = cell.map_or(0, |cell| cell.failed);
            let shown = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"));
            if failed > 0 { format!("{shown} ({failed} failed)") } else { shown }
        }));
        table.row(cells);
    }
    table.write(out)
}

/// A rate that does not vanish when it is small: three significant digits below 10.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 0.0005 => "0".to_owned(),
        slow if slow < 1.0 => format!("{slow:.3}"),
        some if some < 10.0 => format!("{some:.2}"),
        fast => format!("{fast:.0}"),
    }
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().clamp(0.0, 1e12) as u64;
    match (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s:02}s"),
        (0, h, m, _) => format!("{h}h {m:02}m"),
        (d, h, _, _) => format!("{d}d {h:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_rates_and_long_times_stay_readable() {
        assert_eq!([0.0, 0.02, 1.5, 1234.6].map(rate), ["0", "0.020", "1.50", "1235"]);
        assert_eq!([5.2, 65.0, 7260.0, 200_000.0].map(duration), ["5s", "1m 05s", "2h 01m", "2d 07h"]);
    }
}
