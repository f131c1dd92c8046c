//! A cap: how much a benchmark may use, in tokens or money, before nothing more of it is asked.
//!
//! Every record is counted, also one that is no result: a dialogue that failed was paid for, and so was one that was asked again.
//! What was used follows from the records and the table of prices alone.

use std::fmt;
use std::ops::Add;

use costs::{Money, Prices};
use domain::{ModelSpec, ModelUsage, RunId};
use serde::{Deserialize, Serialize};

/// The table `[cap]` of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// Tokens of prompts and answers, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money in the currency of the table of prices, above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

impl Cap {
    /// The field that cannot be used, and what is wrong with it.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        match *self {
            Self { tokens: None, money: None } => {
                Some(("cap", "is empty; `tokens` or `money` says how much may be used".to_owned()))
            }
            Self { tokens: Some(0), .. } => Some(("cap.tokens", "is 0; it must be at least 1".to_owned())),
            Self { money: Some(money), .. } if !money.is_finite() || money <= 0.0 => {
                Some(("cap.money", format!("is {money}; it must be above 0")))
            }
            Self { .. } => None,
        }
    }

    /// Why the money that these models take cannot be counted; `None` if it can, or need not be.
    pub(crate) fn unpriced<'a>(
        &self,
        models: impl IntoIterator<Item = &'a ModelSpec>,
        prices: &Prices,
    ) -> Option<String> {
        self.money?;
        let mut models = models.into_iter();
        models.find_map(|spec| {
            let name = spec.billed_as().filter(|name| prices.of_model(name).is_none())?;
            Some(format!(
                "`cap.money` cannot count model `{}`: the table of prices has no `{name}`; add it to a table for --prices, \
                 at 0 if its tokens cost nothing",
                spec.label
            ))
        })
    }

    /// Whether so much is as much as may be used. `currency` is that of the table of prices.
    pub(crate) fn reached(&self, spent: &Spent, currency: &str) -> Option<CapReached> {
        let tokens = self.tokens.filter(|tokens| spent.tokens >= *tokens);
        let tokens = tokens.map(|of| CapReached::Tokens { used: spent.tokens, of });
        let money = self.money.filter(|money| spent.money >= *money);
        let currency = || currency.to_owned();
        tokens.or_else(|| money.map(|of| CapReached::Money { used: spent.money, of, currency: currency() }))
    }
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Tokens of prompts and answers, as far as servers counted them.
    pub tokens: u64,
    /// What they cost, as far as they have a price.
    pub money: f64,
}

impl Spent {
    /// By models, each with its sums.
    pub(crate) fn of<'a>(
        models: impl IntoIterator<Item = (&'a ModelSpec, &'a ModelUsage)>,
        prices: &Prices,
    ) -> Self {
        let of_model = |(spec, usage): (&ModelSpec, &ModelUsage)| Self {
            tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
            money: prices.spent(spec.billed_as().as_deref(), usage).map_or(0.0, |money| money.amount),
        };
        models.into_iter().map(of_model).fold(Self::default(), Add::add)
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), money: self.money + other.money }
    }
}

/// Why a cap lets nothing more be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CapReached {
    Tokens {
        used: u64,
        of: u64,
    },
    Money {
        used: f64,
        of: f64,
        currency: String,
    },
    /// The table of prices lacks a model, as it says.
    Unpriced(String),
    /// The runs of its judged benchmark are still to be counted.
    Uncounted,
}

impl CapReached {
    /// The reason as metrics name it.
    pub(crate) const WORD: &'static str = "cap";

    /// The reason with what to do about it. `is_fleet`: the benchmark is one of a fleet.
    pub(crate) fn told(&self, benchmark: &RunId, is_fleet: bool) -> String {
        let key = match self {
            Self::Tokens { .. } => "tokens",
            Self::Money { .. } => "money",
            Self::Unpriced(_) | Self::Uncounted => return self.to_string(),
        };
        let command = match is_fleet {
            true => format!("kgfleet submit CONFIG --extend {benchmark}"),
            false => "kgfleet run CONFIG".to_owned(),
        };
        format!("{self}; raise `cap.{key}` in the configuration, and `{command}` goes on")
    }
}

