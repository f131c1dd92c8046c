//! The section about KGHaluBench: tables and figures of each judged benchmark.

use benchmarks::kinds::kghalubench::show::{Study, figures, tables as views};
use maud::{Markup, PreEscaped, html};
use present::table::printable;

use super::tables::table;

/// The section; empty if there are no studies.
pub fn section(studies: &[Study]) -> Markup {
    html! {
        @if !studies.is_empty() {
            section #hallucination { h2 { "Hallucination" }
                (table(&views::main(studies)))
                h3 { "What answers are made of" } (table(&views::distributions(studies)))
                h3 { "Stages" } (table(&views::stages(studies)))
                details { summary { "Types of entities" } (table(&views::types(studies))) }
                @for study in studies {
                    @if studies.len() > 1 { h3 { (printable(&study.pipeline)) } }
                    @for (_, figure) in figures::all(study) {
                        div.scroll tabindex="0" role="region" aria-label=(printable(figure.title())) { (PreEscaped(figure.inline())) }
                    }
                }
            }
        }
    }
}
