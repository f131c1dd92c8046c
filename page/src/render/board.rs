//! What is at the top of a benchmark's page: the rate of the last hour as a curve; the leader board, the models in their order with
//! progress and scores of each; how fast each model answers, and what that costs.

use std::sync::Arc;

use domain::control::{BenchmarkView, MINUTES_MAX, ModelView};
use domain::ranking::Contender;
use domain::{Mean, ModelLabel};
use maud::{Markup, html};
use report::costs::{Money, Prices};
use report::html::tables::{LiveRow, live};
use report::table::{Cell, Table, printable};
use report::tables::fleet;
use report::words::{self, figure};

use crate::site::Links;
use crate::standings::{ModelStanding, Standings};

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
    let row = |at: usize| {
        let model = placed[at].0;
        LiveRow { states: states(model), ..LiveRow::of_model(model.model.as_str()) }
    };
    html! {
        h2 { "Leader board so far" }
        (live(&board, &row))
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

/// The table of speed and cost.
pub(super) fn speed(view: &BenchmarkView, prices: &Prices) -> Markup {
    if view.models.iter().all(|model| model.usage.answers + model.usage.failed_calls + model.limit == 0) {
        return html! {};
    }
    let currency = prices.currency();
    let mut table = Table::default()
        .left(["model"])
        .right(["s per answer", "failed calls", "limit", "prompt tokens", "cached", "answer tokens"])
        .right([format!("{currency} so far"), format!("{currency} in the end")])
        .titled("Speed and cost");
    let spent = |model: &ModelView| prices.spent(model.billed_as.as_deref(), &model.usage);
    for model in &view.models {
        let (usage, spent) = (&model.usage, spent(model));
        let tokens = |count: u64| if usage.counted() > 0 { Cell::Count(count) } else { Cell::Empty };
        table.row([
            Cell::from(model.model.as_str()),
            Cell::number(usage.seconds_per_answer(), 2),
            Cell::Count(usage.failed_calls),
            if model.limit > 0 { Cell::Count(model.limit) } else { Cell::Empty },
            tokens(usage.prompt_tokens),
            tokens(usage.cached_tokens),
            tokens(usage.completion_tokens),
            money(spent),
            money(spent.and_then(|spent| in_the_end(model, spent))),
        ]);
    }
    let total = Money::total(view.models.iter().map(spent));
    let row = |at: usize| LiveRow::of_model(view.models[at].model.as_str());
    let names = || view.models.iter().filter_map(|model| model.billed_as.as_deref());
    html! {
        h2 { "Speed and cost" }
        (live(&table, &row))
        p.note {
            "Of the dialogues that count. Limit: dialogues in flight that workers allow now. "
            @match (total, prices.dates(names())) {
                (Some(total), Some((first, last))) => {
                    "All models together " (total) " " (currency) " so far, at prices of " (first) @if last != first { " to " (last) }
                    "; a model without a price has none. In the end: if the rest costs as much per dialogue."
                },
                (None, Some(_)) => "Of no model with a price tokens were counted.",
                _ => "No model has a price.",
            }
        }
    }
}

fn money(amount: Option<Money>) -> Cell {
    amount.map_or(Cell::Empty, |money| Cell::Told(money.to_string(), Some(money.amount)))
}

/// What a model will have cost if what is left costs as much per dialogue as what is done.
fn in_the_end(model: &ModelView, spent: Money) -> Option<Money> {
    let done = model.scored + model.failed;
    (done > 0).then(|| Money { amount: spent.amount / done as f64 * model.planned as f64, ..spent })
}

/// Width and height of the drawing in its own units; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 80.0;

/// A curve of fewer minutes shows nothing.
const MINUTES_MIN: usize = 2;

/// Dialogues per minute, the latest minute at the right end.
pub(super) fn curve(view: &BenchmarkView) -> Markup {
    let minutes = &view.per_minute;
    let Some(most) = minutes.iter().max().filter(|most| minutes.len() >= MINUTES_MIN && **most > 0) else {
        return html! {};
    };
    let last = minutes.last().copied().unwrap_or_default();
    let step = WIDTH / (MINUTES_MAX - 1) as f64;
    let left = WIDTH - step * (minutes.len() - 1) as f64;
    let height = |count: u64| HEIGHT - 2.0 - count as f64 / *most as f64 * (HEIGHT - 6.0);
    let points: Vec<String> = minutes
        .iter()
        .enumerate()
        .map(|(minute, count)| format!("{:.1},{:.1}", left + step * minute as f64, height(*count)))
        .collect();
    let words = format!(
        "Dialogues per minute in the last {} minutes: at most {most}, {last} in the last one",
        minutes.len()
    );
    html! {
        figure.curve {
            figcaption { "Dialogues per minute, " (minutes.len()) " minutes; at most " (most) ", last " (last) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(words) preserveAspectRatio="none" {
                line x1="0" x2=(WIDTH) y1=(HEIGHT - 1.0) y2=(HEIGHT - 1.0) {}
                polyline points=(points.join(" ")) {}
            }
        }
    }
}

/// The data of a run's page.
pub(crate) struct Shown {
    pub view: BenchmarkView,
    pub standings: Arc<Standings>,
    pub links: Arc<Links>,
}

impl Shown {
    /// A model of the benchmark.
    pub(super) fn model(&self, label: &ModelLabel) -> Option<&ModelView> {
        self.view.models.iter().find(|model| model.model == *label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ModelUsage;

    #[test]
    fn a_model_without_a_price_shows_none() {
        let prices = "currency = 'EUR'\n[[tokens]]\nmodels = ['paid']\ninput = 2\noutput = 10\nas_of = '2026-01-02'\nsource = 's'\n";
        let prices = Prices::parse(prices).unwrap();
        let usage = ModelUsage {
            dialogues: 10,
            prompt_tokens: 1_000_000,
            completion_tokens: 100_000,
            answers: 10,
            answer_ms: 25_000,
            failed_calls: 3,
            ..ModelUsage::default()
        };
        let model = |label: &str, billed_as: Option<&str>| ModelView {
            model: label.into(),
            planned: 40,
            scored: 10,
            billed_as: billed_as.map(str::to_owned),
            usage,
            limit: 8,
            ..ModelView::default()
        };
        let models = vec![model("a", Some("paid")), model("b", Some("own")), model("c", None)];
        let view = BenchmarkView { models, ..BenchmarkView::default() };
        let page = speed(&view, &prices).into_string();
        assert!(page.contains("data-v=\"3\">3.00<") && page.contains("data-v=\"12\">12.00<"), "{page}");
        assert_eq!(page.matches(">3.00<").count(), 1, "{page}");
        assert!(page.contains("&gt; 3.00 EUR so far, at prices of 2026-01-02;"), "{page}");
        assert!(page.contains(">2.50<"), "{page}");
        assert!(!page.contains(">0.00<"), "{page}");
    }

    fn drawn(per_minute: Vec<u64>) -> String {
        curve(&BenchmarkView { per_minute, ..BenchmarkView::default() }).into_string()
    }

    #[test]
    fn the_latest_minute_is_at_the_right_and_nothing_is_drawn_of_nothing() {
        assert!(drawn(vec![]).is_empty() && drawn(vec![7]).is_empty() && drawn(vec![0; 30]).is_empty());
        let two = drawn(vec![10, 40]);
        assert!(two.contains("589.8,59.5 600.0,4.0"), "{two}");
        assert!(two.contains("at most 40, 40 in the last one"), "{two}");
        assert!(drawn(vec![1; MINUTES_MAX]).contains("points=\"0.0,4.0 "));
    }
}
