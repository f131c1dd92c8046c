//! The list of runs.

use axum::response::Html;
use std::collections::BTreeSet;

use domain::control::BenchmarkView;
use maud::{Markup, html};
use report::html::tables::linked;
use report::views::fleet;

use super::frame::{frame, section};
use super::paths::path_of;
use crate::section::{PageState, Section};
use crate::visitor::Visitor;

pub(crate) fn page(visitor: &Visitor, state: &PageState) -> Html<String> {
    let main = html! { h1 { "Runs" } (section(state, "runs")) };
    frame("Runs", Some(visitor), Some("/live"), &main)
}

pub(crate) fn sections(runs: &[BenchmarkView]) -> Vec<Section> {
    vec![Section::new("runs", list(runs))]
}

/// All runs, newest first; the runs of stages are listed apart.
fn list(runs: &[BenchmarkView]) -> Markup {
    let names: BTreeSet<&str> = runs.iter().map(|run| run.run.as_str()).collect();
    let is_stage = |run: &BenchmarkView| {
        let name = run.run.as_str();
        name.match_indices('.').any(|(end, _)| names.contains(&name[..end]))
    };
    let mut newest: Vec<&BenchmarkView> = runs.iter().collect();
    newest.sort_by(|a, b| b.created_at.cmp(&a.created_at).then(b.run.cmp(&a.run)));
    let (stages, own): (Vec<BenchmarkView>, Vec<BenchmarkView>) =
        newest.into_iter().cloned().partition(|run| is_stage(run));
    html! {
        @if own.is_empty() {
            p { "There are no runs. " code { "kgfleet submit" } " starts one." }
        } @else { (table(own, "Runs")) }
        @if !stages.is_empty() {
            details { summary { (stages.len()) " runs of pipelines' stages" } (table(stages, "Runs of stages")) }
        }
    }
}

/// A table of runs, each of which leads to its page.
pub(super) fn table(runs: Vec<BenchmarkView>, title: &str) -> Markup {
    let table = fleet::runs(&runs).titled(title);
    linked(&table, |row, column| (column == 0).then(|| path_of(&runs[row].run)))
}
