//! Decides by words whether a hypothesis follows from a premise.
//!
//! The rule: a hypothesis whose words all occur in the premise is entailed; if only one of the two is negated (`not`,
//! `never` and the like), it is contradicted. If at least half of its words occur there, it is about the same thing and
//! says something else: contradicted. Anything else is neutral. Function words and short words do not count. The dial
//! sets how often the model returns another class.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{tokens, words};
use crate::bounds::ConfigError;
use crate::identity::{Draw, SimIdentity};

const CLASSES: [&str; 3] = ["contradiction", "neutral", "entailment"];

/// Share of a hypothesis's words from which on it is about the same thing as its premise.
const SAME_MATTER: f64 = 0.5;

/// How good a classifier is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassifierDial {
    /// The model's words for contradiction, neutral and entailment in the order of its classes, in any order and in
    /// upper or lower case; those of RoBERTa-large-MNLI by default.
    pub labels: Vec<String>,
    /// Of the pairs that are the first, the share that is said to be the second, each 0 to 1: `entailment = { neutral =
    /// 0.1 }`. None by default.
    pub confusion: BTreeMap<String, BTreeMap<String, f64>>,
    /// Seed that selects the affected pairs; 0 by default.
    pub seed: u64,
}

impl Default for ClassifierDial {
    fn default() -> Self {
        let labels = CLASSES.map(str::to_uppercase).to_vec();
        Self { labels, confusion: BTreeMap::new(), seed: 0 }
    }
}

impl ClassifierDial {
    pub(crate) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        let mut words: Vec<String> = self.labels.iter().map(|label| label.to_lowercase()).collect();
        words.sort_unstable();
        let mut known = CLASSES;
        known.sort_unstable();
        if words != known {
            let problem = format!("must be {} in some order", CLASSES.join(", "));
            return Err(ConfigError::new(format!("{key}.labels"), problem));
        }
        for (class, said) in &self.confusion {
            let key = format!("{key}.confusion.{class}");
            let names = || std::iter::once(class).chain(said.keys());
            if let Some(name) = names().find(|name| !CLASSES.contains(&name.as_str())) {
                let problem = format!("knows {} and not `{name}`", CLASSES.join(", "));
                return Err(ConfigError::new(key, problem));
            }
            for (other, share) in said {
                ConfigError::in_range(format!("{key}.{other}"), *share, 0.0, 1.0)?;
            }
            ConfigError::in_range(key, said.values().sum::<f64>(), 0.0, 1.0)?;
        }
        Ok(())
    }
}

/// A simulated classifier; see the module.
#[derive(Clone, Debug)]
pub struct Classifier {
    model: String,
    dial: ClassifierDial,
}

/// The answer of a classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// The word for the likeliest class.
    pub label: String,
    /// Probabilities in the order of the classes.
    pub probs: Vec<f64>,
}

impl Classifier {
    /// The classifier of that name.
    pub fn new(model: &str, dial: ClassifierDial) -> Self {
        Self { model: model.to_owned(), dial }
    }

    /// The class of a pair as token ids. A single text is a premise without a hypothesis.
    ///
    /// # Errors
    /// The first invalid token.
    pub fn classify(&self, ids: &[u32]) -> Result<Classes, u32> {
        let texts = tokens::decode(ids)?;
        let text = |at: usize| texts.get(at).map_or("", String::as_str);
        let mut draw = self.draw(text(0), text(1));
        let said = self.confuse(relation(text(0), text(1)), draw.unit());
        // Sure enough that the order of the classes never decides.
        let most = 0.7 + 0.29 * draw.unit();
        let rest = (1.0 - most) * draw.unit();
        let mut others = [rest, 1.0 - most - rest].into_iter();
        let is_said = |label: &String| label.eq_ignore_ascii_case(said);
        let probs = self.dial.labels.iter().map(|label| {
            // Single precision, as models have it.
            let prob = if is_said(label) { most } else { others.next().unwrap_or(0.0) };
            f64::from(prob as f32)
        });
        let label = self.dial.labels.iter().find(|label| is_said(label)).cloned().unwrap_or_default();
        Ok(Classes { label, probs: probs.collect() })
    }

    fn draw(&self, premise: &str, hypothesis: &str) -> Draw {
        let texts = [domain::Message::user(premise), domain::Message::user(hypothesis)];
        Draw::new(&[self.dial.seed, SimIdentity::of(&self.model, 0, &texts).request])
    }

