//! The table at the end of a run: mean headline score per task and model, and what failed.

use std::collections::HashMap;
use std::io::{self, Write};

use coordinator::plan::Plan;
use domain::control::{CellView, RunView};
use worker::TaskList;

use crate::output::{Align, Table};

/// Writes the table in the order of the plan.
pub fn write(view: &RunView, plan: &Plan, tasks: &TaskList, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = vec![("task", Align::Left), ("score", Align::Left)];
    columns.extend(plan.models.iter().map(|model| (model.label.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    let cells: HashMap<_, &CellView> =
        view.cells.iter().map(|cell| ((&cell.task, &cell.model), cell)).collect();
    let mut means = vec![Vec::new(); plan.models.len()];
    for (task, built) in plan.tasks.iter().zip(tasks.iter()) {
        let mut row = vec![task.label.to_string(), built.class.headline().join(".")];
        for (model, means) in plan.models.iter().zip(&mut means) {
            let cell = cells.get(&(&task.label, &model.label));
            row.push(cell.map_or_else(|| "-".to_owned(), |cell| show(cell)));
            means.extend(cell.and_then(|cell| cell.mean));
        }
        table.row(row);
    }
    let mean = |means: &Vec<f64>| match means.len() {
        0 => "-".to_owned(),
        n => format!("{:.3}", means.iter().sum::<f64>() / n as f64),
    };
    let mut row = vec!["mean of tasks".to_owned(), String::new()];
    row.extend(means.iter().map(mean));
    table.total(row);
    table.write(out)?;
    for (cause, count) in &view.failures {
        writeln!(out, "not scored: {count} dialogues ({cause})")?;
    }
    Ok(())
}

fn show(cell: &CellView) -> String {
    let mean = cell.mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"));
    if cell.failed > 0 { format!("{mean} ({} failed)", cell.failed) } else { mean }
}