impl fmt::Display for CapReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens { used, of } => {
                write!(f, "capped: {} of {} tokens used", grouped(*used), grouped(*of))
            }
            Self::Money { used, of, currency } => {
                let [used, of] = [used, of].map(|amount| Money::exactly(*amount));
                write!(f, "capped: {used} of {of} {currency} used")
            }
            Self::Unpriced(why) => write!(f, "capped: {why}"),
            Self::Uncounted => f.write_str("capped: what it has used is being counted"),
        }
    }
}

/// A count as people write it: `1 000 412`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::Connector;

    use super::*;

    const PRICES: &str = "currency = 'EUR'\n[[tokens]]\nmodels = ['paid']\ninput = 1\noutput = 4\nas_of = '2026-01-02'\n\
                          source = 'https://prices.example'\n";

    fn model(name: &str, connector: Connector) -> ModelSpec {
        ModelSpec::new(name, connector)
    }

    fn used(prompt_tokens: u64, completion_tokens: u64) -> ModelUsage {
        ModelUsage { dialogues: 1, answers: 1, prompt_tokens, completion_tokens, ..ModelUsage::default() }
    }

    #[test]
    fn a_cap_is_reached_by_as_much_as_it_allows() {
        let cap = |tokens, money| Cap { tokens, money };
        let reached = |cap: Cap, tokens, money| {
            cap.reached(&Spent { tokens, money }, "EUR").map(|reached| reached.to_string())
        };
        assert_eq!(reached(cap(Some(1_000_000), None), 999_999, 9.0), None);
        let told = "capped: 1 000 412 of 1 000 000 tokens used";
        assert_eq!(reached(cap(Some(1_000_000), None), 1_000_412, 0.0).as_deref(), Some(told));
        assert_eq!(reached(cap(None, Some(5.0)), 9, 4.99), None);
        let told = "capped: 5.02 of 5.00 EUR used";
        assert_eq!(reached(cap(None, Some(5.0)), 9, 5.02).as_deref(), Some(told));
        let told = "capped: 100 of 100 tokens used";
        assert_eq!(reached(cap(Some(100), Some(5.0)), 100, 6.0).as_deref(), Some(told));
    }

    #[test]
    fn people_are_told_what_to_raise_and_how() {
        let (tokens, name) = (CapReached::Tokens { used: 7, of: 7 }, RunId::new("r"));
        let told = tokens.told(&name, true);
        assert!(
            told.contains("`cap.tokens`") && told.contains("`kgfleet submit CONFIG --extend r`"),
            "{told}"
        );
        let money = CapReached::Money { used: 1.0, of: 1.0, currency: "EUR".to_owned() };
        let told = money.told(&name, false);
        assert!(told.contains("`cap.money`") && told.contains("`kgfleet run CONFIG`"), "{told}");
        assert_eq!(CapReached::Uncounted.told(&name, true), CapReached::Uncounted.to_string());
    }

    #[test]
    fn what_was_used_is_the_sum_of_models_and_nobody_bills_a_simulated_one() {
        let prices = Prices::parse(PRICES).unwrap();
        let models = [model("paid", Connector::OpenaiCompatible), model("paid", Connector::Simulated)];
        let usages = [used(1_000_000, 500_000), used(10, 5)];
        let spent = Spent::of(models.iter().zip(&usages), &prices);
        assert_eq!(spent, Spent { tokens: 1_500_015, money: 3.0 });
        let more = spent + Spent { tokens: u64::MAX, money: 1.0 };
        assert_eq!(
            more,
            Spent { tokens: u64::MAX, money: 4.0 },
            "a number that no server sends ends a run at once"
        );
        assert_eq!(Spent::of([], &prices), Spent::default());
    }

    #[test]
    fn money_is_counted_only_where_every_model_has_a_price() {
        let prices = Prices::parse(PRICES).unwrap();
        let models = [model("paid", Connector::OpenaiCompatible), model("mine", Connector::OpenaiCompatible)];
        let money = Cap { money: Some(1.0), tokens: None };
        let why = money.unpriced(&models, &prices).unwrap();
        assert!(why.contains("model `mine`") && why.contains("--prices"), "{why}");
        assert_eq!(money.unpriced(&models[..1], &prices), None);
        assert_eq!(money.unpriced(&[model("mine", Connector::Simulated)], &prices), None);
        assert_eq!(Cap { tokens: Some(1), money: None }.unpriced(&models, &prices), None);
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        let shown = [0, 12, 999, 1_000, 65_536, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "12", "999", "1 000", "65 536", "1 234 567"]);
    }
}
