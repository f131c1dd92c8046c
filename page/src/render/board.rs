//! The leader board: the models of a benchmark in their order, with progress and scores of each.

use domain::Mean;
use domain::control::ModelView;
use domain::ranking::Contender;
use maud::{Markup, html};
use report::html::tables::{LiveRow, live};
use report::table::{Cell, Table, printable};
use report::tables::fleet;
use report::words::{self, figure};

use super::shown::Shown;
use crate::standings::ModelStanding;

/// For sorting: what never ends takes longer than anything that does, in seconds.
const NEVER_S: f64 = 1e12;

/// The board.
pub(super) fn board(shown: &Shown) -> Markup {
    let Shown { view, standings, .. } = shown;
    if view.models.is_empty() {
        return html! {};
    }
    let headline = &view.headline;
    let ends: &[&str] = if headline.intervals { &["low", "high"] } else { &[] };
    let columns = Table::default()
        .right(["rank"])
        .left(["model"])
        .right([headline.words.as_str()])
        .right(ends.iter().copied());
    let columns = columns.right(["done", "failed", "per s", "ETA"]).left([""]);
    let mut board = columns.titled("Leader board");
    let placed: Vec<(&ModelView, &ModelStanding, Option<u64>)> = standings
        .placed()
        .into_iter()
        .filter_map(|(standing, place)| Some((shown.model(&standing.model)?, standing, place.rank)))
        .collect();
    for (model, standing, rank) in &placed {
        let (contender, interval) = (&standing.contender, standing.interval);
        let done = model.scored + model.failed;
        let head = [
            Cell::count(*rank),
            Cell::from(model.model.as_str()),
            Cell::Told(covered(contender), contender.value),
        ];
        // Of what is not ranked the bounds are told: an interval would speak of what was asked by chance.
        let interval = interval.filter(|_| rank.is_some());
        let ends = [interval.map(|interval| interval.low), interval.map(|interval| interval.high)];
        let ends = ends.into_iter().filter(|_| headline.intervals).map(|end| Cell::number(end, 3));
        let rest = [
            Cell::Told(format!("{done}/{}", model.planned), Some(done as f64)),
            Cell::Count(model.failed),
            Cell::Told(figure(model.pace.rate), Some(model.pace.rate)),
            Cell::Told(fleet::eta(model.pace.eta_s), Some(time_left(model))),
            Cell::from(remark(model, contender, *rank)),
        ];
        board.row(head.into_iter().chain(ends).chain(rest));
    }
    let row = |at: usize| LiveRow {
        key: placed[at].0.model.as_str(),
        is_model: true,
        states: states(placed[at].0),
    };
    html! {
        h2 { "Leader board so far" }
        (live(&board, |_, _| None, row))
        @if !headline.intervals {
            p.note { "The first of the results below. Ranks are given to models whose results cover about as much of their plan as those of "
                "the farthest one." }
        } @else {
            p.note { "Mean of the means of the tasks, each counting the same, from " (standings.scores()) " scores of one moment. Ranks are "
                "given to models that have scores for about as much of their plan as the farthest one: at most one point of a hundred less. "
                "Low and high: 95 % interval of the mean, for these tasks with other exercises." }
        }
    }
}

/// The mean, and how many of the planned scores are in it.
fn covered(contender: &Contender) -> String {
    let Contender { value, covered, planned, .. } = *contender;
    Mean { value, covered, planned }.to_string()
}

/// Seconds until a model is done, for sorting: of one that stands still, longer than any.
fn time_left(model: &ModelView) -> f64 {
    if model.remaining() == 0 { 0.0 } else { model.pace.eta_s.unwrap_or(NEVER_S) }
}

/// Why a model gets no answers, and why it has no rank.
fn remark(model: &ModelView, contender: &Contender, rank: Option<u64>) -> String {
    let stands = model.blocked.as_deref().or(model.parked.as_deref()).map(printable);
    let bounds = contender.bounds.filter(|_| rank.is_none() && contender.value.is_some());
    let unranked = bounds.map(|bounds| format!("not ranked: {}", words::bounds(bounds)));
    [stands, unranked].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What a reader can look for.
fn states(model: &ModelView) -> String {
    let states = [
        ("blocked", model.blocked.is_some() || model.parked.is_some()),
        ("open", model.remaining() > 0),
        ("failed", model.failed > 0),
    ];
    states.into_iter().filter(|(_, is)| *is).map(|(word, _)| word).collect::<Vec<_>>().join(" ")
}

/// The fields by which a reader looks for models. They belong to the reader, not to the state: updates leave them alone.
pub(super) fn finder() -> Markup {
    html! {
        form #find role="search" aria-label="Models" hidden {
            label { "Model " input type="search" name="model" placeholder="part of a name" autocomplete="off"; }
            label { "Show " select name="state" {
                option value="" { "all models" }
                option value="blocked" { "blocked" }
                option value="open" { "not done" }
                option value="failed" { "with failures" }
            } }
            label { "Order " select name="order" {
                option value="" { "best first" }
                option value="ETA descending" { "slowest first" }
                option value="failed descending" { "most failed first" }
                option value="model ascending" { "by name" }
            } }
            output name="found" {}
        }
    }
}
