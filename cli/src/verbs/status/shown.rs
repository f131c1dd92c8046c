//! One benchmark on the screen.

use std::io::{self, Write};

use domain::control::BenchmarkView;
use report::views::Grid;

use crate::kit::screen::Screen;
use crate::kit::view;

/// Prints all that is known of it, below these sentences.
pub(super) fn show(
    found: &BenchmarkView,
    head: impl IntoIterator<Item = String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let screen = Screen::here();
    for sentence in head {
        screen.line(&sentence, out)?;
    }
    writeln!(out)?;
    screen.table(&view::models(found), out)?;
    if let Some(pools) = view::pools(found) {
        writeln!(out)?;
        screen.table(&pools, out)?;
    }
    writeln!(out)?;
    screen.table(&Grid::of_view(found, |_| None).table(), out)?;
    view::failures(found, screen, out)?;
    if !found.runs.is_empty() {
        writeln!(out)?;
        screen.table(&view::stage_runs(found), out)?;
    }
    writeln!(out)?;
    view::history(found, out)?;
    view::warn(found);
    Ok(())
}
