//! The sections of a report, in their order. A section is a row in [`ALL`] and a function that shows it.

use maud::{Markup, html};

use super::ReportPage;
use super::tables::{folded, table};
use super::{dialogues, judged, plots, provenance, scores, standing};
use crate::analysis::preference::pairs;
use crate::analysis::spending::spending;
use crate::views::{configuration, costs, cut, preferences};

/// A section of a report.
pub(super) struct ReportSection {
    /// Its address on the page.
    pub id: &'static str,
    pub title: &'static str,
    /// What it shows; `None` if there is nothing.
    pub show: fn(&ReportPage<'_>) -> Option<Markup>,
}

/// The sections that there are, with address, title and content: those of kinds first, then those of dialogues.
pub(super) fn shown(report: &ReportPage<'_>) -> Vec<(String, &'static str, Markup)> {
    let of_kinds = report.judged.iter().map(|page| (judged::id(page), page.heading, judged::show(page)));
    let shown =
        |section: &ReportSection| Some((section.id.to_owned(), section.title, (section.show)(report)?));
    of_kinds.chain(ALL.iter().filter_map(shown)).collect()
}

/// All sections, those first that answer most.
pub(super) const ALL: [ReportSection; 9] = [
    ReportSection { id: "models", title: "Models", show: standing::show },
    ReportSection { id: "scores", title: "Mean scores", show: scores::show },
    ReportSection { id: "plots", title: "Plots", show: plots::show },
    ReportSection { id: "tests", title: "Turtle or JSON-LD", show: tests_of_formats },
    ReportSection { id: "cut", title: "Cut and empty answers", show: cut_answers },
    ReportSection { id: "costs", title: "Cost", show: costs_of_models },
    ReportSection { id: "configuration", title: "Configuration", show: configurations },
    ReportSection { id: "dialogues", title: "Dialogues", show: dialogues::show },
    ReportSection { id: "provenance", title: "Provenance", show: provenance::show },
];

fn tests_of_formats(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    (!pairs(all).is_empty()).then(|| {
        html! {
            (table(&preferences::by_model(all)))
            details { summary { "The tests behind it" } (folded(preferences::tests(all))) }
        }
    })
}

/// Only where there are some.
fn cut_answers(report: &ReportPage<'_>) -> Option<Markup> {
    let found = cut::table(report.dialogues, false);
    (!found.rows().is_empty()).then(|| folded(found))
}

/// Only where something has a price: of the others there is nothing to say.
fn costs_of_models(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let has_cost = (0..all.columns.len()).any(|column| spending(all, column).is_some());
    has_cost.then(|| folded(costs::table(all)))
}

fn configurations(report: &ReportPage<'_>) -> Option<Markup> {
    let all = report.dialogues;
    let is_told = (0..all.columns.len()).any(|column| all.setup(column).is_some());
    is_told.then(|| folded(configuration::table(all)))
}
