//! What models cost: a table of prices, and the money that tokens and GPU hours come to.
//!
//! Pure: the text of the table in, money out. [`Prices::shipped`] is the table that comes with the program. A model without a
//! price costs an unknown amount, which is never shown as nothing; so does a model of whose dialogues no server counted tokens.

use std::fmt;
use std::ops::Add;

use domain::ModelUsage;
use domain::glob::Glob;
use domain::model::BILLED_AT;
use jiff::civil::Date;
use serde::Deserialize;

/// Amounts below this many units are written with more digits.
const SMALL: f64 = 1.0;

/// Amounts below this are not written with their digits.
const LEAST: f64 = 0.0001;

/// An amount in the currency of its table of prices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Money {
    pub amount: f64,
    /// Whether a part of it is unknown: it is this much at least.
    pub is_least: bool,
}

impl Money {
    /// An amount that is known as a whole.
    pub fn exactly(amount: f64) -> Self {
        Self { amount, is_least: false }
    }

    /// The sum of what is known of some models; `None` if nothing is.
    pub fn total(amounts: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let (mut total, mut unknown) = (None::<Self>, false);
        for amount in amounts {
            match amount {
                Some(amount) => total = Some(total.unwrap_or_default() + amount),
                None => unknown = true,
            }
        }
        total.map(|total| Self { is_least: total.is_least || unknown, ..total })
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { amount: self.amount + other.amount, is_least: self.is_least || other.is_least }
    }
}

/// `12.34`, `0.0123` or, where a part is unknown, `> 12.34`. What is too small for that is no nothing: `< 0.0001`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.amount > 0.0 && self.amount < LEAST && !self.is_least {
            return write!(f, "< {LEAST}");
        }
        let digits = if self.amount == 0.0 || self.amount >= SMALL { 2 } else { 4 };
        let least = if self.is_least { "> " } else { "" };
        write!(f, "{least}{:.digits$}", self.amount)
    }
}

/// The table that comes with the program.
const SHIPPED: &str = include_str!("../../../deploy/costs/prices.toml");

/// Tokens to which a price belongs.
const MILLION: f64 = 1e6;

/// What models and GPUs cost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Such as `USD`.
    currency: String,
    #[serde(default)]
    tokens: Vec<TokenPrice>,
    #[serde(default)]
    gpus: Vec<GpuPrice>,
}

/// What a million tokens of some models cost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenPrice {
    /// Whose price it is, by the names that are sent to the provider.
    models: Vec<String>,
    /// The hosts of the provider whose price it is; `*` stands for any text. Empty: anywhere.
    #[serde(default)]
    hosts: Vec<String>,
    pub input: f64,
    cached: Option<f64>,
    pub output: f64,
    /// When the source showed it.
    pub as_of: Date,
    /// An address.
    pub source: String,
}

/// What an hour of one GPU costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuPrice {
    kind: String,
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

/// The problem of an amount, unless it can be a price.
fn problem_of(amounts: &[f64]) -> Option<&'static str> {
    let is_price = |amount: &f64| amount.is_finite() && *amount >= 0.0;
    (!amounts.iter().all(is_price)).then_some("a price must be a number from 0")
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
        let prices: Self = toml::from_str(text)?;
        let mut known: Vec<(&str, &[String])> = Vec::new();
        let of_tokens =
            prices.tokens.iter().flat_map(|price| price.models.iter().map(move |name| (name, price)));
        let of_tokens = of_tokens.map(|(name, price)| {
            let is_same = |(other, hosts): &(&str, &[String])| {
                other == name
                    && (*hosts == price.hosts || hosts.iter().any(|host| price.hosts.contains(host)))
            };
            let is_twice = known.iter().any(is_same);
            known.push((name, &price.hosts));
            (name, problem_of(&[price.input, price.cached(), price.output]), is_twice)
        });
        let of_gpus = prices.gpus.iter().enumerate().map(|(place, price)| {
            let is_twice = prices.gpus[..place].iter().any(|other| other.kind == price.kind);
            (&price.kind, problem_of(&[price.per_hour]), is_twice)
        });
        let mut problems = of_tokens.chain(of_gpus).filter_map(|(name, problem, is_twice)| {
            let problem = problem.or(is_twice.then_some("it has two prices"))?;
            Some(InvalidPrices::Entry { name: name.clone(), problem })
        });
        match problems.next() {
            Some(problem) => Err(problem),
            None => Ok(prices),
        }
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
        let known = || self.tokens.iter().filter(|price| price.models.iter().any(|known| known == name));
        let is_there = |price: &&TokenPrice| {
            host.is_some_and(|host| price.hosts.iter().any(|pattern| Glob::new(pattern).matches(host)))
        };
        known().find(is_there).or_else(|| known().find(|price| price.hosts.is_empty()))
    }

    /// What an hour of a GPU of this kind costs.
    pub fn of_gpu(&self, kind: &str) -> Option<&GpuPrice> {
        self.gpus.iter().find(|price| price.kind == kind)
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
    /// Of prompt tokens that the provider found in its cache.
    pub fn cached(&self) -> f64 {
        self.cached.unwrap_or(self.input)
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
            + millions(cached) * self.cached()
            + millions(completion) * self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_nothing() {
        assert_eq!(Money::total([None, None]), None);
        let some = Money::total([Some(Money::exactly(1.5)), None, Some(Money::exactly(2.0))]).unwrap();
        assert_eq!((some.to_string().as_str(), some.is_least), ("> 3.50", true));
        assert_eq!(Money::total([Some(Money::exactly(0.0123))]).unwrap().to_string(), "0.0123");
        assert_eq!(Money::exactly(0.0).to_string(), "0.00");
        assert_eq!(Money::exactly(0.00001).to_string(), "< 0.0001");
    }

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
        assert!(shipped.tokens.iter().all(|price| !price.hosts.is_empty()));
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
