//! The list of benchmarks.

use axum::response::Html;
use domain::control::BenchmarkView;
use maud::{Markup, html};
use report::html::tables::{LiveRow, live};
use report::tables::fleet;

use super::frame::{frame, section};
use crate::admission::Visitor;
use crate::cache::{PageState, Section};
use crate::render::frame::path_of;

pub(crate) fn page(visitor: &Visitor, state: &PageState) -> Html<String> {
    let main = html! { h1 { "Benchmarks" } (section(state, "runs")) };
    frame("Benchmarks", Some(visitor), Some("/live"), &main)
}

pub(crate) fn sections(runs: &[BenchmarkView]) -> Vec<Section> {
    vec![Section::new("runs", list(runs))]
}

/// The newest first, each of which leads to its page.
fn list(benchmarks: &[BenchmarkView]) -> Markup {
    if benchmarks.is_empty() {
        return html! { p { "There are no benchmarks. " code { "kgfleet submit" } " starts one." } };
    }
    let mut newest = benchmarks.to_vec();
    newest.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.run.cmp(&a.run)));
    let table = fleet::runs(&newest).titled("Benchmarks");
    live(
        &table,
        |row, column| (column == 0).then(|| path_of(&newest[row].run)),
        |row| LiveRow { key: newest[row].run.as_str(), ..LiveRow::default() },
    )
}
