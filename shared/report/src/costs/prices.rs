//! The table of prices.

use std::collections::BTreeMap;

use domain::ModelUsage;
use domain::glob::Glob;
use domain::model::BILLED_AT;
use jiff::civil::Date;
use serde::Deserialize;

use super::money::Money;

/// The table that comes with the program.
const SHIPPED: &str = include_str!("../../../../deploy/costs/prices.toml");

/// Tokens to which a price belongs.
const MILLION: f64 = 1e6;

/// What models and GPUs cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    currency: String,
    tokens: BTreeMap<String, Vec<PriceAt>>,
    gpus: BTreeMap<String, GpuPrice>,
}

/// A price, and where it holds.
#[derive(Clone, Debug, PartialEq)]
struct PriceAt {
    /// The hosts of the provider whose price it is; `*` stands for any text. Empty: anywhere.
    hosts: Vec<String>,
    price: TokenPrice,
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
    #[serde(default)]
    hosts: Vec<String>,
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
        for TokenEntry { models, hosts, input, cached, output, as_of, source } in file.tokens {
            let price = TokenPrice { input, cached: cached.unwrap_or(input), output, as_of, source };
            for name in models {
                if ![price.input, price.cached, price.output].into_iter().all(is_price) {
                    return Err(invalid(&name, "a price must be a number from 0"));
                }
                let known = prices.tokens.entry(name.clone()).or_default();
                let is_same =
                    |at: &PriceAt| at.hosts == hosts || at.hosts.iter().any(|host| hosts.contains(host));
                if known.iter().any(is_same) {
                    return Err(invalid(&name, "it has two prices"));
                }
                known.push(PriceAt { hosts: hosts.clone(), price: price.clone() });
            }
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

    /// What a model costs, by how it is [billed](domain::ModelSpec::billed_as). Only whole names count: a model with a similar name may
    /// have another price, and so may one of the same name at another address.
    pub fn of_model(&self, billed_as: &str) -> Option<&TokenPrice> {
        let (name, host) = match billed_as.rsplit_once(BILLED_AT) {
            Some((name, host)) => (name, Some(host)),
            None => (billed_as, None),
        };
        let known = self.tokens.get(name)?;
        let is_there = |at: &&PriceAt| {
            host.is_some_and(|host| at.hosts.iter().any(|pattern| Glob::new(pattern).matches(host)))
        };
        let of_host = known.iter().find(is_there);
        of_host.or_else(|| known.iter().find(|at| at.hosts.is_empty())).map(|at| &at.price)
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
    fn a_price_holds_at_the_address_of_whose_it_is() {
        let text =
            TABLE.replace("models = ['c']", "models = ['c']\nhosts = ['api.c.example', '*.eu.example']");
        let prices = Prices::parse(&text).unwrap();
        let input = |billed: &str| prices.of_model(billed).map(|price| price.input);
        for (billed, price) in [
            ("c at api.c.example", Some(1.0)),
            ("c at one.eu.example", Some(1.0)),
            ("c at 127.0.0.1", None),
            ("c at c.example", None),
            ("c", None),
            ("a at 127.0.0.1", Some(2.0)),
            ("a", Some(2.0)),
        ] {
            assert_eq!(input(billed), price, "{billed}");
        }
        let own = text.replace("'a', 'b'", "'a', 'b', 'c'");
        let prices = Prices::parse(&own).unwrap();
        assert_eq!(prices.of_model("c at 127.0.0.1").unwrap().input, 2.0);
        assert_eq!(prices.of_model("c at api.c.example").unwrap().input, 1.0);
        let shipped = Prices::shipped();
        assert!(shipped.tokens.values().flatten().all(|at| !at.hosts.is_empty()));
    }

    #[test]
    fn the_shipped_table_can_be_used_and_a_bad_one_says_where() {
        let shipped = Prices::shipped();
        let price = shipped.of_model("gpt-4o-mini-2024-07-18 at api.openai.com").unwrap();
        assert!((price.of_tokens(1_000_000, 0, 1_000_000) - 0.75).abs() < 1e-12);
        assert!(price.source.starts_with("https://"));
        let problem = |text: &str| Prices::parse(text).unwrap_err().to_string();
        assert!(problem(&TABLE.replace("'b'", "'a'")).contains("`a`: it has two prices"));
        assert!(problem(&TABLE.replace("output = 10", "output = -1")).contains("`a`: a price must be"));
        assert!(problem(&TABLE.replace("output = 4", "outputs = 4")).contains("outputs"));
        assert!(problem(&TABLE.replace("source = 'https://c.example'", "")).contains("source"));
    }
}