    /// The model's answer for a pair of class `class`.
    fn confuse(&self, class: &'static str, unit: f64) -> &str {
        let mut bound = 0.0;
        for (other, share) in self.dial.confusion.get(class).into_iter().flatten() {
            bound += share;
            if unit < bound {
                return other;
            }
        }
        class
    }
}

/// The class of a pair by the rule of the module.
fn relation(premise: &str, hypothesis: &str) -> &'static str {
    let [contradiction, neutral, entailment] = CLASSES;
    let (given, claimed) = (words::content(premise), words::content(hypothesis));
    if claimed.is_empty() {
        return neutral;
    }
    let found = claimed.iter().filter(|word| given.contains(word)).count();
    let same_side = words::is_negated(premise) == words::is_negated(hypothesis);
    if found == claimed.len() && same_side {
        entailment
    } else if found as f64 >= SAME_MATTER * claimed.len() as f64 {
        contradiction
    } else {
        neutral
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREMISE: &str = "Marie Curie was born in Warsaw in 1867 and studied in Paris.";

    fn pair(premise: &str, hypothesis: &str) -> Vec<u32> {
        [tokens::framed(premise), vec![tokens::SEPARATOR], tokens::framed(hypothesis)].concat()
    }

    fn say(dial: &ClassifierDial, premise: &str, hypothesis: &str) -> Classes {
        Classifier::new("nli", dial.clone()).classify(&pair(premise, hypothesis)).unwrap()
    }

    #[test]
    fn classes_go_by_the_words() {
        let dial = ClassifierDial::default();
        for (hypothesis, label) in [
            ("Marie Curie studied in Paris.", "ENTAILMENT"),
            ("Marie Curie studied in London.", "CONTRADICTION"),
            ("Marie Curie never studied in Paris.", "CONTRADICTION"),
            ("Ada Lovelace wrote programs.", "NEUTRAL"),
            ("", "NEUTRAL"),
        ] {
            let classes = say(&dial, PREMISE, hypothesis);
            assert_eq!(classes.label, label, "{hypothesis}");
            assert!((classes.probs.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            let at = dial.labels.iter().position(|known| known == label).unwrap();
            assert!(
                classes
                    .probs
                    .iter()
                    .enumerate()
                    .all(|(other, prob)| other == at || *prob < classes.probs[at])
            );
        }
        assert_eq!(Classifier::new("nli", dial).classify(&[0, 3_000_000, 2]), Err(3_000_000));
    }

    #[test]
    fn labels_have_the_models_order_and_spelling() {
        let labels = ["entailment", "Neutral", "contradiction"].map(str::to_owned).to_vec();
        let classes = say(&ClassifierDial { labels, ..ClassifierDial::default() }, PREMISE, "Curie studied.");
        assert_eq!((classes.label.as_str(), classes.probs[0] > 0.69), ("entailment", true));
    }

    #[test]
    fn the_dial_sets_the_shares() {
        let row = BTreeMap::from([("neutral".to_owned(), 0.2), ("contradiction".to_owned(), 0.1)]);
        let confusion = BTreeMap::from([("entailment".to_owned(), row)]);
        let dial = ClassifierDial { confusion, ..ClassifierDial::default() };
        dial.validate("d").unwrap();
        let mut counts = BTreeMap::<String, usize>::new();
        for number in 0..2000 {
            let said = say(&dial, &format!("{PREMISE} {number}"), &format!("Marie Curie {number}"));
            *counts.entry(said.label).or_default() += 1;
        }
        for (label, share) in [("ENTAILMENT", 0.7), ("NEUTRAL", 0.2), ("CONTRADICTION", 0.1)] {
            let got = counts[label] as f64 / 2000.0;
            assert!((got - share).abs() < 0.03, "{label}: {got} instead of {share}");
        }
    }

    #[test]
    fn dials_out_of_bounds_say_so() {
        let read = |text: &str| {
            toml::from_str::<ClassifierDial>(text).unwrap().validate("d").unwrap_err().to_string()
        };
        for (text, part) in [
            ("labels = ['yes', 'no']", "d.labels: must be contradiction, neutral, entailment"),
            ("confusion = { entailment = { maybe = 0.1 } }", "d.confusion.entailment: knows"),
            (
                "confusion = { neutral = { entailment = 2.0 } }",
                "d.confusion.neutral.entailment: must be between",
            ),
            (
                "confusion = { neutral = { entailment = 0.6, contradiction = 0.6 } }",
                "neutral: must be between",
            ),
        ] {
            let error = read(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
