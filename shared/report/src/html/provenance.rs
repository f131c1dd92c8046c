//! Where the numbers come from, and what has to be known about them.

use maud::{Markup, html};

use super::ReportPage;
use crate::dialogues::{Dialogues, SourceInfo};
use crate::table::printable;

/// Sources that are shown without being asked for.
const OPEN_MAX: usize = 8;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    if all.is_empty() && !report.judged.is_empty() {
        return None;
    }
    let remarks = remarks(all);
    Some(html! {
        @if all.is_empty() { p.warning { "There are no dialogues." } }
        @if !remarks.is_empty() { ul.warnings { @for remark in &remarks { li { (printable(remark)) } } } }
        @if !all.sources.is_empty() {
            details open[all.sources.len() <= OPEN_MAX] {
                summary { "Sources: " (all.sources.len()) }
                div.scroll tabindex="0" role="region" aria-label="Sources" { table {
                    thead { tr { th { "source" } th { "exercises" } th.number { "dialogues" } th.number { "planned" }
                        th { "scored by" } th { "started" } th { "configuration" } th { "protected" } } }
                    tbody { @for source in &all.sources { (row(source)) } }
                } }
            }
        }
    })
}

/// The size of what was read, and how many remarks there are on it.
pub(super) fn summary(all: &Dialogues) -> Markup {
    let count = remarks(all).len();
    html! {
        p.note { (all.len()) " dialogues, " (all.columns.len()) " models, " (all.tasks.len()) " tasks. "
            @match count {
                0 => {},
                1 => a.remarks href="#provenance" { "One thing to know about these numbers" },
                _ => a.remarks href="#provenance" { (count) " things to know about these numbers" },
            }
        }
    }
}

fn remarks(all: &Dialogues) -> Vec<String> {
    let mut remarks = Vec::new();
    if all.exercise_sets().len() > 1 {
        remarks.push("Several sets of exercises: compare models only within one of them.".to_owned());
    }
    let share = |count: u64| 100.0 * count as f64 / all.len().max(1) as f64;
    remarks.extend(
        all.unscored().into_iter().map(|(reason, count)| {
            format!("{count} dialogues have no score ({:.1} %): {reason}", share(count))
        }),
    );
    let again = all.iter().filter(|dialogue| dialogue.attempt > 1).count();
    if again > 0 {
        remarks.push(format!("{again} dialogues were asked again after a worker was lost."));
    }
    remarks.extend(all.warnings.iter().cloned());
    remarks
}

fn row(source: &SourceInfo) -> Markup {
    let started = source.started.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    html! { tr {
        td { (printable(&source.name)) }
        td { (printable(&source.exercises.to_string())) }
        td.number { (source.dialogues) }
        td.number { (source.planned.map_or("-".to_owned(), |planned| planned.to_string())) }
        td { @for (number, scorer) in source.scorers.iter().enumerate() { @if number > 0 { ", " } (rules(scorer)) } }
        td { (started.unwrap_or_else(|| "-".to_owned())) }
        td { (source.configuration.as_deref().and_then(|hash| hash.get(..12)).unwrap_or("-")) }
        td { (if source.protected { "yes" } else { "no" }) }
    } }
}

/// The version of the scoring rules, with its limits and switches as a tooltip.
fn rules(scorer: &str) -> Markup {
    match scorer.split_once(' ').filter(|(_, rest)| rest.starts_with('{')) {
        Some((version, rest)) => html! { span title=(printable(rest)) { (printable(version)) " …" } },
        None => html! { (printable(scorer)) },
    }
}
