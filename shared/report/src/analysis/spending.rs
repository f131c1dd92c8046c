//! What the dialogues of models cost, by the table of prices.

use super::cells::totals;
use crate::costs::{Money, TokenPrice};
use crate::dialogues::{ColumnId, Dialogues};

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
    use crate::dialogues::NewDialogue;
    use crate::dialogues::testing::{entry, priced};

    #[test]
    fn what_was_not_counted_makes_an_amount_the_least_and_no_price_is_no_cost() {
        let mut all = priced(&["paid", "own"]);
        // Two dialogues of 10 and 5 tokens, at 2 and 10 for a million.
        let found = spending(&all, 0).unwrap();
        assert!((found.money.unwrap().amount - 2.0 * 70e-6).abs() < 1e-12 && !found.money.unwrap().is_least);
        assert!((found.of_many.unwrap() - 0.07).abs() < 1e-9);
        assert_eq!(spending(&all, 1), None);
        let scores = domain::Scores::new();
        all.add(NewDialogue { prompt_tokens: None, ..entry(0, 0, 9, &scores) });
        let found = spending(&all, 0).unwrap();
        assert!(found.money.unwrap().is_least && (found.of_many.unwrap() - 0.07).abs() < 1e-9);
        all.prices = Prices::default().into();
        assert_eq!(spending(&all, 0), None);
    }
}
