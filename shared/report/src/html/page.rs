//! The page from top to bottom: notes, ranking, then details.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use present::figure::Svg;
use present::table::printable;

use super::ReportPage;
use super::grid::{self, FORMATS, GridHead, GridLine, Square, format_of};
use super::hallucination;
use super::tables::table;
use crate::analysis::cells;
use crate::dialogues::{Dialogues, SourceInfo};
use crate::figures;
use crate::summaries::CellStatistics;
use crate::views::{combined, preferences, statistics};

pub fn head(title: &str, policy: &str, style: &str) -> Markup {
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (printable(title)) }
            style { (PreEscaped(style)) }
        }
        (PreEscaped("<body>"))
    }
}

pub fn body(report: &ReportPage<'_>) -> Markup {
    let all = report.dialogues;
    html! {
        header {
            h1 { (printable(report.title)) }
            nav aria-label="Sections" {
                @if !all.is_empty() || report.hallucination.is_empty() { a href="#provenance" { "Provenance" } " " }
                @if !report.hallucination.is_empty() { a href="#hallucination" { "Hallucination" } " " }
                @if !all.is_empty() {
                    a href="#models" { "Models" } " " a href="#scores" { "Scores" } " " a href="#plots" { "Plots" } " "
                    a href="#tests" { "Tests" } " " a href="#dialogues" { "Dialogues" }
                }
            }
        }
        main {
            @if !all.is_empty() || report.hallucination.is_empty() { (provenance(all)) }
            (hallucination::section(report.hallucination))
            @if !all.is_empty() {
                (filters(all))
                section #models { h2 { "Models" } (table(&statistics::by_model(all)))
                    h3 { (report.combined.title) } (table(&combined::table(all, report.combined))) }
                section #scores { h2 { "Mean scores" }
                    p.note { "A number leads to its dialogues." }
                    (grid(all)) }
                (plots(report))
                section #tests { h2 { "Turtle or JSON-LD" } (table(&preferences::published_layout(all)))
                    details { summary { "The tests behind it" } (table(&preferences::tests(all))) }
                    details { summary { "Every model on every task" } (table(&statistics::by_task(all))) } }
                section #dialogues { h2 { "Dialogues" }
                    p #none .note { "Choose a number in the table of mean scores. Dialogues need JavaScript." }
                    div #list {} article #viewer aria-live="polite" {} }
            }
        }
        footer { p.note { "Made by kgfleet " (env!("CARGO_PKG_VERSION")) "." } }
    }
}

fn provenance(all: &Dialogues) -> Markup {
    let again = all.iter().filter(|dialogue| dialogue.attempt > 1).count();
    let unscored = all.unscored();
    let share = |count: u64| 100.0 * count as f64 / all.len().max(1) as f64;
    html! {
        section #provenance {
            h2 { "Provenance" }
            @if all.is_empty() { p.warning { "There are no dialogues." } }
            p { (all.len()) " dialogues, " (all.columns.len()) " models, " (all.tasks.len()) " tasks." }
            @if !all.warnings.is_empty() || !unscored.is_empty() || again > 0 || all.exercise_sets().len() > 1 {
                ul.warnings {
                    @if all.exercise_sets().len() > 1 {
                        li { "Several sets of exercises: compare models only within one of them." }
                    }
                    @for (reason, count) in &unscored {
                        li { (count) " dialogues have no score (" (format!("{:.1} %", share(*count))) "): " (printable(reason)) }
                    }
                    @if again > 0 { li { (again) " dialogues were asked again after a worker was lost." } }
                    @for warning in &all.warnings { li { (printable(&warning.0)) } }
                }
            }
            @if !all.sources.is_empty() {
                details open[all.sources.len() <= 8] {
                    summary { "Sources: " (all.sources.len()) }
                    div.scroll tabindex="0" role="region" aria-label="Sources" { table {
                        thead { tr { th { "source" } th { "exercises" } th.number { "dialogues" } th.number { "planned" }
                            th { "scored by" } th { "started" } th { "configuration" } th { "protected" } } }
                        tbody { @for source in &all.sources { (row(source)) } }
                    } }
                }
            }
        }
    }
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

fn filters(all: &Dialogues) -> Markup {
    let mut families: Vec<&str> = all.columns.iter().map(|column| column.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let formats = FORMATS
        .into_iter()
        .filter(|format| all.tasks.iter().any(|task| format_of(&task.label) == Some(format)));
    html! {
        form #filters aria-label="Filters" {
            label { "Family " select name="family" { option value="" { "all" } @for family in families { option value=(printable(family)) { (printable(family)) } } } }
            label { "Format " select name="format" { option value="" { "all" } @for format in formats { option value=(format) { (format) } } } }
            label { "Task " input name="task" type="search" placeholder="part of a name"; }
            label { "Model " input name="model" type="search" placeholder="part of a name"; }
        }
    }
}

/// Models × tasks, best model first; every number is a link.
fn grid(all: &Dialogues) -> Markup {
    let headings = all.headings();
    let cells = cells::statistics(all);
    let totals = cells::totals(all);
    let mut by_place = vec![None; all.tasks.len() * all.columns.len()];
    for cell in cells {
        by_place[cell.column * all.tasks.len() + cell.task] = Some(cell);
    }
    let line = |column: usize| GridLine {
        name: &headings[column],
        family: &all.columns[column].family,
        mean: totals[column].mean,
        squares: by_place[column * all.tasks.len()..]
            .iter()
            .take(all.tasks.len())
            .map(|cell| cell.map(square))
            .collect(),
    };
    let lines: Vec<GridLine<'_>> = all.ranked(|column| totals[column].mean).into_iter().map(line).collect();
    let heads: Vec<GridHead<'_>> =
        all.tasks.iter().map(|task| GridHead { label: &task.label, title: &task.headline }).collect();
    grid::grid("Mean scores", "mean of tasks", &heads, &lines)
}

fn square(cell: &CellStatistics) -> Square {
    let tip = cell.interval.map(|interval| {
        format!(
            "{:.3} to {:.3}, n {} of {}",
            interval.low,
            interval.high,
            cell.summary.map_or(0, |s| s.n),
            cell.planned
        )
    });
    Square {
        mean: cell.summary.map(|summary| summary.mean),
        tip,
        gap: cell.unscored_share() > 0.0,
        link: Some(format!("#d/{}/{}", cell.column, cell.task)),
        ..Square::default()
    }
}

fn plots(report: &ReportPage<'_>) -> Markup {
    let all = report.dialogues;
    let figure = |svg: &Svg| html! { div.scroll tabindex="0" role="region" aria-label=(printable(svg.title())) { (PreEscaped(svg.inline())) } };
    html! {
        section #plots { h2 { "Plots" }
            (figure(&figures::compasses(all, report.compass)))
            details { summary { "Heat map" } (figure(&figures::heat(all))) }
            details { summary { "First answer and best answer" } (figure(&figures::gains(all))) }
            details { summary { "Score and cost" } (figure(&figures::cost(all))) }
            @if all.columns.iter().any(|column| column.size.is_some()) {
                details { summary { "Score and size" } (figure(&figures::sizes(all))) }
            }
            @for (id, task) in all.tasks.iter().enumerate() {
                details.task data-task=(printable(&task.label)) data-format=[format_of(&task.label)] {
                    summary { (printable(&task.label)) } (figure(&figures::of_task(all, id)))
                }
            }
        }
    }
}
