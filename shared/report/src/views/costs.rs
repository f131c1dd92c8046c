//! What the dialogues of models cost, by the table of prices, with the prices and their sources.

use crate::analysis::cells::totals;
use crate::costs::{Money, TokenPrice};
use crate::dialogues::{ColumnId, Dialogues};
use crate::table::{ALL_DIGITS, Cell, Table};
use crate::views::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "costs",
    about: "What every model cost: tokens, prices with dates and sources, money",
    table: |all, options| options.order.of(table(all)),
};

/// One row per model. What has no price has none.
pub fn table(all: &Dialogues) -> Table {
    let currency = all.prices.currency();
    let mut table = Table::default()
        .left(["model"])
        .right([named("cost", currency), named("per 1 000 dialogues", currency)])
        .right(["dialogues", "counted", "prompt tokens", "cached", "answer tokens"])
        .left(["billed as"])
        .right(["prompt price", "cached price", "answer price"])
        .left(["as of", "source"])
        .titled("Cost");
    let headings = all.headings();
    for total in totals(all) {
        let (usage, found) = (&total.usage, spending(all, total.column));
        let tokens = |count: u64| if usage.counted() > 0 { Cell::Count(count) } else { Cell::Empty };
        let text =
            |of: fn(&Spending<'_>) -> String| found.as_ref().map_or(Cell::Empty, |found| of(found).into());
        let price = |of: fn(&Spending<'_>) -> f64| Cell::number(found.as_ref().map(of), ALL_DIGITS);
        table.row([
            Cell::from(headings[total.column].as_str()),
            cell(found.and_then(|found| found.money)),
            found
                .and_then(|found| found.of_many)
                .map_or(Cell::Empty, |amount| cell(Some(Money::exactly(amount)))),
            Cell::Count(usage.dialogues),
            Cell::Count(usage.counted()),
            tokens(usage.prompt_tokens),
            tokens(usage.cached_tokens),
            tokens(usage.completion_tokens),
            text(|found| found.billed_as.to_owned()),
            price(|found| found.price.input),
            price(|found| found.price.cached()),
            price(|found| found.price.output),
            text(|found| found.price.as_of.to_string()),
            text(|found| found.price.source.clone()),
        ]);
    }
    table.notes.extend(ABOUT.map(str::to_owned));
    table
}

/// What the columns say.
const ABOUT: [&str; 3] = [
    "cost: of the dialogues that count, at prices per million tokens of the date beside them; at least so much where it begins with \
     >, because servers counted the tokens of some dialogues only. Failed calls, repeated attempts and judges are not in it.",
    "A model without a price has no cost here, which is not to say that it costs nothing: GPUs cost by the hour.",
    "The table of prices can be edited: --prices FILE.",
];

/// A heading with its currency.
pub(super) fn named(name: &str, currency: &str) -> String {
    if currency.is_empty() { name.to_owned() } else { format!("{name} in {currency}") }
}

/// An amount. A file gets no number for one that is known in part: it would look like the whole.
pub(super) fn cell(money: Option<Money>) -> Cell {
    money.map_or(Cell::Empty, |money| {
        Cell::Told(money.to_string(), Some(money.amount).filter(|_| !money.is_least))
    })
}

/// Dialogues for which a cost is told, so that amounts of cheap models can be read.
pub const COST_DIALOGUES: f64 = 1_000.0;

/// A model with a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spending<'a> {
    /// The name that has the price.
    pub billed_as: &'a str,
    pub price: &'a TokenPrice,
    /// What the dialogues cost whose tokens were counted; `None` if no server counted those of any.
    pub money: Option<Money>,
    /// What so many dialogues cost as [`COST_DIALOGUES`] says, at the mean of those that were counted.
    pub of_many: Option<f64>,
}

/// What a model cost; `None` if it has no price, which is not to say that it costs nothing.
pub fn spending(all: &Dialogues, column: ColumnId) -> Option<Spending<'_>> {
    let billed_as = all.setup(column)?.billed_as.as_deref()?;
    let price = all.prices.of_model(billed_as)?;
    let usage = &totals(all)[column].usage;
    let money = price.of(usage);
    let counted = Some(usage.counted()).filter(|counted| *counted > 0);
    let of_many = money.zip(counted).map(|(money, counted)| money.amount / counted as f64 * COST_DIALOGUES);
    Some(Spending { billed_as, price, money, of_many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Prices;
    use crate::dialogues::ReportedDialogue;
    use crate::dialogues::testing::{entry, priced};

    fn csv(all: &Dialogues) -> Vec<String> {
        let mut out = Vec::new();
        table(all).write_csv(&mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_model_has_its_money_or_none() {
        let mut all = priced(&["paid", "own"]);
        let lines = csv(&all);
        assert!(lines[0].starts_with("model,cost in EUR,per 1 000 dialogues in EUR,"), "{lines:?}");
        assert!(
            lines[1].starts_with("paid,0.00014") && lines[1].ends_with(",2026-01-02,https://a.example"),
            "{lines:?}"
        );
        assert_eq!(lines[2], "own,,,2,2,20,0,10,,,,,,");
        let scores = domain::Scores::new();
        all.add(ReportedDialogue { prompt_tokens: None, ..entry(0, 0, 9) }, "c", Ok(&scores));
        assert_eq!(table(&all).rows()[0][1].shown(), "> 0.0001");
        assert!(csv(&all)[1].starts_with("paid,,0.07"), "{:?}", csv(&all));
    }

    #[test]
    fn what_was_not_counted_makes_an_amount_the_least_and_no_price_is_no_cost() {
        let mut all = priced(&["paid", "own"]);
        // Two dialogues of 10 and 5 tokens, at 2 and 10 for a million.
        let found = spending(&all, 0).unwrap();
        assert!((found.money.unwrap().amount - 2.0 * 70e-6).abs() < 1e-12 && !found.money.unwrap().is_least);
        assert!((found.of_many.unwrap() - 0.07).abs() < 1e-9);
        assert_eq!(spending(&all, 1), None);
        let scores = domain::Scores::new();
        all.add(ReportedDialogue { prompt_tokens: None, ..entry(0, 0, 9) }, "c", Ok(&scores));
        let found = spending(&all, 0).unwrap();
        assert!(found.money.unwrap().is_least && (found.of_many.unwrap() - 0.07).abs() < 1e-9);
        all.prices = Prices::default().into();
        assert_eq!(spending(&all, 0), None);
    }
}
