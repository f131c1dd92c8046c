//! How fast each model answers and what that costs.

use domain::control::{BenchmarkView, ModelView};
use maud::{Markup, html};
use report::costs::{Money, Prices};
use report::html::tables::{LiveRow, live};
use report::table::{Cell, Table};

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
    let row =
        |at: usize| LiveRow { key: view.models[at].model.as_str(), is_model: true, states: String::new() };
    let names = || view.models.iter().filter_map(|model| model.billed_as.as_deref());
    html! {
        h2 { "Speed and cost" }
        (live(&table, |_, _| None, row))
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

#[cfg(test)]
mod tests {
    use domain::ModelUsage;

    use super::*;

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
}
