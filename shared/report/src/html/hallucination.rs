//! The section about KGHaluBench: tables and figures of each judged benchmark.

use benchmarks::kinds::kghalubench::show::{figures, tables as views};
use maud::{Markup, html};
use present::table::printable;

use super::ReportPage;
use super::plots::figure;
use super::tables::table;

pub(super) fn show(report: &ReportPage<'_>) -> Option<Markup> {
    let studies = report.hallucination;
    (!studies.is_empty()).then(|| {
        html! {
            (table(&views::main(studies)))
            h3 { "What answers are made of" } (table(&views::distributions(studies)))
            h3 { "Stages" } (table(&views::stages(studies)))
            details { summary { "Types of entities" } (table(&views::types(studies))) }
            @for study in studies {
                @if studies.len() > 1 { h3 { (printable(&study.pipeline)) } }
                @for (_, drawn) in figures::all(study) { (figure(&drawn)) }
            }
        }
    })
}
