//! The table of prices.

use std::collections::BTreeMap;

use domain::ModelUsage;
use domain::model::billed_in_batches;
use jiff::civil::Date;
use serde::Deserialize;

use crate::money::Money;

/// The table that comes with the program.
const SHIPPED: &str = include_str!("../../../deploy/costs/prices.toml");

/// What batches cost of the price of the same tokens one by one: OpenAI's and Anthropic's discount.
const OF_BATCHES: f64 = 0.5;

/// Tokens to which a price belongs.
const MILLION: f64 = 1e6;

/// What models and GPUs cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    currency: String,
    tokens: BTreeMap<String, TokenPrice>,
    gpus: BTreeMap<String, GpuPrice>,
}

/// What a million tokens cost.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenPrice {
    pub input: f64,
    /// Of prompt tokens that the provider found in its cache.
    pub cached: f64,
    pub output: f64,
    /// When the source showed it.
    pub as_of: Date,
    /// An address.
    pub source: String,
}

/// What an hour of one GPU costs.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuPrice {
    pub per_hour: f64,
    /// When the source showed it.
    pub as_of: Date,
    /// An address.
    pub source: String,
}

/// Why a table of prices cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidPrices {
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    #[error("`{name}`: {problem}")]
    Entry { name: String, problem: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    currency: String,
    #[serde(default)]
    tokens: Vec<TokenEntry>,
    #[serde(default)]
    gpus: Vec<GpuEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    models: Vec<String>,
    input: f64,
    cached: Option<f64>,
    output: f64,
    as_of: Date,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuEntry {
    kind: String,
    per_hour: f64,
    as_of: Date,
    source: String,
}

impl Prices {
    /// The table that comes with the program.
    #[expect(clippy::expect_used, reason = "a test reads the same text")]
    pub fn shipped() -> Self {
        Self::parse(SHIPPED).expect("the shipped table")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// It is no TOML of this form, a price is impossible, or a name has two prices.
    pub fn parse(text: &str) -> Result<Self, InvalidPrices> {
        let file: File = toml::from_str(text)?;
        let mut prices = Self { currency: file.currency, ..Self::default() };
        let invalid = |name: &str, problem| InvalidPrices::Entry { name: name.to_owned(), problem };
        let is_price = |amount: f64| amount.is_finite() && amount >= 0.0;
        for TokenEntry { models, input, cached, output, as_of, source } in file.tokens {
            let price = TokenPrice { input, cached: cached.unwrap_or(input), output, as_of, source };
            for name in models {
                if ![price.input, price.cached, price.output].into_iter().all(is_price) {
                    return Err(invalid(&name, "a price must be a number from 0"));
                }
                if prices.tokens.insert(name.clone(), price.clone()).is_some() {
                    return Err(invalid(&name, "it has two prices"));
                }
            }
        }
        let batches: Vec<(String, TokenPrice)> = prices
            .tokens
            .iter()
            .map(|(name, price)| (billed_in_batches(name), price.times(OF_BATCHES)))
            .collect();
        for (name, price) in batches {
            // A table may name a price of its own.
            prices.tokens.entry(name).or_insert(price);
        }
        for GpuEntry { kind, per_hour, as_of, source } in file.gpus {
            if !is_price(per_hour) {
                return Err(invalid(&kind, "a price must be a number from 0"));
            }
            if prices.gpus.insert(kind.clone(), GpuPrice { per_hour, as_of, source }).is_some() {
                return Err(invalid(&kind, "it has two prices"));
            }
        }
        Ok(prices)
    }

    /// The currency, such as `USD`.
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// What a model costs, by the name that is sent to its provider. Only whole names count: a model with a similar name may
    /// have another price.
    pub fn of_model(&self, name: &str) -> Option<&TokenPrice> {
        self.tokens.get(name)
    }

    /// What an hour of a GPU of this kind costs.
    pub fn of_gpu(&self, kind: &str) -> Option<&GpuPrice> {
        self.gpus.get(kind)
    }

    /// What so many hours of GPUs of this kind cost; `None` without a price.
    pub fn of_gpu_hours(&self, kind: &str, hours: f64) -> Option<Money> {
        self.of_gpu(kind).map(|price| Money::exactly(price.per_hour * hours))
    }

    /// What dialogues of a model have cost; `None` without a name, a price, or any counted token of those that there are.
    pub fn spent(&self, name: Option<&str>, usage: &ModelUsage) -> Option<Money> {
        self.of_model(name?)?.of(usage)
    }

    /// The dates between which the prices of these models were read.
    pub fn dates<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<(Date, Date)> {
        let dates = names.into_iter().filter_map(|name| Some(self.of_model(name)?.as_of));
        dates.fold(None, |range, date| match range {
            None => Some((date, date)),
            Some((first, last)) => Some((first.min(date), last.max(date))),
        })
    }
}

impl TokenPrice {
    /// So many times this price.
    fn times(&self, factor: f64) -> Self {
        let Self { input, cached, output, .. } = self;
        Self { input: input * factor, cached: cached * factor, output: output * factor, ..self.clone() }
    }

    /// What dialogues have cost; `None` if no server counted the tokens of any.
    pub fn of(&self, usage: &ModelUsage) -> Option<Money> {
        if usage.dialogues > 0 && usage.counted() == 0 {
            return None;
        }
        let amount = self.of_tokens(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
        Some(Money { amount, is_least: usage.uncounted > 0 })
    }

    /// What so many tokens cost. Cached ones are a part of those of prompts.
    pub fn of_tokens(&self, prompt: u64, cached: u64, completion: u64) -> f64 {
        let cached = cached.min(prompt);
        let millions = |tokens: u64| tokens as f64 / MILLION;
        millions(prompt - cached) * self.input
            + millions(cached) * self.cached
            + millions(completion) * self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "currency = 'EUR'\n\
        [[tokens]]\nmodels = ['a', 'b']\ninput = 2\ncached = 0.5\noutput = 10\nas_of = '2026-01-02'\nsource = 'https://a.example'\n\
        [[tokens]]\nmodels = ['c']\ninput = 1\noutput = 4\nas_of = '2026-03-04'\nsource = 'https://c.example'\n\
        [[gpus]]\nkind = 'H100 80 GB'\nper_hour = 3\nas_of = '2026-01-02'\nsource = 'https://gpu.example'\n";

    fn used(prompt_tokens: u64, cached_tokens: u64, completion_tokens: u64) -> ModelUsage {
        ModelUsage { dialogues: 3, prompt_tokens, cached_tokens, completion_tokens, ..ModelUsage::default() }
    }

    #[test]
    fn tokens_come_to_money_and_cached_ones_to_less() {
        let prices = Prices::parse(TABLE).unwrap();
        let usage = used(3_000_000, 1_000_000, 500_000);
        assert_eq!(prices.spent(Some("b"), &usage).unwrap().amount, 2.0 * 2.0 + 0.5 + 5.0);
        assert_eq!(
            prices.spent(Some("c"), &usage).unwrap().amount,
            3.0 + 2.0,
            "all prompt tokens cost the same"
        );
        assert_eq!(prices.of_gpu("H100 80 GB").unwrap().per_hour, 3.0);
        assert_eq!(prices.of_gpu_hours("H100 80 GB", 1.5), Some(Money::exactly(4.5)));
        assert_eq!(prices.of_gpu_hours("H200", 1.5), None);
        let dates = prices.dates(["a", "c", "x"]).unwrap();
        assert_eq!((dates.0.to_string(), dates.1.to_string()), ("2026-01-02".into(), "2026-03-04".into()));
        assert_eq!(prices.currency(), "EUR");
    }

    #[test]
    fn batches_cost_half_unless_the_table_says_otherwise() {
        let batched = |text: &str, name: &str| {
            let prices = Prices::parse(text).unwrap();
            prices.of_model(&billed_in_batches(name)).map(|price| (price.input, price.cached, price.output))
        };
        assert_eq!(batched(TABLE, "a"), Some((1.0, 0.25, 5.0)));
        assert_eq!(batched(TABLE, "x"), None);
        let own = TABLE.replace("'c'", "'a in batches'");
        assert_eq!(batched(&own, "a"), Some((1.0, 1.0, 4.0)));
    }

    #[test]
    fn what_has_no_price_or_no_count_has_no_cost() {
        let prices = Prices::parse(TABLE).unwrap();
        assert_eq!(prices.spent(Some("A"), &used(1, 0, 1)), None, "only whole names count");
        assert_eq!((prices.spent(None, &used(1, 0, 1)), prices.of_gpu("H200")), (None, None));
        let none = ModelUsage { uncounted: 3, ..used(0, 0, 0) };
        assert_eq!(prices.spent(Some("a"), &none), None);
        let some = prices.spent(Some("a"), &ModelUsage { uncounted: 1, ..used(1_000_000, 0, 0) }).unwrap();
        assert_eq!(some, Money { amount: 2.0, is_least: true });
        assert_eq!(prices.spent(Some("a"), &ModelUsage::default()), Some(Money::exactly(0.0)));
    }

    #[test]
    fn the_shipped_table_can_be_used_and_a_bad_one_says_where() {
        let shipped = Prices::shipped();
        let price = shipped.of_model("gpt-4o-mini-2024-07-18").unwrap();
        assert!((price.of_tokens(1_000_000, 0, 1_000_000) - 0.75).abs() < 1e-12);
        assert!(price.source.starts_with("https://"));
        let problem = |text: &str| Prices::parse(text).unwrap_err().to_string();
        assert!(problem(&TABLE.replace("'b'", "'a'")).contains("`a`: it has two prices"));
        assert!(problem(&TABLE.replace("output = 10", "output = -1")).contains("`a`: a price must be"));
        assert!(problem(&TABLE.replace("output = 4", "outputs = 4")).contains("outputs"));
        assert!(problem(&TABLE.replace("source = 'https://c.example'", "")).contains("source"));
    }
}
