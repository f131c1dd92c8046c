//! What models cost, with the prices and their sources.

use crate::analysis::cells::totals;
use crate::analysis::spending::{Spending, spending};
use crate::costs::Money;
use crate::dialogues::Dialogues;
use crate::table::{ALL_DIGITS, Cell, Table};
use crate::view::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "costs",
    about: "What every model cost: tokens, prices with dates and sources, money",
    is_summary: true,
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
            price(|found| found.price.cached),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::NewDialogue;
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
        all.add(NewDialogue { prompt_tokens: None, ..entry(0, 0, 9, &scores) });
        assert_eq!(table(&all).rows()[0][1].shown(), "> 0.0001");
        assert!(csv(&all)[1].starts_with("paid,,0.07"), "{:?}", csv(&all));
    }
}
